"""A backup brought into a history that is in use: what is new is added, and nothing that is there is changed.

The backup is copied, looked through and brought to the newest schema as a copy, so the file itself stays as it is. All
is one transaction: stopped, failed or cut off by a crash, nothing was restored. Bringing the same backup in twice adds
nothing the second time: a conversation is known again by when it was made and how it begins, its messages by
their place in the tree, time and text; a document by its bytes; a persona, folder or collection by its name.
Vectors are not brought along: the embedder makes them anew.
"""

from __future__ import annotations

import contextlib
import shutil
import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from inglenook.storage import opening
from inglenook.storage.database import Database
from inglenook.storage.driver import Connection
from inglenook.storage.errors import (
    BackupError,
    DamagedDatabaseError,
    DiskFullError,
    ForeignDatabaseError,
    NewerDatabaseError,
    StoppedError,
    StorageError,
)
from inglenook.storage.merge_chats import merge_chats
from inglenook.storage.merge_documents import merge_documents
from inglenook.storage.merge_rows import MergeWork

# They speak of this computer or of ids that mean something else here.
_NOT_RESTORED = ("window.state", "window.conversation", "chat.persona", "model.name")
_WHOLE_FILE = 1 << 62
_PIECE = 8 << 20


@dataclass(frozen=True, slots=True)
class BackupContents:
    """What a backup holds, for the question before it is restored; `made_at_ms` is when its newest message was written."""

    conversations: int
    messages: int
    documents: int
    made_at_ms: int


@dataclass(frozen=True, slots=True)
class MergeReport:
    """What restoring a backup added, and what was there already."""

    conversations: int = 0
    messages: int = 0
    documents: int = 0
    personas: int = 0
    known_conversations: int = 0
    known_documents: int = 0

    @property
    def is_empty(self) -> bool:
        """Whether nothing was added."""
        return not (self.conversations or self.messages or self.documents or self.personas)


def backup_contents(path: Path) -> BackupContents:
    """Look a backup through and say what it holds; it is not changed.

    Raises:
        BackupError: no backup, damaged, or of a newer program.
    """
    _examine(path)
    connection, _ = opening.connect_read_only(path)
    try:
        counts = "SELECT (SELECT count(*) FROM conversations), count(*), (SELECT count(*) FROM documents), "
        row = connection.execute(f"{counts} coalesce(max(created_at_ms), 0) FROM messages").fetchone()
        return BackupContents(*row)
    except (sqlite3.Error, StorageError) as error:
        raise _damaged(path, error) from error
    finally:
        connection.close()


def merge_backup(
    database: Database,
    path: Path,
    progress: Callable[[int, int], None] = lambda _done, _total: None,
    is_stopped: Callable[[], bool] = lambda: False,
) -> MergeReport:
    """Add what a backup has and `database` has not; call from the database's own thread.

    Raises:
        BackupError: no backup, damaged, of a newer program, or the history itself.
        DiskFullError: no room for the copy, or for what is added.
        StoppedError: `is_stopped` said so. In every case nothing was changed.
    """
    if database.path is not None and path.exists() and path.samefile(database.path):
        raise BackupError(f"'{path.name}' is the history itself, not a backup of it.")
    _examine(path)
    folder = database.path.parent if database.path is not None else None
    with _opened_copy(path, folder, is_stopped) as backup:
        try:
            work = MergeWork(backup, database, progress, is_stopped)
            with database.atomic():
                _merge_settings(work)
                personas = _merge_personas(work)
                documents = merge_documents(work)
                merge_chats(work)
        except (KeyError, TypeError, sqlite3.Error) as error:
            raise _damaged(path, error) from error
        except DamagedDatabaseError as error:
            if str(backup.path) not in str(error):
                raise  # the history itself
            raise _damaged(path, error) from error
    return MergeReport(
        work.added["conversations"],
        work.added["messages"],
        documents,
        personas,
        work.known["conversations"],
        work.known["documents"],
    )


def _merge_settings(work: MergeWork) -> None:
    """Take the settings that were never changed here."""
    for row in work.rows("settings"):
        if row["key"] not in _NOT_RESTORED:
            work.into.execute(
                "INSERT OR IGNORE INTO settings(key, value) VALUES (?, ?)", (row["key"], row["value"])
            )


def _merge_personas(work: MergeWork) -> int:
    """Take the personas of other names; one of a name that stands for something else here gets a number."""
    num_added = 0
    known = {row["name"].casefold(): row for row in work.own_rows("personas")}
    for row in work.rows("personas"):
        name, number = row["name"], 1
        while (same := known.get(name.casefold())) is not None and not _is_same_persona(same, row):
            number += 1
            name = f"{row['name']} ({number})"
        if same is not None:
            work.ids["personas"][row["id"]] = same["id"]
            continue
        new_id = work.insert("personas", row | {"name": name})
        known[name.casefold()] = row | {"id": new_id, "name": name}
        num_added += 1
    return num_added


