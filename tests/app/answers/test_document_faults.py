"""Faults that people reported of other programs that answer from documents, each as a case of its whole kind.

Files go through the real parser into a real database; the passages for a question are gathered as the program does it.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from document_shelf import Shelf
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from small_pdf import write_pdf

from inglenook.app.answers.citations import attach, shown_citations
from inglenook.app.answers.turns import Ending, begin_turn, end_turn
from inglenook.storage.errors import InvalidValueError
from inglenook.storage.forget import forget_documents
from inglenook.storage.parsing.errors import ParsingError
from inglenook.storage.search import Search
from inglenook.storage.sources import Sources
from inglenook.storage.vectors import Vectors


def test_rag1_rag3_b14_deleted_document_is_neither_found_nor_cited_nor_left_in_the_file(shelf: Shelf) -> None:
    gone = shelf.add("A.txt", "The nonce word is quixelbrandt.")
    shelf.add("B.txt", "Nothing of note.")

    assert forget_documents(shelf.db, [gone])

    assert "quixelbrandt" not in str(shelf.found("What is the nonce word quixelbrandt?"))
    shelf.db.checkpoint()
    assert not any(b"quixelbrandt" in file.read_bytes() for file in shelf.path.parent.iterdir())


def test_rag2_of_two_documents_of_one_name_the_other_one_stays(shelf: Shelf) -> None:
    first = shelf.add("one/report.txt", "The heron is grey.")
    second = shelf.add("two/report.txt", "The bittern is brown.")

    shelf.documents.delete(first)

    assert shelf.found("Which colour is the bittern?", second) == ["The bittern is brown."]
    assert "heron" not in str(shelf.found("Which colour is the heron?", second))
    assert [document.id for document in shelf.documents.entries()] == [second]


def test_rag7_batch_of_another_size_than_its_vectors_is_refused_and_nothing_is_stored(shelf: Shelf) -> None:
    shelf.add("a.txt", "The heron is grey.")
    vectors = Vectors(shelf.db)
    pending = [chunk.chunk_id for chunk in vectors.chunks_without_vectors("m", 9)]

    with pytest.raises(InvalidValueError):
        vectors.add("m", pending, np.ones((len(pending) + 1, 4), np.float32))

    assert vectors.counts() == {}


@pytest.mark.parametrize(
    ("first", "second", "marker"),
    [
        ("How tall is Queen Amara of Zorb?", "And his mother?", "mother"),
        ("Who built the mill of Mell?", "And when?", "mill of Mell"),
        ("Shall I tell you about the mill of Mell?", "yes", "mill of Mell"),
    ],
)
def test_rag15_rag17_follow_up_finds_what_the_conversation_is_about(
    shelf: Shelf, first: str, second: str, marker: str
) -> None:
    shelf.add(
        "kin.txt",
        "Queen Amara of Zorb was tall.\n\nThe mother of King Otto was a weaver.\n\nThe mill of Mell was built by Ada in 1871.",
    )
    for number in range(30):
        shelf.add(f"{number}.txt", f"A filler about the weather of week {number}: rain, and then some sun.")

    found = shelf.ask(second, previous=first)

    assert not found.is_refusal
    assert marker in " ".join(hit.chunk.text for hit in found.candidates[:4])


def test_rag38_rag39_pages_of_sources_are_those_of_their_own_document(shelf: Shelf) -> None:
    long = shelf.add_file(
        write_pdf(shelf.folder / "long.pdf", *[[f"Page {n} of the survey of Mell."] for n in range(12)])
    )
    short = shelf.add_file(write_pdf(shelf.folder / "short.pdf", ["The mill of Zorb grinds rye."]))
    lengths = {long: 12, short: 1}

    hits = shelf.ask("Which page of the survey is this, and what does the mill of Zorb grind?").candidates

    sources = attach("The mill of Zorb grinds rye. Page 7 of the survey of Mell.", hits)

    assert len({source.document_id for source in sources}) == 2
    assert all(0 <= source.place.page_index < lengths[source.document_id] for source in sources)
    (mill,) = [source for source in sources if source.is_cited and "rye" in source.quote]
    assert (mill.document_id, mill.place.page_index) == (short, 0)


def test_rag43_b18_old_answer_opens_the_old_text_after_a_new_version_and_after_deletion(shelf: Shelf) -> None:
    id_ = shelf.add("a.txt", "The fee is 12 crowns.")
    old = shelf.documents.get(id_)
    turn = begin_turn(
        shelf.db, "What is the fee?", conversation_id=None, document_ids=[id_], model="m", sampling={}
    )
    sources = attach("The fee is 12 crowns.", shelf.ask("What is the fee?").candidates)
    end_turn(shelf.db, turn.reply.id, Ending("The fee is 12 crowns.", (), "stop"), sources)

    assert shelf.add("a.txt", "The fee is 15 crowns.") == id_
    (cited,) = [s for s in Sources(shelf.db).of_message(turn.reply.id) if s.is_cited]
    assert cited.quote == "The fee is 12 crowns."
    assert shelf.documents.page(old.version_id, cited.place.page_index).text == cited.quote  # type: ignore[union-attr]
    assert shelf.found("What is the fee?") == ["The fee is 15 crowns."]

    shelf.documents.delete(id_)
    (cited,) = [s for s in Sources(shelf.db).of_message(turn.reply.id) if s.is_cited]
    assert (cited.quote, cited.document_id) == ("The fee is 12 crowns.", None)


def test_rag47_file_that_was_only_touched_keeps_its_text_and_vectors(shelf: Shelf) -> None:
    id_ = shelf.add("a.txt", "The heron is grey.")
    vectors = Vectors(shelf.db)
    pending = [chunk.chunk_id for chunk in vectors.chunks_without_vectors("m", 9)]
    vectors.add("m", pending, np.ones((len(pending), 4), np.float32))
    path = Path(shelf.documents.get(id_).path)
    path.touch()

    assert shelf.add_file(path) == id_

    assert vectors.chunks_without_vectors("m", 9) == []


@pytest.mark.parametrize(
    ("question", "kind"),
    [
        ("please comment on the document", "summary"),
        ("Summarise this", "summary"),
        ("Fasse das Dokument zusammen", "summary"),
        ("请总结这份文件", "summary"),
        ("list the files you have", "listing"),
        ("how many functions are there in total?", "counting"),
    ],
)
def test_b1_b2_b3_request_for_the_whole_reads_it_all_or_says_what_was_read(
    shelf: Shelf, question: str, kind: str
) -> None:
    names = [f"source {number}.txt" for number in range(12)]
    for name in names:
        shelf.add(name, "\n\n".join(f"def function_{name}_{i}(): computes the value {i}." for i in range(30)))

    evidence = shelf.ask(question)

    assert not evidence.is_refusal
    if kind == "listing":
        assert all(name in evidence.answer for name in names)
    else:
        assert any("read" in notice.lower() for notice in evidence.notices)


def test_b5_meaning_that_the_document_gives_is_found_first(shelf: Shelf) -> None:
    shelf.add(
        "paper.md",
        "# RAG\n\nWe call our models retrieval-augmented generation (RAG): a retriever and a generator.",
    )
    shelf.add("laundry.md", "# Cleaning\n\nA rag is a piece of old cloth, and rags are for cleaning.")

    best = shelf.ask("What does RAG mean in the paper?").candidates[0]

    assert best.chunk.document_name == "paper.md"


def test_b6_b7_ticked_document_reaches_the_prompt_and_an_unticked_one_never_does(shelf: Shelf) -> None:
    ticked = shelf.add("ticked.txt", "The nonce word is marmoreal.")
    shelf.add("unticked.txt", "The nonce word is sesquipedal.")

    for whole_bytes in (0, 100_000):
        evidence = shelf.ask("What is the nonce word?", ticked, whole_bytes=whole_bytes)
        given = " ".join(p.text for d in evidence.whole for p in d.pages)
        given += " ".join(hit.chunk.text for hit in evidence.candidates)

        assert "marmoreal" in given
        assert "sesquipedal" not in given


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("scan.pdf", b"", "0 bytes"),
        ("old.doc", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600), "cannot be read yet"),
        ("sheet.ods", b"PK\x03\x04" + bytes(60), ""),
        ("data.bin", bytes(range(256)) * 20, ""),
        ("blank.txt", b" \n\t\n", "blank"),
    ],
)
def test_b9_b11_what_holds_no_text_is_never_ready_and_says_why(
    shelf: Shelf, name: str, content: bytes, words: str
) -> None:
    with pytest.raises(ParsingError) as refused:
        shelf.add(name, content)

    assert words in str(refused.value)
    assert str(refused.value).count(".") >= 1
    assert all(document.status != "ready" for document in shelf.documents.entries())


@pytest.mark.parametrize(
    ("content", "value"),
    [
        ("Name;Preis\nMüller;5€\n".encode("cp1252"), "Müller | 5€"),
        (b"Name;Preis\nM\x81ller;5\x80\n", "5"),
        ("名前,値段\n山田,五百円\n鈴木,三百円\n".encode("cp932"), "山田 | 五百円"),
        ("\ufeffName\tPreis\nMüller\t5\n".encode("utf-16-le"), "Müller | 5"),
    ],
)
def test_b10_tables_of_other_encodings_are_read(shelf: Shelf, content: bytes, value: str) -> None:
    id_ = shelf.add("prices.csv", content)
    document = shelf.documents.get(id_)

    assert value in " ".join(page.text for page in shelf.documents.pages(document.version_id))


def test_b13_value_of_a_row_far_down_is_found_with_its_header(shelf: Shelf) -> None:
    rows = [f"Customer {n};{1000 + n};Town {n}" for n in range(1, 501)]
    shelf.add("customers.csv", "\n".join(["Name;Debt;Place", *rows]))

    best = shelf.ask("What is the debt of Customer 400?").candidates[0].chunk

    assert best.text.startswith("Name | Debt | Place\n")
    assert "Customer 400 | 1400 | Town 400" in best.text.split("\n")


def test_b15_b19_deleted_file_can_be_added_again_and_twice_is_once(shelf: Shelf) -> None:
    first = shelf.add("A.md", "The heron is grey.")
    assert shelf.add("copy of A.md", "The heron is grey.") == first
    shelf.documents.delete(first)

    again = shelf.add("A.md", "The heron is grey.")

    assert len(shelf.documents.entries()) == 1
    assert shelf.found("Which colour is the heron?", again) == ["The heron is grey."]


def test_b21_b22_only_the_page_that_supports_the_answer_is_cited(shelf: Shelf) -> None:
    for number in range(20):
        pages = [
            [f"Paragraph {page} of paper {number} is about the weather in the valley."] for page in range(10)
        ]
        if number == 13:
            pages[6] = ["The toll of the bridge of Tarvo is 34 crowns."]
        shelf.add_file(write_pdf(shelf.folder / f"paper {number}.pdf", *pages))
    question = "What is the toll of the bridge of Tarvo in the valley?"

    sources = attach("The toll is 34 crowns.", shelf.ask(question).candidates, question)

    cited = [source for source in sources if source.is_cited]
    assert [(s.document_name, s.place.page_index) for s in cited] == [("paper 13.pdf", 6)]
    assert any(not source.is_cited for source in sources)


def test_b23_deleting_some_of_many_leaves_the_others_searchable_by_both_ways(shelf: Shelf) -> None:
    ids = [shelf.add(f"{n}.txt", f"Bird number {n} is called name{n}.") for n in range(10)]
    vectors = Vectors(shelf.db)
    pending = [chunk.chunk_id for chunk in vectors.chunks_without_vectors("m", 99)]
    vectors.add("m", pending, np.eye(10, 16, dtype=np.float32))

    for id_ in (ids[1], ids[4], ids[9]):
        shelf.documents.delete(id_)

    search = Search(shelf.db)
    hits = search.search("name5", limit=20, vector=np.eye(10, 16, dtype=np.float32)[5], embedder="m")
    assert hits[0].chunk.document_name == "5.txt"
    assert {hit.chunk.document_id for hit in hits} <= set(ids) - {ids[1], ids[4], ids[9]}
    assert shelf.db.check() == []


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.text(max_size=60))
def test_rag19_rag20_any_text_can_be_asked(shelf: Shelf, question: str) -> None:
    document = shelf.add("a.txt", "The heron, it is said, is grey: is it not?")

    found = shelf.ask(question).candidates

    assert {hit.chunk.document_id for hit in found} <= {document}
    assert shelf.found("Is the heron grey?") == ["The heron, it is said, is grey: is it not?"]


def test_cited_places_have_one_number_each_however_many_sentences_rest_on_them(shelf: Shelf) -> None:
    """rag 42: the right answer, the wrong citation after later jumps."""
    shelf.add("a.txt", "The mill is 12 metres high.\n\nThe mill was built in 1871.")
    reply = "It was built in 1871. The mill is 12 metres high. Again: the mill is 12 metres high."
    turn = begin_turn(shelf.db, "The mill?", conversation_id=None, document_ids=[], model="m", sampling={})
    sources = attach(reply, shelf.ask("How high is the mill?").candidates)
    end_turn(shelf.db, turn.reply.id, Ending(reply, (), "stop"), sources)

    shown = shown_citations(reply, Sources(shelf.db).of_message(turn.reply.id))

    assert [(citation.number, citation.source.quote) for citation in shown] == [
        (1, "The mill was built in 1871."),
        (2, "The mill is 12 metres high."),
    ]
