"""The schema, as a list of steps that only grows.

Each function takes the schema one version further, inside one transaction together with `user_version` and the
record that it ran: a crash leaves either the version before or the version after. A function that has been released
is never edited; what it got wrong is put right by the next. Tables are STRICT, so a column holds what it says.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from inglenook.storage.first_schema import (
    DOCUMENTS_1,
    FULL_TEXT_1,
    HISTORY_1,
    SETTINGS_1,
    SOURCES_1,
    VECTORS_1,
)

if TYPE_CHECKING:
    import sqlite_utils
    from sqlite_utils.migrations import Migrations

APPLICATION_ID = 0x496E676C  # "Ingl", at offset 68 of the file

# What is set inside each full-text table of the newest schema, for when one is made anew.
FULL_TEXT_TABLES: dict[str, dict[str, int | str]] = {
    "chunk_words": {"secure-delete": 1, "rank": "bm25(2.0, 1.0)"},
    "chunk_trigrams": {"secure-delete": 1},
    "message_trigrams": {"secure-delete": 1},
}

_STEPS: list[Callable[[sqlite_utils.Database], None]] = []


def _step(function: Callable[[sqlite_utils.Database], None]) -> Callable[[sqlite_utils.Database], None]:
    _STEPS.append(function)
    return function


def migrations() -> Migrations:
    """Return all steps, each of which also moves `user_version` to its own number."""
    # Imported here because it takes 0.2 s, which only the start that migrates should pay.
    from sqlite_utils.migrations import Migrations

    result = Migrations("inglenook")
    for number, function in enumerate(_STEPS, start=1):
        result(name=function.__name__)(_numbered(function, number))
    return result


def _numbered(
    function: Callable[[sqlite_utils.Database], None], number: int
) -> Callable[[sqlite_utils.Database], None]:
    def run(db: sqlite_utils.Database, /) -> None:
        function(db)
        db.execute(f"PRAGMA user_version = {number}")

    return run


@_step
def m001_first_schema(db: sqlite_utils.Database) -> None:
    """Make settings, conversations, messages, documents, the full-text indexes, vectors and sources."""
    db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    for script in (SETTINGS_1, HISTORY_1, DOCUMENTS_1, FULL_TEXT_1, VECTORS_1, SOURCES_1):
        db.executescript(script)


@_step
def m002_order_among_chats(db: sqlite_utils.Database) -> None:
    """Let chats be pinned, put away and kept in folders, and make what was said searchable."""
    db.executescript(_CHATS_2)


# A reply is indexed when it has ended, not with each of its saves. Trigrams find parts of words in every script.
_CHATS_2 = """
ALTER TABLE conversations ADD COLUMN pinned_at_ms INTEGER;
ALTER TABLE conversations ADD COLUMN archived_at_ms INTEGER;
ALTER TABLE conversations ADD COLUMN folder TEXT NOT NULL DEFAULT '';
ALTER TABLE conversations ADD COLUMN is_titled INTEGER NOT NULL DEFAULT 0; -- 1: by the user, who is not overruled

CREATE VIEW message_search AS SELECT id, text FROM messages WHERE status <> 'streaming';
CREATE VIRTUAL TABLE message_trigrams USING fts5(
    text, content='message_search', content_rowid='id', tokenize='trigram remove_diacritics 1'
);
INSERT INTO message_trigrams(message_trigrams, rank) VALUES ('secure-delete', 1);
INSERT INTO message_trigrams(message_trigrams) VALUES ('rebuild');
CREATE TRIGGER messages_search_insert AFTER INSERT ON messages WHEN new.status <> 'streaming' BEGIN
    INSERT INTO message_trigrams(rowid, text) VALUES (new.id, new.text);
END;
CREATE TRIGGER messages_search_delete AFTER DELETE ON messages WHEN old.status <> 'streaming' BEGIN
    INSERT INTO message_trigrams(message_trigrams, rowid, text) VALUES ('delete', old.id, old.text);
