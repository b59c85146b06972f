"""`inside`: the one way to a file of a model's folder, by which a link cannot lead a reader to other files.

A folder that people exchange may hold links to anywhere, and what they point at would be read as the model's, or copied
into the library. So a file must lie in its folder when all links are followed. One arrangement of links is known and
stays usable: the cache of `huggingface_hub`, where `models--X/snapshots/REVISION/NAME` is a link to a file in
`models--X/blobs`. Only that very folder counts, and only if it is no link itself.
"""

from __future__ import annotations

import os
from pathlib import Path

from inglenook.engine.errors import ModelFileError


def inside(folder: Path, name: str) -> Path:
    """The path of a file in a folder, refused if its name or a link takes it elsewhere. It need not be there.

    Raises:
        ModelFileError: it lies outside the folder.
    """
    # os.path.realpath, because Path.resolve raises on a circle of links
    home, target = Path(os.path.realpath(folder)), Path(os.path.realpath(folder / name))
    if not target.is_relative_to(home) and target.parent != _blobs(home):
        raise ModelFileError(
            f"{name} is a link to a place outside the model's folder {folder.name}. "
            "Copy the folder with its links followed."
        )
    return folder / name


def holds(folder: Path, name: str) -> bool:
    """Whether a folder has an ordinary file of that name; raises as `inside` does."""
    return inside(folder, name).is_file()


def _blobs(home: Path) -> Path | None:
    """Where the files of a snapshot in huggingface_hub's cache lie; None for every other folder."""
    repository = home.parent.parent
    blobs = repository / "blobs"
    is_cache = home.parent.name == "snapshots" and repository.name.startswith("models--")
    return blobs if is_cache and not blobs.is_symlink() else None
