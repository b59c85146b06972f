"""Documents, their versions, pages and chunks."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from inglenook.storage.conversations import Conversations
from inglenook.storage.database import Database
from inglenook.storage.documents import Documents, slices
from inglenook.storage.errors import InvalidValueError, NotFoundError
from inglenook.storage.messages import Messages
from inglenook.storage.parsing.document import ParsedDocument
from inglenook.storage.records import Document, NewSource, Place
from inglenook.storage.search import Search
from inglenook.storage.sources import Sources

AddDocument = Callable[..., Document]


def _add(db: Database, path: str, sha256: str) -> tuple[Document, bool]:
    return Documents(db).add(path, name=path[1:], sha256=sha256, size_bytes=1, modified_at_ns=2)


def _found(db: Database, question: str) -> list[str]:
    return [hit.chunk.text for hit in Search(db).search(question, limit=9)]


def test_same_bytes_twice_at_once_are_one_document(db: Database) -> None:
    first, is_new = _add(db, "/a", "1")
    again, is_new_again = _add(db, "/copy", "1")

    assert (first.id, first.version_id) == (again.id, again.version_id)
    assert (is_new, is_new_again) == (True, True)  # nobody has read it yet
    assert len(Documents(db).entries()) == len(Documents(db).waiting()) == 1


def test_read_document_has_nothing_to_read_again(db: Database, add_document: AddDocument) -> None:
    document = add_document("a heron", sha256="1")

    again, is_new = _add(db, "/elsewhere", "1")

    assert (again.id, again.path, is_new) == (document.id, "/papers/a.pdf", False)


def test_moved_file_keeps_its_document(db: Database, add_document: AddDocument) -> None:
    document = add_document("a heron", sha256="1")
    Documents(db).set_missing(document.id, True)
    flagged = Documents(db).get(document.id).is_missing, _found(db, "heron")

    moved, _ = _add(db, "/new place", "1")

    assert flagged == (True, ["a heron"])
    assert (moved.id, moved.path, moved.is_missing) == (document.id, "/new place", False)


def test_new_version_replaces_the_old_one_when_it_is_complete(
    db: Database, parsed_document: Callable[..., ParsedDocument], add_document: AddDocument
) -> None:
    documents = Documents(db)
    old = add_document("old heron", "old page", path="/a", sha256="1")
    new, is_new = _add(db, "/a", "2")
    parsed = parsed_document("new heron", sha256="2")

    documents.begin_version(new.version_id)
    for pages, chunks in slices(parsed):
        documents.add_pages(new.version_id, pages, chunks)
    during = _found(db, "heron"), documents.get(old.id).status
    documents.finish_version(new.version_id, kind="pdf", title="T", notices=["no text on 1 of 2 pages"])

    got = documents.get(old.id)
    assert (new.id, is_new, during) == (old.id, True, (["old heron"], "parsing"))
    assert _found(db, "heron") == ["new heron"]
    assert (got.status, got.kind, got.title, got.notices) == (
        "ready",
        "pdf",
        "T",
        ("no text on 1 of 2 pages",),
    )
    assert (got.num_pages, got.num_chunks) == (1, 1)
    assert documents.page(old.version_id, 0) is None


def test_edit_that_is_undone_is_read_again(db: Database, add_document: AddDocument) -> None:
    add_document("first", path="/a", sha256="1")
    add_document("second", path="/a", sha256="2")

    back, is_new = _add(db, "/a", "1")
    add_document("first", path="/a", sha256="1")

    assert (back.status, is_new) == ("waiting", True)
    assert (_found(db, "first"), _found(db, "second")) == (["first"], [])
    assert len(Documents(db).entries()) == 1


def test_first_version_is_searched_while_it_is_read(
    db: Database, parsed_document: Callable[..., ParsedDocument]
) -> None:
    documents = Documents(db)
    document, _ = _add(db, "/a", "1")
    parsed = parsed_document(*[f"page {n}" for n in range(120)], sha256="1")

    documents.begin_version(document.version_id)
    pages, chunks = next(slices(parsed))
    documents.add_pages(document.version_id, pages, chunks)

    assert documents.get(document.id).num_pages == 50
    assert len(_found(db, "page")) == 9


def test_reading_that_was_cut_off_starts_over(
    db: Database, parsed_document: Callable[..., ParsedDocument], add_document: AddDocument
) -> None:
    documents = Documents(db)
    document, _ = _add(db, "/papers/a.pdf", "1")
    documents.begin_version(document.version_id)
    for pages, chunks in slices(parsed_document("a heron", sha256="1")):
        documents.add_pages(document.version_id, pages, chunks)

    requeued = documents.requeue_unfinished()
    waiting = [d.id for d in documents.waiting()]
    add_document("a heron", sha256="1")

    assert (requeued, waiting) == (1, [document.id])
    assert _found(db, "heron") == ["a heron"]
    assert documents.waiting() == []


def test_failed_reading_says_why_and_can_be_tried_again(db: Database) -> None:
    documents = Documents(db)
    document, _ = _add(db, "/a", "1")
    documents.begin_version(document.version_id)
    documents.fail_version(document.version_id, "no text on 3 of 3 pages")
    failed = documents.get(document.id)

    again, is_new = _add(db, "/a", "1")

    assert (failed.status, failed.error) == ("failed", "no text on 3 of 3 pages")
    assert (again.status, again.error, is_new) == ("waiting", "", True)


def test_failed_new_version_leaves_the_old_one_searched(db: Database, add_document: AddDocument) -> None:
    add_document("old heron", path="/a", sha256="1")
    new, _ = _add(db, "/a", "2")

    Documents(db).fail_version(new.version_id, "damaged")

    assert _found(db, "heron") == ["old heron"]
    assert Documents(db).get(new.id).error == "damaged"


def test_deleted_document_is_nowhere(db: Database, add_document: AddDocument) -> None:
    document = add_document("a heron", "и цапля")

    Documents(db).delete(document.id)
    Documents(db).delete(document.id)

    assert (_found(db, "heron"), _found(db, "цапля")) == ([], [])
    for table in ("documents", "document_versions", "pages", "chunks"):
        assert db.row(f"SELECT count(*) FROM {table}") == (0,)
    assert db.check() == []
    with pytest.raises(NotFoundError, match="no document 1"):
        Documents(db).get(document.id)


def test_document_deleted_while_it_is_read_is_no_fault(
    db: Database, parsed_document: Callable[..., ParsedDocument]
) -> None:
    document, _ = _add(db, "/a", "1")
    Documents(db).delete(document.id)

    with pytest.raises(NotFoundError, match="deleted while it was being read"):
        Documents(db).store(document.version_id, parsed_document("a", sha256="1"))

    assert db.row("SELECT count(*) FROM chunks") == (0,)


def test_file_that_changed_while_it_was_read_is_refused(
    db: Database, parsed_document: Callable[..., ParsedDocument]
) -> None:
    document, _ = _add(db, "/a", "1")

    with pytest.raises(InvalidValueError, match="changed while it was being read"):
        Documents(db).store(document.version_id, parsed_document("a", sha256="2"))


def test_pages_come_back_in_order(db: Database, add_document: AddDocument) -> None:
    document = add_document("one", "two \ud800", "three")

    pages = Documents(db).pages(document.version_id)

    assert [(page.index, page.label, page.text) for page in pages] == [
        (0, "1", "one"),
        (1, "2", "two \ufffd"),
        (2, "3", "three"),
    ]
    assert Documents(db).page(document.version_id, 1) == pages[1]
    assert Documents(db).page(document.version_id, 7) is None


def test_trash_hides_and_adding_again_gives_back(db: Database, add_document: AddDocument) -> None:
    document = add_document("a heron", sha256="1")
    documents = Documents(db)

    documents.trash(document.id)
    hidden = documents.entries(), [d.id for d in documents.entries(trashed=True)], _found(db, "heron")
    _add(db, "/papers/a.pdf", "1")

    assert hidden == ([], [document.id], [])
    assert _found(db, "heron") == ["a heron"]
    assert documents.find("1") == documents.get(document.id)
    assert documents.find("9") is None


def test_pages_that_answers_cite_stay_when_a_new_version_comes_and_go_with_the_document(
    db: Database, add_document: AddDocument
) -> None:
    old = add_document("cited page", "other page", path="/a", sha256="1")
    conversation_id = Conversations(db).create("t")
    reply_id = Messages(db).begin_reply(
        conversation_id,
        parent_id=Messages(db).add(conversation_id, "user", "q", parent_id=None),
        model="m",
        sampling={},
    )
    place = Place(0, "1", 0, 5)
    Sources(db).replace(
        reply_id, [NewSource(old.id, old.version_id, None, old.name, place, "cited", 1.0, True, (0, 1))]
    )

    add_document("new page", path="/a", sha256="2")

    documents = Documents(db)
    kept = documents.page(old.version_id, 0)
    assert kept is not None
    assert kept.text == "cited page"
    assert documents.page(old.version_id, 1) is None
    assert _found(db, "cited") == []

    documents.delete(old.id)

    assert db.row("SELECT count(*) FROM pages") == (0,)


def test_chosen_encoding_is_kept_and_passes_on_to_the_next_version(
    db: Database, add_document: AddDocument
) -> None:
    documents = Documents(db)
    first = add_document("text")

    chosen = documents.choose_encoding(first.id, "cp866")
    assert (chosen.chosen_encoding, chosen.status) == ("cp866", "waiting")
    documents.finish_version(first.version_id, encoding="cp866", is_encoding_guessed=False)

    assert documents.get(first.id).encoding == "cp866"
    second = add_document("other text", sha256="1" * 64)
    assert (second.id, second.chosen_encoding) == (first.id, "cp866")


def test_locked_version_waits_for_its_password_and_is_queued_when_added_again(db: Database) -> None:
    documents = Documents(db)
    file = {"name": "a.pdf", "sha256": "0" * 64, "size_bytes": 1, "modified_at_ns": 1}
    document, _ = documents.add("/a.pdf", **file)

    documents.fail_version(document.version_id, "This PDF is encrypted.", needs_password=True)

    assert documents.get(document.id).status == "locked"
    assert documents.waiting() == []
    again, is_to_be_read = documents.add("/a.pdf", **file)
    assert (again.status, is_to_be_read) == ("waiting", True)
