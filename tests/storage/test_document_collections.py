"""Collections of documents."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from inglenook.storage.database import Database
from inglenook.storage.document_collections import MAX_NAME_CHARS, Collection, DocumentCollections
from inglenook.storage.documents import Documents
from inglenook.storage.errors import InvalidValueError, NotFoundError
from inglenook.storage.forget import forget_documents
from inglenook.storage.records import Document

AddDocument = Callable[..., Document]


@pytest.fixture
def ids(add_document: AddDocument) -> list[int]:
    return [add_document("text", path=f"/{n}.txt", sha256=str(n)).id for n in range(3)]


def test_documents_are_gathered_once_under_a_name(db: Database, ids: list[int]) -> None:
    collections = DocumentCollections(db)

    collections.put("  Tax \n 2024 ", ids[:2])
    collections.put("TAX 2024", [*ids, 999])
    collections.put("Letters", ids[:1])

    assert collections.entries() == [Collection("Letters", (ids[0],)), Collection("Tax 2024", tuple(ids))]


def test_document_in_the_trash_is_not_shown_and_comes_back(db: Database, ids: list[int]) -> None:
    collections = DocumentCollections(db)
    collections.put("Letters", ids[:1])

    Documents(db).trash(ids[0])
    assert collections.entries() == []

    Documents(db).restore(ids[0])
    assert collections.entries() == [Collection("Letters", (ids[0],))]


def test_collection_goes_with_its_last_document(db: Database, ids: list[int]) -> None:
    collections = DocumentCollections(db)
    collections.put("Letters", ids[:2])
    collections.take_out("letters", [ids[1]])
    collections.put("Empty", [999])

    Documents(db).delete(ids[0])

    assert db.rows("SELECT name FROM collections") == []
    with pytest.raises(NotFoundError, match="no collection “Letters”"):
        collections.take_out("Letters", ids)


@pytest.mark.parametrize("name", ["", "  \n", "x" * (MAX_NAME_CHARS + 1)])
def test_name_that_is_none_is_refused(db: Database, ids: list[int], name: str) -> None:
    with pytest.raises(InvalidValueError, match="1 to 100 characters"):
        DocumentCollections(db).put(name, ids)

    assert db.rows("SELECT name FROM collections") == []


def test_forgotten_document_leaves_no_collection_name(
    file_db: Database, path: Path, documents_of: Callable[[Database], AddDocument]
) -> None:
    document = documents_of(file_db)("some text")
    DocumentCollections(file_db).put("Quillwort dossier", [document.id])

    assert forget_documents(file_db, [document.id])

    assert b"Quillwort" not in path.read_bytes()
