"""The one SQLite file: opened carefully, written through one connection, read through others.

`Database.open` gives the writer: one connection, owned by the thread that opened it (app/tasks.py), the only one that
changes anything. `open_reader` gives a read-only connection for another thread; in WAL mode readers see the last
commit and never wait for the writer. One action of the user is one `atomic()` block. A file that is damaged, newer
or foreign is refused with a typed error and left as it is; one that cannot be written is opened read-only, and
`notice` says so.
"""

from __future__ import annotations

import contextlib
import sqlite3
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

from inglenook.storage import backup, driver, opening
from inglenook.storage.driver import Connection, Cursor, Parameters, Row
from inglenook.storage.errors import (
    DamagedDatabaseError,
    DatabaseClosedError,
    DiskError,
    ReadOnlyError,
    StorageError,
)
from inglenook.storage.migrations import FULL_TEXT_TABLES, SCHEMA_VERSION, migrations

BUSY_TIMEOUT_MS = 5000
# A file up to this size is checked at every start (about 0.1 s); a larger one after a crash, or when `check` is called.
CHECKED_AT_START_BYTES = 64 << 20

_PRAGMAS = (
    "PRAGMA foreign_keys = ON",
    "PRAGMA temp_store = MEMORY",
    "PRAGMA trusted_schema = OFF",
    "PRAGMA cell_size_check = ON",
    "PRAGMA cache_size = -16000",
)
_WRITER_PRAGMAS = (
    "PRAGMA synchronous = FULL",
    "PRAGMA secure_delete = ON",
    "PRAGMA wal_autocheckpoint = 1000",
    f"PRAGMA journal_size_limit = {64 << 20}",
)


def now_ms() -> int:
    """Return the time for showing to people, in milliseconds of the Unix epoch; nothing is ordered by it."""
    return time.time_ns() // 1_000_000


