"""A database for one conversation that is never written to disk, apart from the history.

Its ids lie far above those of the history, so that one can be told from the other. Sources may name documents of the
history; only the ids of those are known here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from inglenook.storage.database import Database

FIRST_ID = 1 << 30
"""Where the ids of what is temporary begin; the history's never get there, and both fit 31 bits."""

_OF_DOCUMENTS = re.compile(r" REFERENCES (?:documents|document_versions|chunks)\(id\) ON DELETE SET NULL")


def temporary_database(number: int = 0) -> Database:
    """Make an empty one, whose ids differ from those of every other `number`; close it, and it is gone."""
    database = Database.in_memory()
    database.execute("PRAGMA temp_store = MEMORY")
    with database.atomic():
        table = database.row("SELECT sql FROM sqlite_master WHERE name = 'sources'")
        assert table is not None
        database.execute("DROP TABLE sources")
        database.execute(_OF_DOCUMENTS.sub("", table[0]))
        for name in ("conversations", "messages"):
            database.execute("DELETE FROM sqlite_sequence WHERE name = ?", (name,))
            database.execute(
                "INSERT INTO sqlite_sequence(name, seq) VALUES (?, ?)", (name, FIRST_ID + (number << 16))
            )
    return database


def note_documents(database: Database, document_ids: Iterable[int]) -> None:
    """Let the sources of an answer name these documents of the history."""
    with database.atomic():
        # It hides the empty table of the same name.
        database.execute("CREATE TEMP TABLE IF NOT EXISTS documents(id INTEGER PRIMARY KEY)")
        for document_id in document_ids:
            database.execute("INSERT OR IGNORE INTO temp.documents(id) VALUES (?)", (document_id,))


def is_temporary(id_: int | None) -> bool:
    """Say whether an id is of something that is never written."""
    return id_ is not None and id_ > FIRST_ID
