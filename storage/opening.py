"""What is looked at before a file is trusted: whether it is there, whole, ours, and of a schema we know.

Everything here reads through a read-only connection, so that a file we refuse is left as it was found. A new file is
made complete under another name and then given its own, so that a crash while it is made never leaves an empty file
that looks like a lost history.
"""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import sqlite3
import stat
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from inglenook.storage import driver
from inglenook.storage.driver import Connection
from inglenook.storage.errors import (
    DamagedDatabaseError,
    DiskError,
    DiskFullError,
    ForeignDatabaseError,
    NewerDatabaseError,
    ReadOnlyError,
    StorageError,
)
from inglenook.storage.migrations import APPLICATION_ID, SCHEMA_VERSION

_MAGIC = b"SQLite format 3\x00"
COPY_PREFIX = "restoring-"
"""Begins the names of the folders in which a backup is copied while it is restored."""

_KEEP = "It was left as it is; restore a backup, or choose another profile."


def is_absent(path: Path) -> bool:
    """Return whether there is nothing at `path`, so that a new database may be made there.

    Raises:
        DamagedDatabaseError: the main file is gone while its write-ahead file is still there.
    """
    if os.path.lexists(path):
        return False
    if _wal(path).exists() and _wal(path).stat().st_size > 0:
        raise DamagedDatabaseError(
            f"The history file '{path}' is gone, but '{_wal(path).name}' with its last changes is there. "
            "Nothing was changed; put the file back, or move the other away to start afresh."
        )
    return True


def create(path: Path, fill: Callable[[Connection], None]) -> None:
    """Make a new database, readable by its owner alone, whole or not at all.

    Raises:
        ReadOnlyError: the folder cannot be written.
        DiskFullError: no room.
    """
    unfinished = path.with_name(path.name + ".new")
    try:
        make_private_folder(path.parent)
        for leftover in (unfinished, unfinished.with_name(unfinished.name + "-journal")):
            leftover.unlink(missing_ok=True)
        make_private_file(unfinished)
        connection = driver.connect(unfinished, mode="rw")
        try:
            connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
            connection.execute("PRAGMA synchronous = FULL")
            fill(connection)
        finally:
            connection.close()
        give_name(unfinished, path)
    except OSError as error:
        raise as_storage_error(error, path) from error
    except StorageError:
        with contextlib.suppress(OSError):
            unfinished.unlink(missing_ok=True)
        raise


def remove_unfinished_copies(path: Path) -> None:
    """Remove what a restoring that was killed left beside the history: a whole copy of the backup."""
    for folder in path.parent.glob(f"{COPY_PREFIX}*"):
        shutil.rmtree(folder, ignore_errors=True)


@dataclass(frozen=True, slots=True)
class Examined:
    """A sound file: its schema version, and whether its full-text indexes must be made anew from the text."""

    version: int
    needs_new_indexes: bool


def examine(path: Path, *, check_up_to_bytes: int) -> Examined:
    """Look at a file and return what a database of ours needs to be opened.

    Files up to `check_up_to_bytes`, and those a crash left with a write-ahead file, are looked through page by page.

    Raises:
        DamagedDatabaseError, NewerDatabaseError, ForeignDatabaseError: and nothing was changed.
    """
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            kind = "a folder" if stat.S_ISDIR(status.st_mode) else "not a regular file"
            raise DamagedDatabaseError(f"'{path}' should be the history file but is {kind}. {_KEEP}")
        if status.st_size == 0:
            raise DamagedDatabaseError(f"The history file '{path}' is empty (0 bytes). {_KEEP}")
        with path.open("rb") as file:
            magic = file.read(len(_MAGIC))
    except OSError as error:
        raise as_storage_error(error, path) from error
    if magic != _MAGIC:
        raise DamagedDatabaseError(f"'{path}' is not a history file: it does not begin like one. {_KEEP}")
    was_cut_off = _wal(path).exists() and _wal(path).stat().st_size > 0
    connection, _ = connect_read_only(path)
    try:
        application_id = _number(connection, "PRAGMA application_id")
        version = _number(connection, "PRAGMA user_version")
        if application_id != APPLICATION_ID:
            raise ForeignDatabaseError(
                f"'{path}' is the database of another program (application id {application_id:#x}). {_KEEP}"
            )
        if version > SCHEMA_VERSION:
            raise NewerDatabaseError(version, SCHEMA_VERSION)
        if version < 1:
            raise DamagedDatabaseError(f"The history file '{path}' has the schema version {version}. {_KEEP}")
        is_checked = was_cut_off or status.st_size <= check_up_to_bytes
        return Examined(version, is_checked and not indexes_are_sound(connection, path))
    finally:
        connection.close()


