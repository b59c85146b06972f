"""One profile, one running program: a lock that the kernel holds, and a bell that a second start rings.

The lock is `flock` on a file of the profile's folder: it ends with the process, however that ends, and stays with the
folder when that is renamed, so there is no process id that could be stale. The bell is a named pipe beside it, which
only the user may open; ringing it brings the first window to the front. No socket, no Qt. POSIX only; its counterpart
on Windows is a named mutex and event.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import stat
import time
from pathlib import Path
from types import TracebackType
from typing import Self

from inglenook.app.errors import AppError
from inglenook.app.paths import ensure

_LOCK, _BELL = "profile.lock", "profile.bell"
_RING_S = 0.3
_POLL_S = 0.01


class SingleInstance:
    """The right to use a profile's folder. Close it, or use it as a context manager."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock: int | None = None
        self._bell: int | None = None

    def acquire(self) -> bool:
        """Take the profile; False where another program has it.

        Raises:
            AppError: the folder cannot be made or written, or its disk cannot lock files.
        """
        if self._lock is not None:
            return True
        ensure(self._folder)
        try:
            lock = os.open(self._folder / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        except OSError as error:
            raise AppError(f"The profile in {self._folder} cannot be used: {error.strerror}.") from error
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(lock)
            return False
        except OSError as error:
            os.close(lock)
            raise AppError(
                f"The disk that holds {self._folder} cannot lock files ({error.strerror}). Keep the profile on a "
                "disk of this computer: set XDG_DATA_HOME to a folder there."
            ) from error
        self._lock = lock
        # Without a bell a second start cannot raise the window, but everything else works.
        with contextlib.suppress(OSError):
            self._bell = _hang_bell(self._folder / _BELL)
        return True

    def ring(self) -> bool:
        """Ask the program that has the profile to come to the front; return whether it listens."""
        end = time.monotonic() + _RING_S
        while True:
            try:
                bell = os.open(
                    self._folder / _BELL, os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOFOLLOW
                )
            except OSError as error:
                # It may just be starting, and hang its bell in a moment.
                if error.errno not in (errno.ENOENT, errno.ENXIO) or time.monotonic() > end:
                    return False
                time.sleep(_POLL_S)
                continue
            try:
                if not stat.S_ISFIFO(os.fstat(bell).st_mode):
                    return False
                with contextlib.suppress(BlockingIOError):  # rung often enough
                    os.write(bell, b"\a")
                return True
            finally:
                os.close(bell)

    @property
    def bell(self) -> int | None:
        """A descriptor that becomes readable when a second start rings; None without the profile."""
        return self._bell

    def answer(self) -> bool:
        """Take the rings that came; return whether there were any. Never blocks."""
        try:
            return self._bell is not None and bool(os.read(self._bell, 4096))
        except BlockingIOError:
            return False

    def close(self) -> None:
        """Give the profile back. Twice is fine."""
        for descriptor in (self._bell, self._lock):
            if descriptor is not None:
                os.close(descriptor)
        self._bell = self._lock = None

    def __enter__(self) -> Self:
        """Take the profile.

        Raises:
            AppError: another program has it, or it cannot be used.
        """
        if not self.acquire():
            raise AppError(
                "Inglenook is running and uses this profile. Do this in its window, or close it first."
            )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _hang_bell(path: Path) -> int:
    """Make the pipe and open both of its ends, so that it never reads as ended."""
    with contextlib.suppress(FileNotFoundError):
        path.unlink()
    os.mkfifo(path, 0o600)
    return os.open(path, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOFOLLOW)
