"""What models of the library may be called: one narrow rule, so that a name is a folder on every system and no path."""

from __future__ import annotations

import re
from pathlib import Path

from inglenook.engine.errors import LibraryError

_NAME = re.compile(r"[a-z0-9](?:[a-z0-9._-]{0,62}[a-z0-9])?")
_RESERVED = re.compile(r"(?:con|prn|aux|nul|com[0-9]|lpt[0-9])(?:\..*)?")


def check_name(name: str) -> None:
    """Refuse what is no name for a model.

    Raises:
        LibraryError: with the rule.
    """
    if not is_name(name):
        raise LibraryError(
            f"A model's name has 1 to 64 of a-z, 0-9, '.', '_' and '-', and begins and ends with a letter or "
            f"digit; got {name[:80]!r}. Choose one with --name."
        )


def is_name(name: str) -> bool:
    """Whether a model of the library can have this name."""
    return _NAME.fullmatch(name) is not None and ".." not in name and not _RESERVED.fullmatch(name)


def is_unicode(text: str) -> bool:
    """Whether the text has no half characters, which file names that cannot be decoded have."""
    return not any("\ud800" <= character <= "\udfff" for character in text)


def suggest_name(path: Path) -> str:
    """A name for an import, from the file's or folder's own."""
    stem = path.name if path.is_dir() else path.stem
    if path.parent.name == "snapshots":  # of the hub's cache, models--OWNER--NAME/snapshots/REVISION
        stem = path.parent.parent.name.rpartition("--")[2]
    name = re.sub(r"[^a-z0-9._]+", "-", stem.lower())
    name = re.sub(r"\.\.+", ".", name).strip("-._")[:64].strip("-._")
    return name if is_name(name) else f"model-{name}".strip("-._")[:64]
