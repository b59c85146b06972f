"""One turn about documents, with an engine played by hand: what goes in, what is cited, checked and refused."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from answering_desk import AnsweringDesk, read, say
from encoder_record import installed_encoder
from fake_client import Asked
from pytestqt.qtbot import QtBot

from inglenook.app.answers.answering import open_conversation
from inglenook.app.answers.open_turn import UNSUPPORTED
from inglenook.storage.database import Database
from inglenook.storage.documents import Documents
from inglenook.storage.parsing.document import Chunk, ParsedDocument, ParsedPage


@pytest.fixture
def desk(qtbot: QtBot, tmp_path: Path) -> Iterator[AnsweringDesk]:
    desk = AnsweringDesk(tmp_path / "history.db").start(qtbot)
    yield desk
    desk.close()


def add_document(qtbot: QtBot, desk: AnsweringDesk, *pages: str) -> int:
    parsed = ParsedDocument(
        kind="text",
        sha256="0" * 64,
        size_bytes=1,
        pages=tuple(ParsedPage(index=i, text=text) for i, text in enumerate(pages)),
        chunks=tuple(
            Chunk(page_index=i, page_label=None, start=0, end=len(text), text=text, context="")
            for i, text in enumerate(pages)
        ),
    )

    def work(db: Database) -> int:
        document, _ = Documents(db).add(
            "/a.txt", name="a.txt", sha256="0" * 64, size_bytes=1, modified_at_ns=1
        )
        Documents(db).store(document.version_id, parsed)
        return document.id

    ids: list[int] = []
    desk.tasks.write(work, ids.append)
    qtbot.waitUntil(lambda: bool(ids))
    return ids[0]


def test_passages_refused_as_too_long_are_fewer_the_next_time(qtbot: QtBot, desk: AnsweringDesk) -> None:
    pages = ["The tower of Zorb is high. " + f"w{n} " * 90 for n in range(40)]
    document_id = add_document(qtbot, desk, *pages)
    sizes: list[int] = []

    def refuse_large(asked: Asked) -> None:
        sizes.append(len(asked.what.messages[-1]["content"]))
        if sizes[-1] > 1500:
            asked.fail("ContextLengthError", "The prompt has 3,000 tokens.")
        else:
            say("Short.")(asked)

    desk.client.answers = refuse_large
    desk.answering.ask("How high is the tower of Zorb?", document_ids=[document_id])
    qtbot.waitUntil(lambda: bool(desk.answers))

    assert sizes == sorted(sizes, reverse=True)
    assert len(sizes) > 1
    assert desk.answers[0].reply.text == "Short."
    assert "passages fit into the model's context" in desk.answers[0].notices[0]


def test_a_document_that_is_small_goes_in_whole_and_its_page_is_cited(
    qtbot: QtBot, desk: AnsweringDesk
) -> None:
    document_id = add_document(qtbot, desk, "Page one is empty talk.", "The tower of Zorb is 34 metres high.")
    desk.client.answers = say("The tower of Zorb is 34 metres high.")

    desk.answering.ask("How high is the tower of Zorb?", document_ids=[document_id])
    qtbot.waitUntil(lambda: bool(desk.answers))

    prompt = desk.client.requests[0].what.messages[0]["content"]
    cited = [source for source in desk.answers[0].sources if source.is_cited]
    assert "[page 1 of 2]\nPage one is empty talk." in prompt
    assert [source.place.page_index for source in cited] == [1]
    assert cited[0].quote == "The tower of Zorb is 34 metres high."
    assert desk.stages == ["Searching 1 document", "Reading", ""]


def test_an_answer_that_rests_on_no_page_still_names_the_nearest_of_a_whole_document(
    qtbot: QtBot, desk: AnsweringDesk
) -> None:
    document_id = add_document(qtbot, desk, "Page one is empty talk.", "The tower of Zorb is 34 metres high.")
    desk.client.answers = say("Towers are usually between 120 and 770 metres.")

    desk.answering.ask("How high is the tower of Zorb?", document_ids=[document_id])
    qtbot.waitUntil(lambda: bool(desk.answers))

    sources = desk.answers[0].sources
    assert [source.is_cited for source in sources] == [False, False]
    assert sources[0].place.page_index == 1
    assert desk.answers[0].notices == (UNSUPPORTED,)


def test_a_large_document_is_searched_and_only_passages_go_in(qtbot: QtBot, desk: AnsweringDesk) -> None:
    filler = "Nothing of interest is said on this page about anything at all. " * 6
    pages = [f"{filler} The tower of Zorb{n} is {n + 100} metres high." for n in range(60)]
    document_id = add_document(qtbot, desk, *pages)
    desk.client.answers = say("It is 142 metres high.")

    desk.answering.ask("How high is the tower of Zorb42?", document_ids=[document_id])
    qtbot.waitUntil(lambda: bool(desk.answers))

    prompt = desk.client.requests[0].what.messages[-1]["content"]
    cited = [source for source in desk.answers[0].sources if source.is_cited]
    assert "[a.txt, p. 43 of 60]" in prompt
    assert "Zorb43" not in prompt.split("[a.txt, p. 43 of 60]")[0]
    assert [source.place.page_index for source in cited] == [42]


def test_the_embedders_vector_is_asked_for_and_a_dead_embedder_leaves_the_words(
    qtbot: QtBot, desk: AnsweringDesk, tmp_path: Path
) -> None:
    document_id = add_document(qtbot, desk, "The tower of Zorb is 34 metres high.")
    desk.embedder.use(installed_encoder(tmp_path))
    desk.client.embeds_at_once = False
    desk.client.answers = say("34 metres.")

    desk.answering.ask("How high is the tower of Zorb?", document_ids=[document_id])
    qtbot.waitUntil(lambda: bool(desk.client.embeddings))
    assert not desk.client.requests
    desk.client.embeddings[0].fail("EngineError", "no memory")
    qtbot.waitUntil(lambda: bool(desk.answers))

    assert desk.client.embeddings[0].what == ("How high is the tower of Zorb?",)
    assert [source.place.page_index for source in desk.answers[0].sources if source.is_cited] == [0]


def test_the_ticked_documents_are_kept_with_the_conversation(qtbot: QtBot, desk: AnsweringDesk) -> None:
    document_id = add_document(qtbot, desk, "Text.")
    desk.client.answers = say("One.")

    desk.answering.ask("First?", document_ids=[document_id])
    qtbot.waitUntil(lambda: bool(desk.answers))

    opened = read(qtbot, desk, lambda db: open_conversation(db, desk.answers[0].reply.conversation_id))
    assert opened.document_ids == (document_id,)  # type: ignore[attr-defined]
    sources = opened.sources[desk.answers[0].reply.id]  # type: ignore[attr-defined]
    assert [source.is_cited for source in sources] == [False]


def test_a_question_that_the_passages_cannot_answer_is_refused_without_the_engine(
    qtbot: QtBot, desk: AnsweringDesk
) -> None:
    document_id = add_document(
        qtbot, desk, *(f"The tower of Zorb{i} is {i} metres high. " * 40 for i in range(60))
    )
    desk.answering.ask("How deep is the tower of Tarvo?", document_ids=[document_id])
    qtbot.waitUntil(lambda: bool(desk.answers))

    (answer,) = desk.answers
    assert desk.client.requests == []
    assert answer.reply.finish_reason == "stop"
    assert answer.reply.text == "".join(desk.texts)
    assert answer.reply.text.startswith("I did not find the answer")
    assert [source.is_cited for source in answer.sources] == [False, False, False]

    desk.client.answers = say("Twelve fathoms.")
    desk.answering.regenerate(answer.reply.id, document_ids=[document_id])
    qtbot.waitUntil(lambda: len(desk.answers) == 2)

    assert desk.answers[1].reply.text == "Twelve fathoms."


def test_each_sentence_of_an_answer_from_documents_is_checked_as_it_comes(
    qtbot: QtBot, desk: AnsweringDesk
) -> None:
    document_id = add_document(qtbot, desk, "The tower of Zorb is 34 metres high.")
    checked: list[str] = []
    desk.answering.sentence_checked.connect(lambda _id, check: checked.append(check.status))
    desk.client.answers = say("The tower of Zorb is 34 metres high. Its dome holds 900 bells.")

    desk.answering.ask("How high is the tower of Zorb?", document_ids=[document_id])
    qtbot.waitUntil(lambda: bool(desk.answers))

    assert checked == ["supported", "not found"]
