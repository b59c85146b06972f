"""A receipt says where nothing of a forgotten document is left, and is right about it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from inglenook.storage.backup import back_up, migration_backup_path
from inglenook.storage.database import Database
from inglenook.storage.forget_receipt import forget_with_receipt
from inglenook.storage.records import Document
from inglenook.storage.settings import Settings
from inglenook.storage.vectors import Vectors

AddDocument = Callable[..., Document]
_SECRET = (
    "The zanzibarite deposits near Quorvale were surveyed by Miss Thistlewood in the wettest of summers."
)


def test_every_file_is_searched_and_none_holds_the_text(
    file_db: Database, path: Path, documents_of: Callable[[Database], AddDocument]
) -> None:
    document = documents_of(file_db)(_SECRET, "page two of it, with nothing uncommon", title="Survey")
    vectors = Vectors(file_db)
    ids = [waiting.chunk_id for waiting in vectors.chunks_without_vectors("m", 9)]
    vectors.add("m", ids, np.eye(2, 4, dtype=np.float32))
    backup = migration_backup_path(path, 0)
    back_up(file_db, backup)

    receipt = forget_with_receipt(file_db, [document.id])

    assert receipt.is_clean
    assert (receipt.names, receipt.num_chunks, receipt.num_vectors) == (("a.pdf",), 2, 2)
    assert receipt.num_samples >= 3
    assert str(path) in [file.path for file in receipt.files]
    assert receipt.removed_backups == (str(backup),)
    assert b"zanzibarite" not in path.read_bytes()


def test_what_others_say_too_is_set_aside(
    file_db: Database, documents_of: Callable[[Database], AddDocument]
) -> None:
    documents = documents_of(file_db)
    document = documents(_SECRET, path="/a", sha256="1" * 64)
    documents(f"A copy: {_SECRET}", path="/b", sha256="2" * 64)

    receipt = forget_with_receipt(file_db, [document.id])

    assert receipt.is_clean
    assert (receipt.num_samples, receipt.num_shared) == (0, 2)


def test_a_reader_that_holds_old_pages_makes_it_incomplete(
    file_db: Database, documents_of: Callable[[Database], AddDocument]
) -> None:
    document = documents_of(file_db)(_SECRET)
    # The patience for a reader, seconds by default, says nothing about what happens when it has run out.
    file_db.execute("PRAGMA busy_timeout = 50")
    with file_db.open_reader() as reader:
        reader.connection.execute("BEGIN")
        reader.rows("SELECT count(*) FROM chunks")

        receipt = forget_with_receipt(file_db, [document.id])

        reader.connection.execute("ROLLBACK")
    assert not receipt.is_complete
    assert not receipt.is_clean


def test_a_setting_that_quotes_it_is_no_fault_of_forgetting(
    file_db: Database, documents_of: Callable[[Database], AddDocument]
) -> None:
    document = documents_of(file_db)(_SECRET)
    Settings(file_db).set("note", _SECRET)

    assert forget_with_receipt(file_db, [document.id]).num_shared == 2


@pytest.mark.parametrize(
    "text", ["القهوة تزرع في اليمن", "猫は一日に十六時間眠る。", "see me at 9", "a b\nc d e f g\nh"]
)
def test_a_short_text_without_long_words_is_looked_for_too(
    file_db: Database, documents_of: Callable[[Database], AddDocument], text: str
) -> None:
    document = documents_of(file_db)(text)

    receipt = forget_with_receipt(file_db, [document.id])

    assert receipt.is_clean
    assert receipt.num_samples in (1, 2)


def test_forgetting_nothing_is_fine(db: Database) -> None:
    assert forget_with_receipt(db, [7]).is_clean
