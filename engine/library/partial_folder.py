"""The folder that a model of the library is built in, for one process at a time.

`LIBRARY/.partial/NAME/` is made when the lock `NAME.lock` beside it is held, and both go again when nothing is left in
the folder. What a download that was cut short left there stays, to be gone on with.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

from inglenook.engine.errors import LibraryError
from inglenook.engine.private_files import FILE_MODE, close_folder, make_folder

PARTIAL = ".partial"


@contextlib.contextmanager
def partial_folder(library: Path, name: str) -> Iterator[Path]:
    """Lock `name` and give a folder to build in; what is in it afterwards stays.

    Raises:
        LibraryError: another process holds the lock, or the library cannot be written.
    """
    folder = library / PARTIAL / name
    lock_path = library / PARTIAL / f"{name}.lock"
    with contextlib.ExitStack() as stack:
        try:
            make_folder(library / PARTIAL)
            close_folder(library)
            stack.callback(os.close, _lock(lock_path))
            # Removed while it is locked: whoever has it open sees in `_lock` that it is not the file any more.
            stack.callback(lock_path.unlink, missing_ok=True)
            make_folder(folder)
        except BlockingIOError as error:
            raise LibraryError(
                f"Another inglenook is fetching or changing {name} just now. Try again later."
            ) from error
        except OSError as error:
            raise LibraryError(f"The model folder {library} cannot be written: {error.strerror}.") from error
        try:
            yield folder
        finally:
            with contextlib.suppress(OSError):  # it is not empty, or has gone
                folder.rmdir()


def _lock(path: Path) -> int:
    """Make and lock a file that its last holder may remove meanwhile; returns the descriptor."""
    while True:
        lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, FILE_MODE)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(lock)
            raise
        with contextlib.suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(lock), os.stat(path)):
                return lock
        os.close(lock)
