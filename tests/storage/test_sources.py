"""The sources of answers, which outlive their documents."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from inglenook.storage.conversations import Conversations
from inglenook.storage.database import Database
from inglenook.storage.documents import Documents
from inglenook.storage.messages import Messages
from inglenook.storage.records import FORGOTTEN, Document, NewSource
from inglenook.storage.search import Search
from inglenook.storage.sources import Sources

AddDocument = Callable[..., Document]


@pytest.fixture
def answer(db: Database) -> int:
    return Messages(db).add(Conversations(db).create(), "assistant", "It stands.", parent_id=None)


def _source(db: Database, question: str) -> NewSource:
    chunk = Search(db).search(question, limit=1)[0].chunk
    return NewSource(
        chunk.document_id,
        chunk.version_id,
        chunk.id,
        chunk.document_name,
        chunk.place,
        chunk.text,
        score=0.5,
        is_cited=True,
        answer_range=(0, 10),
    )


def test_source_comes_back_as_it_was(db: Database, add_document: AddDocument, answer: int) -> None:
    add_document("nothing", "a heron stands")
    source = _source(db, "heron")

    Sources(db).replace(answer, [source, source])
    Sources(db).replace(answer, [source])

    (got,) = Sources(db).of_message(answer)
    assert (got.document_id, got.version_id, got.chunk_id) == (
        source.document_id,
        source.version_id,
        source.chunk_id,
    )
    assert (got.document_name, got.place, got.quote) == ("a.pdf", source.place, "a heron stands")
    assert (got.score, got.is_cited, got.answer_range) == (0.5, True, (0, 10))
    assert Sources(db).of_conversation(1) == {answer: [got]}


def test_source_survives_a_new_version_and_the_deletion(
    db: Database, add_document: AddDocument, answer: int
) -> None:
    document = add_document("a heron stands", sha256="1")
    Sources(db).replace(answer, [_source(db, "heron")])

    add_document("all new", sha256="2")
    (after_edit,) = Sources(db).of_message(answer)
    Documents(db).delete(document.id)
    (after_deletion,) = Sources(db).of_message(answer)

    assert (after_edit.document_id, after_edit.version_id, after_edit.chunk_id) == (1, 1, None)
    assert (after_deletion.document_id, after_deletion.version_id) == (None, None)
    assert after_deletion.quote == after_edit.quote == "a heron stands"
    assert after_deletion.place == after_edit.place


def test_quote_of_a_document_that_went_meanwhile_is_not_stored(
    db: Database, add_document: AddDocument, answer: int
) -> None:
    document = add_document("a heron stands")
    source = _source(db, "heron")
    Documents(db).delete(document.id)

    Sources(db).replace(answer, [source])

    (got,) = Sources(db).of_message(answer)
    assert (got.quote, got.document_name, got.document_id) == (FORGOTTEN, FORGOTTEN, None)


def test_sources_of_a_message_that_went_meanwhile_are_dropped(
    db: Database, add_document: AddDocument, answer: int
) -> None:
    add_document("a heron stands")
    source = _source(db, "heron")
    Messages(db).delete(answer)

    Sources(db).replace(answer, [source])

    assert Sources(db).of_message(answer) == []
