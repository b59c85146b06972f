"""Where the program keeps things: the user's XDG folders, open to the user alone.

Data (models, history), settings, state (logs) and cache are four folders named `inglenook`; nothing of value is in
the cache. Relative or empty XDG variables are ignored, as their specification says.
"""

from __future__ import annotations

import argparse
import os
import pwd
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from inglenook.app.errors import AppError
from inglenook.engine.private_files import close_folder, make_folder

_NAME = "inglenook"


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
        make_folder(folder)
        close_folder(folder)
    except OSError as error:
        raise AppError(f"The folder {folder} cannot be made: {error.strerror}.") from error
    return folder


def _home(environment: Mapping[str, str]) -> Path:
    home = Path(environment.get("HOME", ""))
    if home.is_absolute():
        return home
    try:  # not Path.home(), which believes a relative HOME
        return Path(pwd.getpwuid(os.getuid()).pw_dir)
    except KeyError as error:
        raise AppError("There is no home folder. Set HOME, or XDG_DATA_HOME and its like.") from error


def given_path(text: str) -> Path:
    """The path that an argument names; "" names none, where Path would take it for the current folder."""
    if not text:
        raise argparse.ArgumentTypeError("it is empty")
    return Path(text)