def indexes_are_sound(connection: Connection, path: Path) -> bool:
    """Look through every page; return False where only the full-text indexes are wrong, which can be made anew.

    Raises:
        DamagedDatabaseError: pages do not fit together; the message has the first finding.
    """
    finding = _finding(connection, "PRAGMA quick_check(1)")
    if finding is None:
        return True
    # The tables beneath the indexes are looked through as well, so that only a sound file is ever written to.
    tables = "SELECT name FROM sqlite_master WHERE type = 'table' AND sql NOT LIKE 'CREATE VIRTUAL%'"
    for (name,) in connection.execute(tables).fetchall():
        if _finding(connection, f"PRAGMA quick_check('{name}')") is not None:
            raise DamagedDatabaseError(f"The history file '{path}' is damaged ({finding}). {_KEEP}")
    return False


def _finding(connection: Connection, check: str) -> str | None:
    try:
        findings = [str(row[0]) for row in connection.execute(check)]
    except (sqlite3.Error, DamagedDatabaseError) as error:
        return str(error)
    return None if findings == ["ok"] else "; ".join(findings)


def connect_read_only(path: Path) -> tuple[Connection, str]:
    """Connect for reading, and on a medium where not even a lock file can be made as an immutable file."""
    connection = driver.connect(path, mode="ro")
    try:
        connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    except (ReadOnlyError, DiskError):
        connection.close()
        connection = driver.connect(path, mode="immutable")
        return connection, "immutable"
    except BaseException:
        connection.close()
        raise
    return connection, "ro"


def require_writable(connection: Connection) -> None:
    """Set WAL mode and take the write lock once.

    Raises:
        ReadOnlyError, DiskError: the file, or the folder for its lock files, cannot be written.
    """
    connection.execute("PRAGMA journal_mode = WAL").fetchone()
    connection.execute("BEGIN IMMEDIATE")
    connection.execute("ROLLBACK")


def make_private_folder(folder: Path) -> None:
    """Make a folder (and those above it) that only its owner may enter, under any umask; leave existing ones."""
    missing = [p for p in (folder, *folder.parents) if not p.exists()]
    for one in reversed(missing):
        one.mkdir(mode=0o700, exist_ok=True)
        one.chmod(0o700)


def make_private_file(path: Path) -> None:
    """Make a new, empty file that only its owner may read, under any umask."""
    descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600)
    os.fchmod(descriptor, 0o600)
    os.close(descriptor)


def make_private(path: Path) -> None:
    """Take group and others their rights to the file and its companions, if someone has given them."""
    for one in (path, _wal(path), path.with_name(path.name + "-shm")):
        with contextlib.suppress(OSError):
            if one.stat().st_mode & 0o077:
                one.chmod(0o600)


def give_name(unfinished: Path, path: Path) -> None:
    """Give a finished file its name, never in place of a file that is there, and make the name last."""
    try:
        os.link(unfinished, path)
        unfinished.unlink()
    except FileExistsError:
        unfinished.unlink()
    except OSError:
        # File systems without hard links (FAT, some network ones).
        if not os.path.lexists(path):
            unfinished.rename(path)
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Make the names in a folder survive a power loss."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def as_storage_error(error: OSError, path: Path) -> StorageError:
    """Turn an error of the operating system into a sentence."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return DiskFullError(
            f"The disk is full: there is no room for '{path}'. Free some space and try again."
        )
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return ReadOnlyError(
            f"'{path}' cannot be read or written ({error.strerror}). Give yourself the right to its folder."
        )
    return DiskError(f"The disk refused '{path}' ({error.strerror}).")


def _wal(path: Path) -> Path:
    return path.with_name(path.name + "-wal")


def _number(connection: Connection, pragma: str) -> int:
    return int(connection.execute(pragma).fetchone()[0])
