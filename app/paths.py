"""Where the program keeps things: the user's XDG folders, open to the user alone.

Data (models, history), settings, state (logs) and cache are four folders named `inglenook`; nothing of value is in
the cache. Relative or empty XDG variables are ignored, as their specification says.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from inglenook.app.errors import AppError

_NAME = "inglenook"
_PRIVATE = 0o700


@dataclass(frozen=True, slots=True)
class UserFolders:
    """The program's folders; they are made by `ensure` when first written to."""

    data: Path
    config: Path
    state: Path
    cache: Path

    @property
    def models(self) -> Path:
        """The model library."""
        return self.data / "models"


def user_folders(environment: Mapping[str, str] = os.environ) -> UserFolders:
    """Find the folders of this user.

    Raises:
        AppError: there is no home folder to put them in.
    """

    def folder(variable: str, *default: str) -> Path:
        given = Path(environment.get(variable, ""))
        if given.is_absolute():
            return given / _NAME
        return _home(environment).joinpath(*default, _NAME)

    return UserFolders(
        data=folder("XDG_DATA_HOME", ".local", "share"),
        config=folder("XDG_CONFIG_HOME", ".config"),
        state=folder("XDG_STATE_HOME", ".local", "state"),
        cache=folder("XDG_CACHE_HOME", ".cache"),
    )


def ensure(folder: Path) -> Path:
    """Make one of the program's own folders, and close it to others.

    Raises:
        AppError: it cannot be made or changed.
    """
    try:
        folder.mkdir(mode=_PRIVATE, parents=True, exist_ok=True)
        if folder.stat().st_mode & 0o077:
            folder.chmod(_PRIVATE)
    except OSError as error:
        raise AppError(f"The folder {folder} cannot be made: {error.strerror}.") from error
    return folder


def _home(environment: Mapping[str, str]) -> Path:
    home = Path(environment.get("HOME", ""))
    if home.is_absolute():
        return home
    try:
        return Path.home()
    except RuntimeError as error:
        raise AppError("There is no home folder. Set HOME, or XDG_DATA_HOME and its like.") from error
