"""Open a document without trusting its path: no link is followed, no pipe or device is waited for.

POSIX: `O_NOFOLLOW` and `O_NONBLOCK`, then what was opened is looked at, not the path, so nothing can be exchanged in
between. Its counterpart on Windows is CreateFile with FILE_FLAG_OPEN_REPARSE_POINT and GetFileType.
"""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

from inglenook.storage.parsing.document import MIB, ParsingLimits
from inglenook.storage.parsing.errors import (
    DocumentTooLargeError,
    EmptyFileError,
    FileAccessError,
    FileVanishedError,
    NotARegularFileError,
    UnreadableFileError,
)


def open_document(path: Path, limits: ParsingLimits) -> int:
    """Open a regular, non-empty file of allowed size for reading and give its descriptor; the caller closes it.

    Raises:
        UnreadableFileError: it is gone, not readable for this user, or not a regular file.
        EmptyFileError: it has 0 bytes.
        DocumentTooLargeError: it has more bytes than allowed.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    except (OSError, ValueError) as error:
        raise _open_error(error) from error
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise NotARegularFileError(f"This is {_kind(status.st_mode)}, not a file. Choose a file.")
        if status.st_size == 0:
            raise EmptyFileError(
                "This file is empty (0 bytes). Check that it was saved or downloaded completely."
            )
        if status.st_size > limits.max_file_bytes:
            raise too_large(status.st_size, limits.max_file_bytes)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def too_large(size_bytes: int, limit_bytes: int) -> DocumentTooLargeError:
    """Say a file's size and the limit."""
    return DocumentTooLargeError(
        f"This file has {size_bytes / MIB:,.1f} MiB; the limit is {limit_bytes / MIB:,.1f} MiB. "
        "Split it and add the parts."
    )


def _open_error(error: OSError | ValueError) -> UnreadableFileError:
    number = error.errno if isinstance(error, OSError) else errno.EINVAL
    if number in (errno.ENOENT, errno.ENOTDIR):
        return FileVanishedError(
            "This file is no longer there. If it was moved or renamed, add it from its new place."
        )
    if number in (errno.EACCES, errno.EPERM):
        return FileAccessError(
            "This file may not be read by your user account. Change its permissions or copy it."
        )
    if number in (errno.ELOOP, errno.EMLINK):
        return NotARegularFileError("This is a link, not a file. Add the file that it points to.")
    if number in (errno.ENXIO, errno.ENODEV):
        return NotARegularFileError("This is a socket or a device, not a file. Choose a file.")
    reason = os.strerror(number) if number else str(error)
    return UnreadableFileError(
        f"This file could not be opened ({reason}). Check the drive it is on and try again."
    )


def _kind(mode: int) -> str:
    if stat.S_ISDIR(mode):
        return "a folder"
    if stat.S_ISFIFO(mode):
        return "a pipe"
    return "a device or a socket"
