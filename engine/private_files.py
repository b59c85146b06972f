"""Folders and files that only their owner may read, whatever the umask of the process is."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import IO, Literal

FOLDER_MODE = 0o700
FILE_MODE = 0o600
UMASK = 0o077
"""What a child process gets, so that its files are private too."""


def make_folder(folder: Path) -> None:
    """Make a folder and what is missing above it; folders that are there stay as they are."""
    missing = [one for one in (folder, *folder.parents) if not one.exists()]
    for one in reversed(missing):
        one.mkdir(mode=FOLDER_MODE, exist_ok=True)
    folder.mkdir(mode=FOLDER_MODE, exist_ok=True)


def close_folder(folder: Path) -> None:
    """Close a folder to others, where it is ours to close."""
    if folder.stat().st_mode & 0o077:
        with contextlib.suppress(PermissionError):
            folder.chmod(FOLDER_MODE)


def open_file(path: Path, mode: Literal["xb", "wb"]) -> IO[bytes]:
    """Open a file for writing that is private when this call makes it; "xb" refuses one that is there."""
    return open(path, mode, opener=lambda name, flags: os.open(name, flags, FILE_MODE))


def replace_file(path: Path, data: bytes) -> None:
    """Write a file whole or not at all, so that it outlasts a loss of power."""
    temporary = path.with_suffix(".new")
    with open_file(temporary, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Make renames in a folder last."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
