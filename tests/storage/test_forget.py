"""Forgetting: no byte of the text in any file."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from inglenook.storage import backup
from inglenook.storage.conversations import Conversations
from inglenook.storage.database import Database
from inglenook.storage.documents import Documents
from inglenook.storage.forget import (
    finish_forgetting,
    forget_conversations,
    forget_deleted_documents,
    forget_documents,
)
from inglenook.storage.messages import Messages
from inglenook.storage.records import FORGOTTEN, Document, NewSource
from inglenook.storage.search import Search
from inglenook.storage.settings import Settings
from inglenook.storage.sources import Sources
from inglenook.storage.vectors import Vectors

_WORDS = ("zanzibarquux", "mumblewort", "канарейкин", "密語暗号文")


class Everywhere:
    """A database with one secret document among others, cited in one conversation of two."""

    def __init__(self, db: Database, add: Callable[..., Document]) -> None:
        random_ = random.Random(4)
        for n in range(12):
            add(*[_prose(random_) for _ in range(8)], path=f"/open-{n}.txt", sha256=str(n))
        secret_pages = [f"{_prose(random_)} {word} {_prose(random_)}" for word in _WORDS for _ in range(3)]
        self.document = add(*secret_pages, path="/zanzibarquux.txt", sha256="secret", title="mumblewort")
        vectors = Vectors(db)
        waiting = vectors.chunks_without_vectors("m", 1000)
        values = np.random.default_rng(1).normal(size=(len(waiting), 32)).astype(np.float32)
        vectors.add("m", [w.chunk_id for w in waiting], values)
        self.kept = Conversations(db).create("kept")
        self.answer = Messages(db).add(self.kept, "assistant", "So it says.", parent_id=None)
        hits = Search(db).search("zanzibarquux", limit=2)
        Sources(db).replace(self.answer, [
            NewSource(h.chunk.document_id, h.chunk.version_id, h.chunk.id, h.chunk.document_name, h.chunk.place,
                      h.chunk.text) for h in hits
        ])  # fmt: skip
        self.secret = Conversations(db).create("sekretariat")
        reply = Messages(db).begin_reply(self.secret, parent_id=None, model="m", sampling={})
        for n in range(20):
            Messages(db).save_reply(reply, "sekretariat " * n * 20, [7] * n)


def _prose(random_: random.Random) -> str:
    return " ".join("".join(random_.choices("abcdefghij", k=random_.randint(3, 9))) for _ in range(60))


def _bytes_of(path: Path) -> bytes:
    return b"".join(file.read_bytes() for file in path.parent.iterdir() if file.is_file())


def _holds(path: Path, word: str) -> bool:
    """Look for a word, and for the pieces of it that an index may keep."""
    content = _bytes_of(path).lower()
    return any(piece.encode() in content for piece in (word, word[: max(3, len(word) - 3)]))


@pytest.fixture
def everywhere(file_db: Database, documents_of: Callable[[Database], Callable[..., Document]]) -> Everywhere:
    return Everywhere(file_db, documents_of(file_db))


def test_forgotten_document_is_in_no_byte(file_db: Database, path: Path, everywhere: Everywhere) -> None:
    before = [_holds(path, word) for word in _WORDS]

    complete = forget_documents(file_db, [everywhere.document.id])

    assert (before, complete) == ([True] * len(_WORDS), True)
    assert [_holds(path, word) for word in _WORDS] == [False] * len(_WORDS)
    assert {(s.quote, s.document_name) for s in Sources(file_db).of_message(everywhere.answer)} == {
        (FORGOTTEN, FORGOTTEN)
    }
    assert len(Documents(file_db).entries()) == 12
    assert file_db.check() == []


def test_forgotten_vectors_are_zero(file_db: Database, everywhere: Everywhere) -> None:
    forget_documents(file_db, [everywhere.document.id])

    row = file_db.row("SELECT rows FROM vector_rows")
    assert row is not None
    rows = np.frombuffer(row[0], np.int8).reshape(-1, 32)
    assert np.count_nonzero(rows.any(axis=1)) == 96


def test_deleted_document_keeps_its_quotes_until_they_are_forgotten(
    file_db: Database, path: Path, everywhere: Everywhere
) -> None:
    Documents(file_db).delete(everywhere.document.id)
    quotes = [s.quote for s in Sources(file_db).of_message(everywhere.answer)]

    forget_deleted_documents(file_db)

    assert all("zanzibarquux" in quote for quote in quotes)
    assert not _holds(path, "zanzibarquux")


def test_forgotten_conversation_is_in_no_byte(file_db: Database, path: Path, everywhere: Everywhere) -> None:
    before = _holds(path, "sekretariat")

    complete = forget_conversations(file_db, [everywhere.secret])

    assert (before, complete, _holds(path, "sekretariat")) == (True, True, False)
    assert [c.title for c in Conversations(file_db).entries()] == ["kept"]


def test_backups_of_our_own_are_forgotten_too(file_db: Database, path: Path, everywhere: Everywhere) -> None:
    backup.back_up(file_db, backup.migration_backup_path(path, 1))

    forget_documents(file_db, [everywhere.document.id])

    assert sorted(p.name for p in path.parent.iterdir()) == [
        path.name,
        path.name + "-shm",
        path.name + "-wal",
    ]
    assert not _holds(path, "zanzibarquux")


def test_forgetting_that_a_reader_holds_up_is_finished_later(
    file_db: Database, path: Path, everywhere: Everywhere
) -> None:
    file_db.execute("PRAGMA busy_timeout = 20")
    with file_db.open_reader() as reader:
        reader.execute("BEGIN")
        reader.row("SELECT count(*) FROM chunks")
        complete = forget_documents(file_db, [everywhere.document.id])
        reader.execute("ROLLBACK")
    held = _holds(path, "zanzibarquux")
    file_db.close()

    with Database.open(path) as db:
        finished = finish_forgetting(db)

        assert (complete, held, finished) == (False, True, True)
        assert not _holds(path, "zanzibarquux")
        assert Settings(db).all() == {}
        assert finish_forgetting(db)