def _is_same_persona(one: dict[str, Any], other: dict[str, Any]) -> bool:
    return all(one[key] == other[key] for key in one if key not in ("id", "name", "created_at_ms"))


def _examine(path: Path) -> None:
    """Look at every page of a backup, and whether its schema is ours.

    Raises:
        BackupError: with what to do, and the file untouched.
    """
    try:
        opening.examine(path, check_up_to_bytes=0)
        _require_ours(path)  # before every row is looked at, which computes its columns
        opening.examine(path, check_up_to_bytes=_WHOLE_FILE)
    except NewerDatabaseError as error:
        raise BackupError(
            f"'{path.name}' was written by a newer Inglenook (schema {error.found}; this program knows up to "
            f"{error.supported}). Nothing was restored. Update this program, then restore the backup."
        ) from error
    except ForeignDatabaseError as error:
        raise BackupError(
            f"'{path.name}' is the database of another program, not a backup of Inglenook. Nothing was restored."
        ) from error
    except DamagedDatabaseError as error:
        if not path.is_file():
            raise BackupError(f"'{path.name}' is not a file. Choose the backup itself.") from error
        raise _damaged(path, error) from error
    except BackupError:
        raise
    except StorageError as error:
        raise BackupError(f"'{path.name}' cannot be read: {error}") from error


def _require_ours(path: Path) -> None:
    """Refuse a backup with what would be worked out while it is read.

    Raises:
        BackupError: and nothing of it was read but its schema.
    """
    connection, _ = opening.connect_read_only(path)
    try:
        with Database.in_memory() as ours:
            known = _computed(ours.connection)
        if strange := _computed(connection) - known:
            kind, name, _ = min(strange)
            raise BackupError(
                f"'{path.name}' was changed by another program: it has the {kind} '{name}', which no backup of "
                "Inglenook has. Nothing was restored. Choose another file."
            )
    except (sqlite3.Error, StorageError) as error:
        raise error if isinstance(error, BackupError) else _damaged(path, error) from error
    finally:
        connection.close()


def _computed(connection: Connection) -> set[tuple[str, str, str]]:
    """What of a schema is worked out when it is read or written: kind, name and SQL of each.

    A view in the place of a table could be endless, and a trigger could write anything. Migrations never take one of
    these away or change it, so those of an older backup are among those of the newest schema.
    """
    # By the SQL, which alone counts when SQLite reads a schema; the column `type` may say anything.
    stored = "(sql LIKE 'CREATE TABLE%' OR sql LIKE 'CREATE INDEX%' OR sql LIKE 'CREATE UNIQUE INDEX%')"
    objects = f"SELECT type, name, sql FROM sqlite_master WHERE sql IS NOT NULL AND NOT {stored}"
    columns = (
        "SELECT 'computed column', t.name || '.' || c.name, '' FROM sqlite_master AS t, pragma_table_xinfo(t.name) AS c "
        "WHERE t.sql LIKE 'CREATE TABLE%' AND c.hidden > 1"
    )
    rows = connection.execute(f"{objects} UNION ALL {columns}").fetchall()
    return {(kind, name, " ".join(sql.split())) for kind, name, sql in rows}


def _damaged(path: Path, error: Exception) -> BackupError:
    size = path.stat().st_size if path.exists() else 0
    with contextlib.suppress(OSError), open(path, "rb") as file:
        if not file.read(16).startswith(b"SQLite format 3"):
            return BackupError(
                f"'{path.name}' ({size:,} bytes) is not a backup of Inglenook. Nothing was restored. Choose another "
                "file."
            )
    kind = type(error.__cause__ or error).__name__
    return BackupError(
        f"The backup '{path.name}' ({size:,} bytes) is damaged ({kind}). Nothing was restored. Try another backup."
    )


@contextlib.contextmanager
def _opened_copy(path: Path, folder: Path | None, is_stopped: Callable[[], bool]) -> Iterator[Database]:
    """Open a private copy of a backup, in the newest schema; it is gone afterwards."""
    size = path.stat().st_size
    with tempfile.TemporaryDirectory(prefix=opening.COPY_PREFIX, dir=folder) as place:
        free = shutil.disk_usage(place).free
        if free < 1.1 * size:
            raise DiskFullError(
                f"Restoring needs {1.1 * size / 1e6:,.1f} MB beside the history, but only {free / 1e6:,.1f} MB are "
                "free. Nothing was restored. Free some space and try again."
            )
        copy = Path(place, "backup.db")
        try:
            opening.make_private_file(copy)
            with open(path, "rb") as source, open(copy, "wb") as target:
                while piece := source.read(_PIECE):
                    if is_stopped():
                        raise StoppedError("Restoring was stopped. Nothing was restored.")
                    target.write(piece)
        except OSError as error:
            raise opening.as_storage_error(error, path) from error
        try:
            backup = Database.open(copy)
        except (DiskFullError, StoppedError):
            raise
        except (StorageError, sqlite3.Error) as error:
            raise _damaged(path, error) from error
        with backup:
            yield backup