class Database:
    """A connection to the file, for the thread that opened it. Not for use from any other thread."""

    def __init__(
        self, connection: Connection, path: Path | None, *, read_only_mode: str = "", notice: str = ""
    ) -> None:
        self._connection: Connection | None = connection
        self._read_only_mode = read_only_mode
        self.path = path
        self.notice = notice
        for pragma in _PRAGMAS if read_only_mode else _PRAGMAS + _WRITER_PRAGMAS:
            connection.execute(pragma)
        if read_only_mode:
            connection.execute("PRAGMA query_only = ON")

    @classmethod
    def open(cls, path: Path) -> Database:
        """Open or create the file for writing; where that is impossible, open it read-only with a `notice`.

        An older schema is migrated, after a verified backup beside the file.

        Raises:
            DamagedDatabaseError: not a database, empty, a folder, or damaged; nothing was changed.
            NewerDatabaseError: from a newer program; nothing was changed.
            ForeignDatabaseError: of another program; nothing was changed.
            ReadOnlyError: its schema is older and cannot be migrated because the file cannot be written.
            DiskFullError: no room to create it, or for the backup before a migration.
        """
        if opening.is_absent(path):
            opening.create(path, _apply_migrations)
        examined = opening.examine(path, check_up_to_bytes=CHECKED_AT_START_BYTES)
        connection = driver.connect(path, mode="rw", busy_timeout_ms=BUSY_TIMEOUT_MS)
        try:
            opening.require_writable(connection)
        except (ReadOnlyError, DiskError):
            connection.close()
            return cls._open_read_only(path, examined.version)
        try:
            opening.make_private(path)
            opening.remove_unfinished_copies(path)
            database = cls(connection, path)
            if examined.version < SCHEMA_VERSION:
                backup.back_up(database, backup.migration_backup_path(path, examined.version))
                _apply_migrations(connection)
            if examined.needs_new_indexes:
                database.rebuild_indexes()
                database.notice = "The search index was damaged and has been made anew; no text was lost."
            return database
        except BaseException:
            connection.close()
            raise

    @classmethod
    def in_memory(cls) -> Database:
        """Open a database that lives in memory only, with the newest schema: for tests and trials."""
        connection = driver.connect(None)
        _apply_migrations(connection)
        return cls(connection, None)

    @classmethod
    def _open_read_only(cls, path: Path, version: int) -> Database:
        if version < SCHEMA_VERSION:
            raise ReadOnlyError(
                f"'{path}' is of an older program (schema {version}) and must be brought to schema {SCHEMA_VERSION}, "
                "but it cannot be written. Make the file and its folder writable."
            )
        connection, mode = opening.connect_read_only(path)
        return cls(
            connection,
            path,
            read_only_mode=mode,
            notice=f"'{path}' cannot be written: the history can be read, but nothing new is saved.",
        )

    def open_reader(self) -> Database:
        """Open a read-only connection to the same file, for the calling thread."""
        if self.path is None:
            raise ReadOnlyError("A database in memory has no second connection.")
        mode = self._read_only_mode or "ro"
        connection = driver.connect(self.path, mode=mode, busy_timeout_ms=BUSY_TIMEOUT_MS)
        return Database(connection, self.path, read_only_mode=mode, notice=self.notice)

    @property
    def connection(self) -> Connection:
        """The driver's connection, for blob handles and backups."""
        if self._connection is None:
            raise DatabaseClosedError("The database is closed.")
        return self._connection

    @property
    def is_read_only(self) -> bool:
        """Whether this connection can only read."""
        return bool(self._read_only_mode)

    @contextlib.contextmanager
    def atomic(self) -> Iterator[None]:
        """Make everything inside one transaction, which takes the write lock at once; nested blocks join it.

        Raises:
            ReadOnlyError: this connection can only read.
            DiskFullError: no room; everything of the block is undone.
            DatabaseBusyError: another program holds the write lock.
        """
        connection = self.connection
        if self.is_read_only:
            raise ReadOnlyError(self.notice or "This connection only reads; changes go through the writer.")
        if connection.in_transaction:
            yield
            return
        connection.execute("BEGIN IMMEDIATE")
        try:
            yield
            connection.execute("COMMIT")
        except BaseException:
            # A full disk or a damaged page may have ended the transaction already.
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise

    def execute(self, sql: str, parameters: Parameters = ()) -> Cursor:
        """Run one statement; outside `atomic()` it is a transaction of its own."""
        try:
            cursor: Cursor = self.connection.execute(sql, parameters)  # type: ignore[assignment]  # our cursor class
        except sqlite3.OperationalError as error:
            if self.path is None or not driver.is_of_other_tables(error):
                raise
            raise DamagedDatabaseError(
                f"The history file '{self.path}' has not the tables of its schema ({error}). It was left as it is; "
                "restore a backup, or open another profile."
            ) from error
        return cursor

    def executemany(self, sql: str, parameters: Iterable[Parameters]) -> None:
        """Run one statement for each row of parameters."""
        self.connection.executemany(sql, parameters)

    def rows(self, sql: str, parameters: Parameters = ()) -> list[Row]:
        """Return all rows of a query, so that no read transaction stays open."""
        return self.execute(sql, parameters).fetchall()

    def row(self, sql: str, parameters: Parameters = ()) -> Row | None:
        """Return the first row of a query, or None."""
        cursor = self.execute(sql, parameters)
        row: Row | None = cursor.fetchone()
        cursor.close()
        return row

    def write_blob(self, table: str, column: str, row_id: int, pieces: Iterable[tuple[int, bytes]]) -> None:
        """Overwrite parts of a stored blob, given as offsets and bytes; part of the caller's transaction."""
        try:
            # sqlcipher3's name for what the standard library calls blobopen.
            blob = self.connection.open_blob(table, column, row_id)  # type: ignore[attr-defined]
            try:
                for offset, piece in pieces:
                    blob.seek(offset)
                    blob.write(piece)
            finally:
                blob.close()
        except driver.DRIVER_ERRORS as error:
            raise driver.translated(error, self.path) from error

    def read_blob(
        self, table: str, column: str, row_id: int, pieces: Iterable[tuple[int, int]]
    ) -> list[bytes]:
        """Read parts of a stored blob, given as offsets and lengths, without reading the rest."""
        try:
            # Its arguments are positional; the last says that it is only read.
            blob = self.connection.open_blob(table, column, row_id, True)  # type: ignore[attr-defined]
            try:
                result = []
                for offset, length in pieces:
                    blob.seek(offset)
                    result.append(bytes(blob.read(length)))
                return result
            finally:
                blob.close()
        except driver.DRIVER_ERRORS as error:
            raise driver.translated(error, self.path) from error

    def checkpoint(self) -> bool:
        """Move the write-ahead file into the database and cut it to nothing; False while a reader holds it."""
        row = self.row("PRAGMA wal_checkpoint(TRUNCATE)")
        return row is not None and row[0] == 0

    def check(self) -> list[str]:
        """Look through the whole file, its indexes and references; return what is wrong, one sentence each."""
        try:
            problems = [str(row[0]) for row in self.rows("PRAGMA integrity_check(20)") if row[0] != "ok"]
            problems += [f"{row[0]} row {row[1]}: what it refers to in {row[2]} is gone."
                         for row in self.rows("PRAGMA foreign_key_check")]  # fmt: skip
            # Read-only connections cannot run the indexes' own check, which is a command.
            for table in () if self.is_read_only else FULL_TEXT_TABLES:
                self.execute(f"INSERT INTO {table}({table}, rank) VALUES ('integrity-check', 1)")
        except StorageError as error:
            return [str(error)]
        return problems

    def rebuild_indexes(self) -> None:
        """Make the full-text indexes anew from the text."""
        with self.atomic():
            for table, options in FULL_TEXT_TABLES.items():
                # With its own settings garbled, a table refuses even to be made anew or dropped. 4 is FTS5's format
                # before any secure deletion, after which it notes 5 itself.
                self.execute(f"INSERT OR REPLACE INTO {table}_config(k, v) VALUES ('version', 4)")
                self.execute(f"INSERT INTO {table}({table}) VALUES ('rebuild')")
                for name, value in options.items():
                    self.execute(f"INSERT INTO {table}({table}, rank) VALUES (?, ?)", (name, value))

    def close(self) -> None:
        """Close the connection; the writer tidies the write-ahead file first. Closing twice is fine."""
        connection, self._connection = self._connection, None
        if connection is None:
            return
        try:
            if not self.is_read_only:
                connection.execute("PRAGMA optimize")
        except StorageError:
            pass  # a full disk or a lock must not keep the program from ending; nothing is lost by it
        finally:
            connection.close()

    def __enter__(self) -> Database:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()


def _apply_migrations(connection: Connection) -> None:
    migrations().apply(driver.tables(connection))