END;
CREATE TRIGGER messages_search_out AFTER UPDATE OF text, status ON messages WHEN old.status <> 'streaming' BEGIN
    INSERT INTO message_trigrams(message_trigrams, rowid, text) VALUES ('delete', old.id, old.text);
END;
CREATE TRIGGER messages_search_in AFTER UPDATE OF text, status ON messages WHEN new.status <> 'streaming' BEGIN
    INSERT INTO message_trigrams(rowid, text) VALUES (new.id, new.text);
END;
"""


@_step
def m003_personas(db: sqlite_utils.Database) -> None:
    """Keep personas, and let numbers that a user chose for replies count as a choice of their own."""
    db.executescript(_PERSONAS_3)


# Before this step a changed number was all there was; from now on it counts where the style is "own".
_PERSONAS_3 = """
CREATE TABLE personas (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    name TEXT NOT NULL,
    system TEXT NOT NULL DEFAULT '',
    preset TEXT NOT NULL DEFAULT '',    -- "" for the one of the settings
    sampling TEXT NOT NULL DEFAULT '{}', -- JSON: the numbers of the preset "own"
    created_at_ms INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX personas_by_name ON personas(name COLLATE NOCASE);
INSERT INTO settings(key, value) SELECT 'chat.preset', '"own"' WHERE EXISTS (
    SELECT 1 FROM settings WHERE key IN ('chat.temperature', 'chat.top_k', 'chat.top_p', 'chat.min_p')
);
"""


@_step
def m004_collections_and_encodings(db: sqlite_utils.Database) -> None:
    """Let documents be gathered in collections, and note the encoding of each version of a text."""
    db.executescript(_COLLECTIONS_4)


_COLLECTIONS_4 = """
CREATE TABLE collections (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    name TEXT NOT NULL
) STRICT;
CREATE UNIQUE INDEX collections_by_name ON collections(name COLLATE NOCASE);

CREATE TABLE collection_documents (
    collection_id INTEGER NOT NULL REFERENCES collections(id) ON DELETE CASCADE,
    document_id INTEGER NOT NULL REFERENCES documents(id) ON DELETE CASCADE,
    PRIMARY KEY (collection_id, document_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX collection_documents_by_document ON collection_documents(document_id);

-- "" where the document is no text. `chosen_encoding` is the user's, "" for the one that was found.
ALTER TABLE document_versions ADD COLUMN encoding TEXT NOT NULL DEFAULT '';
ALTER TABLE document_versions ADD COLUMN is_encoding_guessed INTEGER NOT NULL DEFAULT 0;
ALTER TABLE document_versions ADD COLUMN chosen_encoding TEXT NOT NULL DEFAULT '';
"""


@_step
def m005_reasoning(db: sqlite_utils.Database) -> None:
    """Note for how long a reply was thought over, and the tag that ends a thought which its prompt began."""
    db.executescript(_REASONING_5)


# NULL where nothing was thought; "" where the reply itself has the first tag.
_REASONING_5 = """
ALTER TABLE messages ADD COLUMN reasoning_s REAL;
ALTER TABLE messages ADD COLUMN reasoning_end TEXT NOT NULL DEFAULT '';
"""


@_step
def m006_folders(db: sqlite_utils.Database) -> None:
    """Let a folder of chats be there before anything lies in it."""
    db.executescript(_FOLDERS_6)


_FOLDERS_6 = """
CREATE TABLE folders (
    name TEXT PRIMARY KEY
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX folders_by_name ON folders(name COLLATE NOCASE);
INSERT OR IGNORE INTO folders(name) SELECT DISTINCT folder FROM conversations WHERE folder <> '';
UPDATE conversations SET folder = (SELECT name FROM folders WHERE name = folder COLLATE NOCASE) WHERE folder <> '';
"""


@_step
def m007_headings_of_sources(db: sqlite_utils.Database) -> None:
    """Keep the headings that a quote stands under beside it: they are no part of it, but say what it speaks of."""
    db.execute("ALTER TABLE sources ADD COLUMN heading TEXT NOT NULL DEFAULT ''")


SCHEMA_VERSION = len(_STEPS)
