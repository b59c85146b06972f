"""What a question is answered from."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from inglenook.app.answers.retrieval import MAX_PER_DOCUMENT, Evidence, gather, is_follow_up
from inglenook.storage.database import Database
from inglenook.storage.documents import Documents
from inglenook.storage.parsing.document import Chunk, ParsedDocument, ParsedPage
from inglenook.storage.search import Search


@pytest.fixture
def db() -> Iterator[Database]:
    with Database.in_memory() as database:
        yield database


def add(db: Database, name: str, *pages: str) -> int:
    sha256 = name.ljust(64, "0")
    document, _ = Documents(db).add(f"/{name}", name=name, sha256=sha256, size_bytes=1, modified_at_ns=1)
    parsed = ParsedDocument(
        kind="pdf",
        sha256=sha256,
        size_bytes=1,
        pages=tuple(ParsedPage(index=i, text=text) for i, text in enumerate(pages)),
        chunks=tuple(
            Chunk(page_index=i, page_label=None, start=0, end=len(text), text=text, context="")
            for i, text in enumerate(pages)
        ),
    )
    Documents(db).store(document.version_id, parsed)
    return document.id


def ask(db: Database, question: str, *ids: int, whole_bytes: int = 0, previous: str = "") -> Evidence:
    return gather(db, Search(db), question, ids, whole_bytes=whole_bytes, previous_question=previous)


def pages_of(evidence: Evidence) -> list[int]:
    return [hit.chunk.place.page_index for hit in evidence.candidates]


def test_a_small_document_is_read_whole_and_every_passage_is_a_candidate(db: Database) -> None:
    document_id = add(db, "a", "Nothing here.", "The tower of Zorb.")

    evidence = ask(db, "Where is Zorb?", document_id, whole_bytes=1000)

    assert [len(document.pages) for document in evidence.whole] == [2]
    assert pages_of(evidence) == [1, 0]


def test_documents_that_are_too_large_together_are_searched(db: Database) -> None:
    first, second = add(db, "a", "The tower of Zorb. " * 20), add(db, "b", "The mill of Mell. " * 20)

    evidence = ask(db, "Where is Zorb?", first, second, whole_bytes=600)

    assert evidence.whole == ()
    assert [hit.chunk.document_id for hit in evidence.candidates] == [first]


def test_only_the_ticked_documents_are_searched(db: Database) -> None:
    first, _ = add(db, "a", "The tower of Zorb."), add(db, "b", "The tower of Zorb, again.")

    assert [hit.chunk.document_id for hit in ask(db, "Zorb?", first).candidates] == [first]


def test_no_document_takes_all_places_from_the_others(db: Database) -> None:
    first = add(db, "a", *(f"Zorb {n} has thing{n} and thing{n + 100}." for n in range(20)))
    second = add(db, "b", "Of Zorb little is said in this much longer text about other matters.")

    evidence = ask(db, "Zorb", first, second)

    found = [hit.chunk.document_id for hit in evidence.candidates]
    assert found.count(first) == MAX_PER_DOCUMENT
    assert found.count(second) == 1


def test_near_duplicates_are_dropped(db: Database) -> None:
    document_id = add(db, "a", "The tower of Zorb is high.", "The tower of Zorb is high.", "Zorb has a mill.")

    assert pages_of(ask(db, "tower Zorb", document_id)) == [0, 2]


def test_a_question_that_leans_on_the_one_before_is_searched_with_it(db: Database) -> None:
    pages = [f"In 2023 the mill of Mell{n} was repaired." for n in range(30)]
    document_id = add(db, "a", *pages, "In 2023 the tower of Zorb was repaired.")

    alone = ask(db, "And in 2023?", document_id)
    together = ask(db, "And in 2023?", document_id, previous="What happened to the tower of Zorb in 2022?")

    assert 30 not in pages_of(alone)[:3]
    assert 30 in pages_of(together)[:3]


@pytest.mark.parametrize(
    ("question", "leans"),
    [
        ("And in 2023?", True),
        ("Why?", True),
        (
            "What did the annual report of the harbour authority say about dredging costs in the northern basin?",
            False,
        ),
        (
            "What did the annual report of the harbour authority say about them and their northern basin in spring?",
            True,
        ),
    ],
)
def test_a_question_is_known_to_lean(question: str, leans: bool) -> None:
    assert is_follow_up(question) == leans


def _add_unread(db: Database) -> list[int]:
    documents = Documents(db)
    file = {"size_bytes": 1, "modified_at_ns": 1}
    waiting, _ = documents.add("/w", name="w.pdf", sha256="w" * 64, **file)
    failed, _ = documents.add("/f", name="f.pdf", sha256="f" * 64, **file)
    documents.fail_version(failed.version_id, "No text on 3 of 3 pages.")
    locked, _ = documents.add("/l", name="l.pdf", sha256="l" * 64, **file)
    documents.fail_version(locked.version_id, "This PDF is encrypted.", needs_password=True)
    return [waiting.id, failed.id, locked.id, 99]


def test_what_cannot_be_searched_is_said(db: Database) -> None:
    readable = add(db, "r.pdf", "The zorb is a large ball.")

    evidence = ask(db, "Zorb?", readable, *_add_unread(db))

    assert evidence.num_documents == 1
    assert evidence.notices == (
        "w.pdf is still being read and was not searched yet.",
        "f.pdf was not searched. No text on 3 of 3 pages.",
        "l.pdf was not searched. This PDF is encrypted.",
        "A ticked document has been deleted and was not searched.",
    )


def test_where_none_can_be_searched_the_model_is_not_asked_from_memory(db: Database) -> None:
    ids = _add_unread(db)

    evidence = ask(db, "Zorb?", *ids)

    assert evidence.is_refusal
    assert evidence.answer.startswith("None of the ticked documents can be searched. w.pdf is still")
    assert "l.pdf was not searched. This PDF is encrypted." in evidence.answer
    assert gather(db, Search(db), "Zorb?", ids, whole_bytes=0, may_refuse=False).answer == ""
    assert ask(db, "Zorb?", 99) == Evidence(
        notices=("A ticked document has been deleted and was not searched.",)
    )


@pytest.mark.parametrize("question", ["", "?", '"', "AND OR NOT", "a" * 10_000, "*(){}[]^\x00"])
def test_any_question_can_be_asked(db: Database, question: str) -> None:
    document_id = add(db, "a", "The tower of Zorb.")

    assert ask(db, question, document_id).num_documents == 1


def test_a_question_whose_answer_no_passage_can_hold_is_refused_with_the_nearest_passages(
    db: Database,
) -> None:
    document_id = add(db, "a.pdf", "The mill of Mell grinds rye.", "The tower of Zorb is 34 metres high.")

    evidence = ask(db, "How deep is the harbour of Zorb?", document_id)

    assert evidence.is_refusal
    assert "“a.pdf”" in evidence.answer
    assert pages_of(evidence)[0] == 1


def test_it_is_not_refused_where_the_model_is_to_be_asked_in_any_case_or_as_a_follow_up(db: Database) -> None:
    document_id = add(db, "a.pdf", "The mill of Mell grinds rye.", "The tower of Zorb is 34 metres high.")

    forced = gather(
        db, Search(db), "How deep is the harbour of Zorb?", [document_id], whole_bytes=0, may_refuse=False
    )
    follow_up = ask(
        db, "And how deep is its harbour?", document_id, previous="How high is the tower of Zorb?"
    )

    assert not forced.is_refusal
    assert not follow_up.is_refusal


def test_files_pages_and_words_are_counted_without_a_model(db: Database) -> None:
    first = add(db, "a.pdf", "A heron. Herons sleep.", "Nothing.", "The HERON wakes.")
    second = add(db, "b.pdf", "Rye.")

    assert ask(db, "List the files", first, second).answer.splitlines() == [
        "There are 2 documents:",
        "- a.pdf (3 pages)",
        "- b.pdf (1 page)",
    ]
    assert ask(db, "How many pages does it have?", first).answer == "“a.pdf” has 3 pages."
    assert ask(db, "How often is “heron” mentioned?", first).answer == "“heron” stands 2 times in “a.pdf”."


def test_a_summary_is_made_from_the_whole_where_it_fits(db: Database) -> None:
    document_id = add(db, "a.pdf", "One.", "Two.")

    assert ask(db, "Summarise it", document_id, whole_bytes=1000).whole


def test_a_summary_of_what_is_too_long_reads_from_all_over_it_and_says_so(db: Database) -> None:
    document_id = add(db, "a.pdf", *(f"Page {i}. " * 40 for i in range(100)))

    evidence = ask(db, "Summarise the document", document_id, whole_bytes=500)

    assert not evidence.whole
    assert pages_of(evidence) == [0, 20, 40, 59, 79, 99]
    assert evidence.notices == (
        "This was not answered from the whole: 6 of 100 pages were read, spread evenly, because the rest does not fit "
        "into the model's context. Ask about one part for an exact answer.",
    )
