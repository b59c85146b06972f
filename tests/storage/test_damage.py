"""Damage that SQLite reports as a fault of the statement: still a typed error, and none that quotes what people wrote."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from inglenook.storage.backup import back_up
from inglenook.storage.database import Database
from inglenook.storage.documents import Documents
from inglenook.storage.errors import BackupError, DamagedDatabaseError
from inglenook.storage.merge import merge_backup
from inglenook.storage.records import Document
from inglenook.storage.search import Search
from inglenook.storage.vectors import Vectors

AddDocument = Callable[..., Document]
_TEXT = "The zanzibarite deposits near Quorvale were surveyed by Miss Thistlewood."


def damage(path: Path, old: bytes, new: bytes) -> None:
    """Change bytes of the closed file, in all places, without changing its length."""
    content = path.read_bytes()
    assert old in content
    assert len(old) == len(new)
    path.write_bytes(content.replace(old, new))


def test_a_text_that_is_no_text_any_more_is_not_quoted(
    path: Path, documents_of: Callable[[Database], AddDocument]
) -> None:
    with Database.open(path) as db:
        documents_of(db)(_TEXT)
    damage(path, b"deposits near", b"deposits\xff\xfeear")

    with Database.open(path) as db, pytest.raises(DamagedDatabaseError, match="no text") as caught:
        Search(db).search("zanzibarite", limit=3)

    assert "Quorvale" not in str(caught.value)


@pytest.mark.parametrize(
    ("old", "new", "use"),
    [
        (b"name TEXT NOT NULL UNIQUE,\n    dimension", b"nume TEXT NOT NULL UNIQUE,\n    dimension",
         lambda db: Vectors(db).counts()),
        (b"modified_at_ns INTEGER NOT NULL", b"mudified_at_ns INTEGER NOT NULL",
         lambda db: Documents(db).add("/a", name="a", sha256="1", size_bytes=1, modified_at_ns=1)),
        (b"is_missing INTEGER NOT NULL", b"is_mussing INTEGER NOT NULL", lambda db: Documents(db).entries()),
    ],
)  # fmt: skip
def test_tables_that_are_not_those_of_the_schema_are_damage(
    path: Path, old: bytes, new: bytes, use: Callable[[Database], object]
) -> None:
    Database.open(path).close()
    damage(path, old, new)

    with Database.open(path) as db, pytest.raises(DamagedDatabaseError, match="has not the tables"):
        use(db)


@pytest.mark.parametrize(
    ("old", "new"),
    [(b"is_missing INTEGER", b"is_mussing INTEGER"), (b"deposits near", b"deposits\xff\xfeear")],
)
def test_a_backup_damaged_so_is_named_and_the_history_stays_as_it_is(
    path: Path, tmp_path: Path, documents_of: Callable[[Database], AddDocument], old: bytes, new: bytes
) -> None:
    backup = tmp_path / "chats.backup"
    with Database.open(tmp_path / "other" / "history.db") as other:
        documents_of(other)(_TEXT)
        back_up(other, backup)
    damage(backup, old, new)

    with Database.open(path) as db:
        with pytest.raises(BackupError, match=r"'chats\.backup'.*is damaged"):
            merge_backup(db, backup)
        assert db.row("SELECT count(*) FROM documents") == (0,)


def test_a_format_number_that_sqlite_does_not_know_is_damage(path: Path) -> None:
    Database.open(path).close()
    content = bytearray(path.read_bytes())
    content[44:48] = (77).to_bytes(4, "big")
    path.write_bytes(content)

    with pytest.raises(DamagedDatabaseError, match="unsupported file format"):
        Database.open(path)

    assert path.read_bytes() == content


def test_a_fault_of_our_own_in_a_statement_stays_one(db: Database) -> None:
    with pytest.raises(sqlite3.OperationalError, match="syntax error"):
        db.execute("SELEKT 1")
