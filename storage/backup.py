"""A copy of the whole database, made while it is in use, verified before it gets its name.

SQLite's backup interface copies a consistent snapshot; copying the file of a live database would not. The copy is
made under another name, looked through, and only then given its own, so there is never half a backup.
"""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from inglenook.storage import driver, opening
from inglenook.storage.errors import BackupError, DiskFullError, StoppedError, StorageError

if TYPE_CHECKING:
    from inglenook.storage.database import Database

_PAGES_PER_STEP = 2000


def migration_backup_path(path: Path, version: int) -> Path:
    """Return where the backup before a migration from schema `version` lies: beside the file."""
    return path.with_name(f"{path.name}.schema-{version}.backup")


def automatic_backups(path: Path) -> list[Path]:
    """Return the backups that the program made by itself beside `path`."""
    return sorted(path.parent.glob(f"{path.name}.schema-*.backup*"))


def back_up(database: Database, target: Path, progress: Callable[[int, int], None] | None = None) -> None:
    """Copy the database to `target`, in place of an older backup there; call from the database's own thread.

    `progress` is given the pages done and the pages in all, after each step; what it raises ends the copying.

    Raises:
        StoppedError: by `progress`; an older backup at `target` is untouched.
        DiskFullError: less room than the copy needs; the message has both numbers.
        BackupError: the copy could not be made, or differs; an older backup at `target` is untouched.
    """
    source = database.connection
    if database.path is not None and _is_same_file(database.path, target):
        raise BackupError(f"'{target}' is the history itself. Choose another place for the backup.")
    size = _number(source, "PRAGMA page_count") * _number(source, "PRAGMA page_size")
    unfinished = target.with_name(target.name + ".part")
    try:
        opening.make_private_folder(target.parent)
        free = shutil.disk_usage(target.parent).free
        if free < size * 1.1:
            raise DiskFullError(
                f"The backup needs {size * 1.1 / 1e6:,.1f} MB, but only {free / 1e6:,.1f} MB are free where "
                f"'{target}' would lie. Free some space and try again."
            )
        unfinished.unlink(missing_ok=True)
        opening.make_private_file(unfinished)
        copy = driver.connect(unfinished, mode="rw")
        try:
            source.backup(
                copy,
                pages=_PAGES_PER_STEP,
                progress=lambda _, left, total: progress(total - left, total) if progress else None,
            )
            copy.execute("PRAGMA journal_mode = DELETE").fetchone()
            opening.indexes_are_sound(copy, unfinished)
            if _number(copy, "PRAGMA user_version") != _number(source, "PRAGMA user_version"):
                raise BackupError(f"The backup '{target}' did not verify: its schema version differs.")
        finally:
            copy.close()
        unfinished.replace(target)
        opening.sync_folder(target.parent)
    except OSError as error:
        raise opening.as_storage_error(error, target) from error
    except (DiskFullError, StoppedError):
        raise
    except StorageError as error:
        raise BackupError(f"The backup '{target}' could not be made: {error}") from error
    finally:
        with contextlib.suppress(OSError):
            unfinished.unlink(missing_ok=True)


def _is_same_file(one: Path, other: Path) -> bool:
    try:
        return one.samefile(other)
    except OSError:
        return False


def _number(connection: driver.Connection, pragma: str) -> int:
    return int(connection.execute(pragma).fetchone()[0])
