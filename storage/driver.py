"""The one place that joins sqlite-utils to the sqlcipher3 driver.

sqlcipher3 brings one modern SQLite with FTS5 to every Python, and room for encryption. Its exceptions are classes of
its own, which sqlite-utils (written for the standard library's module) does not catch; so the cursor here raises
the standard library's class of the same name. What is the environment's fault rather than ours (disk full, damaged
pages, a read-only medium, a lock) becomes a typed error of `errors.py`, with a sentence, wherever it happens.

A connection belongs to the thread that opened it; the driver refuses any other.
"""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import quote

from inglenook.storage.errors import (
    DamagedDatabaseError,
    DatabaseBusyError,
    DatabaseClosedError,
    DiskError,
    DiskFullError,
    ReadOnlyError,
)

if TYPE_CHECKING:
    # The two modules have the same interface; only the standard library's has types.
    from sqlite3 import dbapi2

    import sqlite_utils
else:
    from sqlcipher3 import dbapi2

SQLITE_VERSION: str = dbapi2.sqlite_version

DRIVER_ERRORS: tuple[type[sqlite3.Error], ...] = (dbapi2.Error,)

Row = tuple[Any, ...]
Parameters = Sequence[Any] | dict[str, Any]

_PERM, _BUSY, _LOCKED, _READONLY, _IOERR, _CORRUPT, _FULL, _CANTOPEN, _NOTADB = 3, 5, 6, 8, 10, 11, 13, 14, 26

# damage that the driver reports as a fault of the statement
_NOT_UTF_8 = "Could not decode to UTF-8"
_UNREADABLE = ("unsupported file format", "malformed database schema")
_OTHER_TABLES = ("no such column", "no such table", "has no column named")


def translated(error: sqlite3.Error, path: Path | None) -> Exception:
    """Turn an exception of the driver into a typed error, or into the standard library's class of its name."""
    code = getattr(error, "sqlite_errorcode", None) or 0
    primary = code & 0xFF
    where = f"'{path}'" if path else "the database in memory"
    if primary == _FULL:
        return DiskFullError(
            f"The disk is full: {_free_space(path)} free where {where} lies. The change was not saved; "
            "what was saved before is intact. Free some space and try again."
        )
    if str(error).startswith(_NOT_UTF_8):
        # The driver's own words quote the text, which is the user's.
        error = dbapi2.DatabaseError("a text in it is no text")
        primary = _CORRUPT
    if primary in (_CORRUPT, _NOTADB) or str(error).startswith(_UNREADABLE):
        return DamagedDatabaseError(
            f"The history file {where} is damaged ({error}). It was left as it is; restore a backup, or open another profile."
        )
    if primary in (_READONLY, _PERM):
        return ReadOnlyError(
            f"{where} cannot be written ({error}). Make the file and its folder writable, or choose another profile."
        )
    if primary in (_BUSY, _LOCKED):
        return DatabaseBusyError(f"{where} is in use by another program. Close that one and try again.")
    if primary in (_IOERR, _CANTOPEN):
        return DiskError(
            f"The disk refused to read or write {where} ({error}; {_free_space(path)} free). Nothing of the change was kept."
        )
    if isinstance(error, dbapi2.ProgrammingError) and "closed" in str(error):
        return DatabaseClosedError("The database is closed.")
    standard: type[sqlite3.Error] = getattr(sqlite3, type(error).__name__, sqlite3.DatabaseError)
    return standard(*error.args)


def is_of_other_tables(error: sqlite3.Error) -> bool:
    """Whether a statement of ours failed because the file has not the tables that its schema number says."""
    return any(words in str(error) for words in _OTHER_TABLES)


class Cursor(dbapi2.Cursor):
    """A cursor whose errors are translated, at execution and while rows are fetched."""

    def _translated(self, error: sqlite3.Error | UnicodeDecodeError) -> Exception:
        if isinstance(error, UnicodeDecodeError):
            # Everything is stored as UTF-8, so bytes that are none were changed on the disk.
            error = dbapi2.DatabaseError("a text in it is no text")
            error.sqlite_errorcode = _CORRUPT
        return translated(error, cast(Connection, self.connection).path)

    def execute(self, sql: str, parameters: Any = ()) -> Cursor:
        """Run one statement."""
        try:
            super().execute(sql, parameters)
        except (dbapi2.Error, UnicodeDecodeError) as error:
            raise self._translated(error) from error
        return self

    def executemany(self, sql: str, parameters: Iterable[Any]) -> Cursor:
        """Run one statement for each row of parameters."""
        try:
            super().executemany(sql, parameters)
        except (dbapi2.Error, UnicodeDecodeError) as error:
            raise self._translated(error) from error
        return self

    def executescript(self, sql: str) -> Cursor:
        """Run several statements."""
        try:
            super().executescript(sql)
        except (dbapi2.Error, UnicodeDecodeError) as error:
            raise self._translated(error) from error
        return self

    def fetchone(self) -> Any:
        """Return the next row or None."""
        try:
            return super().fetchone()
        except (dbapi2.Error, UnicodeDecodeError) as error:
            raise self._translated(error) from error

    def fetchall(self) -> list[Any]:
        """Return all rows that are left."""
        try:
            return super().fetchall()
        except (dbapi2.Error, UnicodeDecodeError) as error:
            raise self._translated(error) from error

    def __next__(self) -> Any:
        try:
            return super().__next__()
        except (dbapi2.Error, UnicodeDecodeError) as error:
            raise self._translated(error) from error


class Connection(dbapi2.Connection):
    """A connection in autocommit mode whose cursors translate errors; transactions are begun by hand."""

    path: Path | None = None

    def cursor(self, factory: Any = Cursor) -> Any:
        """Return a cursor; everything that the connection executes goes through one."""
        try:
            return super().cursor(factory)
        except dbapi2.Error as error:
            raise translated(error, self.path) from error

    def backup(self, target: Any, **options: Any) -> None:
        """Copy the whole database into `target`, a consistent snapshot even while it is written."""
        try:
            super().backup(target, **options)
        except dbapi2.Error as error:
            raise translated(error, self.path) from error


def connect(path: Path | None, *, mode: str = "rwc", busy_timeout_ms: int = 5000) -> Connection:
    """Open a file, or a database in memory when `path` is None.

    `mode` is "rwc", "rw", "ro", or "immutable": read-only on a medium where not even a lock file can be made.

    Raises:
        DiskError: the file cannot be opened.
    """
    if path is None:
        uri = ":memory:"
    else:
        suffix = "mode=ro&immutable=1" if mode == "immutable" else f"mode={mode}"
        uri = f"file:{quote(str(path.absolute()))}?{suffix}"
    try:
        connection = dbapi2.connect(
            uri, uri=True, isolation_level=None, timeout=busy_timeout_ms / 1000, factory=Connection
        )
    except dbapi2.Error as error:
        raise translated(error, path) from error
    connection.path = path
    return connection


def tables(connection: Connection) -> sqlite_utils.Database:
    """Return the sqlite-utils view of a connection: for migrations and tables; queries are written as SQL."""
    # Imported here because it takes 0.2 s, which only the start that migrates should pay.
    import sqlite_utils

    # No plug-ins: code of other packages that happen to be installed has no business in this file.
    return sqlite_utils.Database(connection, recursive_triggers=False, execute_plugins=False)


def _free_space(path: Path | None) -> str:
    if path is None:
        return "unknown space"
    try:
        free = shutil.disk_usage(path.parent).free
    except OSError:
        return "unknown space"
    return f"{free / 1e6:,.1f} MB"
