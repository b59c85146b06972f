"""One turn, with an engine played by hand: what is saved when, what is told, and how it ends."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from fake_client import Asked, FakeClient
from pytestqt.qtbot import QtBot

from inglenook.app.answers.answering import Answer, Answering, ReplyOptions, Turn, open_conversation
from inglenook.app.answers.open_turn import UNSUPPORTED
from inglenook.app.bridge import EngineBridge
from inglenook.app.documents.embedder import Embedder
from inglenook.app.tasks import Tasks
from inglenook.engine.model_library import InstalledModel, ModelRecord
from inglenook.engine.request import Request, SamplingParams
from inglenook.storage.conversations import Conversations
from inglenook.storage.database import Database
from inglenook.storage.documents import Documents
from inglenook.storage.errors import DiskFullError
from inglenook.storage.messages import Messages
from inglenook.storage.parsing.document import Chunk, ParsedDocument, ParsedPage


class Desk:
    """A turn's surroundings: the engine is `client`, everything told is kept."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.client = FakeClient()
        self.tasks = Tasks()
        self.tasks.open(path)
        self.bridge = EngineBridge(self.client)  # type: ignore[arg-type]
        self.embedder = Embedder(self.bridge)
        self.options = ReplyOptions()
        self.answering = Answering(
            self.bridge, self.tasks, self.embedder, lambda _conversation_id: self.options
        )
        self.turns: list[Turn] = []
        self.texts: list[str] = []
        self.stages: list[str] = []
        self.answers: list[Answer] = []
        self.refusals: list[tuple[str, str]] = []
        self.notices: list[str] = []
        self.stopping: list[int] = []
        self.answering.turn_started.connect(self.turns.append)
        self.answering.reply_text.connect(lambda _id, text: self.texts.append(text))
        self.answering.stage_changed.connect(lambda _id, stage: self.stages.append(stage))
        self.answering.reply_ended.connect(self.answers.append)
        self.answering.turn_refused.connect(lambda *refusal: self.refusals.append(refusal))
        self.answering.notice.connect(lambda _id, text: self.notices.append(text))
        self.answering.reply_stopping.connect(self.stopping.append)

    def close(self) -> None:
        self.answering.close()
        self.tasks.close()
        self.bridge.close()


@pytest.fixture
def desk(qtbot: QtBot, tmp_path: Path) -> Iterator[Desk]:
    desk = Desk(tmp_path / "history.db")
    desk.bridge.load(Path("/models/m.gguf"), name="m")
    qtbot.waitUntil(lambda: desk.bridge.model_state().phase == "ready")
    yield desk
    desk.close()


def read(qtbot: QtBot, desk: Desk, work: Callable[[Database], object]) -> object:
    results: list[object] = []
    desk.tasks.read(work, results.append)
    qtbot.waitUntil(lambda: bool(results))
    return results[0]


def say(text: str) -> Callable[[Asked], None]:
    def answer(asked: Asked) -> None:
        asked.say(text, 1, 2)
        asked.finish()

    return answer


def add_document(qtbot: QtBot, desk: Desk, *pages: str) -> int:
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


def test_question_and_empty_reply_are_saved_before_anything_is_asked_of_the_engine(
    qtbot: QtBot, desk: Desk
) -> None:
    saved_at_submit: list[list[tuple[str, str, str]]] = []

    def look(asked: Asked) -> None:
        with Database.open(desk.path) as db:
            saved_at_submit.append([(m.role, m.text, m.status) for m in Messages(db).shown(1)])

    desk.client.answers = look
    desk.answering.ask("Why is the sky blue?")
    qtbot.waitUntil(lambda: bool(saved_at_submit))

    assert saved_at_submit == [[("user", "Why is the sky blue?", "complete"), ("assistant", "", "streaming")]]
    assert desk.turns[0].is_new_conversation
    assert desk.turns[0].conversation.title == "Why is the sky blue?"


def test_a_reply_is_streamed_and_saved_whole_with_its_figures(qtbot: QtBot, desk: Desk) -> None:
    desk.client.answers = say("Because.")

    desk.answering.ask("Why?")
    qtbot.waitUntil(lambda: bool(desk.answers))

    reply = desk.answers[0].reply
    assert desk.texts == ["Because."]
    assert (reply.text, reply.status, reply.finish_reason) == ("Because.", "complete", "stop")
    assert (reply.token_ids, reply.prompt_tokens, reply.ttft_s, reply.seed) == ((1, 2), 5, 0.25, 7)
    assert reply.model == "m"
    assert desk.answering.active_reply(reply.conversation_id) is None


def test_a_growing_reply_is_saved_within_half_a_second(qtbot: QtBot, desk: Desk) -> None:
    desk.answering.ask("Why?")
    qtbot.waitUntil(lambda: bool(desk.client.requests))
    started = time.monotonic()

    desk.client.requests[0].say("so far")
    qtbot.waitUntil(lambda: bool(desk.texts))
    reply_id = desk.turns[0].reply.id
    qtbot.waitUntil(lambda: read(qtbot, desk, lambda db: Messages(db).get(reply_id).text) == "so far")

    # 400 ms for the timer; the rest is what a busy machine takes.
    assert time.monotonic() - started < 2
    assert read(qtbot, desk, lambda db: Messages(db).get(reply_id).status) == "streaming"


def test_a_reply_keeps_the_values_that_it_was_written_with(qtbot: QtBot, desk: Desk) -> None:
    sampling = SamplingParams(temperature=0.2, top_k=40, seed=3)
    desk.options = ReplyOptions(sampling, "Be brief.", "refuse", {"persona": "Editor"})
    desk.client.answers = say("One.")
    desk.answering.ask("First?")
    qtbot.waitUntil(lambda: len(desk.answers) == 1)
    desk.options = ReplyOptions()

    reply_id = desk.answers[0].reply.id
    kept = read(qtbot, desk, lambda db: Messages(db).get(reply_id).sampling)

    assert isinstance(kept, dict)
    assert (kept["temperature"], kept["top_k"], kept["seed"]) == (0.2, 40, 3)
    assert (kept["system"], kept["persona"]) == ("Be brief.", "Editor")
    assert desk.client.requests[0].what.overflow == "refuse"


def test_the_next_question_carries_the_conversation(qtbot: QtBot, desk: Desk) -> None:
    desk.options = ReplyOptions(system="Be brief.")
    desk.client.answers = say("One.")
    desk.answering.ask("First?")
    qtbot.waitUntil(lambda: len(desk.answers) == 1)

    desk.answering.ask("Second?", conversation_id=desk.answers[0].reply.conversation_id)
    qtbot.waitUntil(lambda: len(desk.answers) == 2)

    request: Request = desk.client.requests[1].what
    assert [(m["role"], m["content"]) for m in request.messages or ()] == [
        ("system", "Be brief."),
        ("user", "First?"),
        ("assistant", "One."),
        ("user", "Second?"),
    ]


def test_stop_is_acknowledged_at_once_and_keeps_what_was_shown(qtbot: QtBot, desk: Desk) -> None:
    desk.answering.ask("Why?")
    qtbot.waitUntil(lambda: bool(desk.client.requests))
    asked = desk.client.requests[0]
    asked.say("shown")
    qtbot.waitUntil(lambda: bool(desk.texts))
    reply_id = desk.answering.active_reply(1)
    assert reply_id is not None

    desk.answering.stop(reply_id)
    assert desk.stopping == [reply_id]
    assert asked.is_cancelled
    asked.say(" late")
    asked.finish("cancelled")
    qtbot.waitUntil(lambda: bool(desk.answers))

    reply = desk.answers[0].reply
    assert desk.texts == ["shown"]
    assert (reply.text, reply.status, reply.finish_reason) == ("shown", "complete", "cancelled")


def test_stop_while_the_model_is_loading_ends_without_asking(qtbot: QtBot, desk: Desk) -> None:
    desk.client.loads_at_once = False
    desk.bridge.load(Path("/models/other.gguf"), name="other")
    desk.answering.ask("Why?")
    qtbot.waitUntil(lambda: bool(desk.stages))

    desk.answering.stop(desk.turns[0].reply.id)
    qtbot.waitUntil(lambda: bool(desk.answers))
    desk.client.loaded(desk.client.loads[-1])
    qtbot.waitUntil(lambda: desk.bridge.model_state().phase == "ready")

    assert desk.stages == ["Waiting for the model"]
    assert desk.answers[0].reply.finish_reason == "cancelled"
    assert not desk.client.requests


def test_a_question_asked_while_the_model_loads_is_answered_when_it_stands(qtbot: QtBot, desk: Desk) -> None:
    desk.client.loads_at_once = False
    desk.client.answers = say("Because.")
    desk.bridge.load(Path("/models/other.gguf"), name="other")
    desk.answering.ask("Why?")
    qtbot.waitUntil(lambda: bool(desk.stages))
    assert not desk.client.requests

    desk.client.loaded(desk.client.loads[-1])
    qtbot.waitUntil(lambda: bool(desk.answers))

    assert desk.answers[0].reply.text == "Because."


def test_without_a_model_the_reply_says_what_to_do(qtbot: QtBot, desk: Desk) -> None:
    desk.bridge.unload()

    desk.answering.ask("Why?")
    qtbot.waitUntil(lambda: bool(desk.answers))

    reply = desk.answers[0].reply
    assert reply.status == "failed"
    assert reply.error == "No model is loaded. Choose one on the model page."


def test_a_failing_request_keeps_its_text_and_its_sentence(qtbot: QtBot, desk: Desk) -> None:
    desk.answering.ask("Why?")
    qtbot.waitUntil(lambda: bool(desk.client.requests))

    desk.client.requests[0].say("so far")
    desk.client.die("The engine was ended by signal 9.", desk.client.requests[0])
    qtbot.waitUntil(lambda: bool(desk.answers))

    reply = desk.answers[0].reply
    assert (reply.text, reply.status) == ("so far", "failed")
    assert "signal 9" in reply.error


def test_passages_refused_as_too_long_are_fewer_the_next_time(qtbot: QtBot, desk: Desk) -> None:
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


def test_turns_that_the_engine_left_out_are_told(qtbot: QtBot, desk: Desk) -> None:
    desk.client.answers = say("One.")
    desk.answering.ask("First?")
    qtbot.waitUntil(lambda: len(desk.answers) == 1)

    def leave_out(asked: Asked) -> None:
        assert asked.what.overflow == "drop_oldest"
        assert asked.what.reply_token_ids == {1: (1, 2)}
        asked.finish(left_out=(0, 1), notices=("Folded.",))

    desk.client.answers = leave_out
    desk.answering.ask("Second?", conversation_id=1)
    qtbot.waitUntil(lambda: len(desk.answers) == 2)

    assert desk.answers[1].notices == (
        "The earliest question and its reply were left out, because the conversation is longer than the model's "
        "context.",
        "Folded.",
    )


def test_a_question_alone_that_is_too_long_fails_with_the_engines_numbers(qtbot: QtBot, desk: Desk) -> None:
    desk.client.answers = lambda asked: asked.fail("ContextLengthError", "The prompt has 9,999 tokens.")

    desk.answering.ask("Why?")
    qtbot.waitUntil(lambda: bool(desk.answers))

    assert len(desk.client.requests) == 1
    assert desk.answers[0].reply.error == "The prompt has 9,999 tokens."


def test_a_document_that_is_small_goes_in_whole_and_its_page_is_cited(qtbot: QtBot, desk: Desk) -> None:
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
    qtbot: QtBot, desk: Desk
) -> None:
    document_id = add_document(qtbot, desk, "Page one is empty talk.", "The tower of Zorb is 34 metres high.")
    desk.client.answers = say("Towers are usually between 120 and 770 metres.")

    desk.answering.ask("How high is the tower of Zorb?", document_ids=[document_id])
    qtbot.waitUntil(lambda: bool(desk.answers))

    sources = desk.answers[0].sources
    assert [source.is_cited for source in sources] == [False, False]
    assert sources[0].place.page_index == 1
    assert desk.answers[0].notices == (UNSUPPORTED,)


def test_a_large_document_is_searched_and_only_passages_go_in(qtbot: QtBot, desk: Desk) -> None:
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
    qtbot: QtBot, desk: Desk, tmp_path: Path
) -> None:
    document_id = add_document(qtbot, desk, "The tower of Zorb is 34 metres high.")
    record = ModelRecord(
        title="e",
        kind="embedding",
        licence="",
        origin="",
        size_bytes=0,
        num_parameters=0,
        kv_bytes_per_token=0,
    )
    desk.embedder.use(InstalledModel("e", record, tmp_path, False))
    desk.client.embeds_at_once = False
    desk.client.answers = say("34 metres.")

    desk.answering.ask("How high is the tower of Zorb?", document_ids=[document_id])
    qtbot.waitUntil(lambda: bool(desk.client.embeddings))
    assert not desk.client.requests
    desk.client.embeddings[0].fail("EngineError", "no memory")
    qtbot.waitUntil(lambda: bool(desk.answers))

    assert desk.client.embeddings[0].what == ("How high is the tower of Zorb?",)
    assert [source.place.page_index for source in desk.answers[0].sources if source.is_cited] == [0]


def test_a_deleted_document_is_told_and_the_question_is_still_answered(qtbot: QtBot, desk: Desk) -> None:
    desk.client.answers = say("Hm.")

    desk.answering.ask("How high?", document_ids=[77])
    qtbot.waitUntil(lambda: bool(desk.answers))

    assert desk.answers[0].notices == ("A ticked document has been deleted and was not searched.",)


def test_answering_again_makes_a_sibling_and_editing_makes_another_branch(qtbot: QtBot, desk: Desk) -> None:
    desk.client.answers = say("One.")
    desk.answering.ask("First?")
    qtbot.waitUntil(lambda: len(desk.answers) == 1)
    first = desk.answers[0].reply

    desk.answering.regenerate(first.id)
    qtbot.waitUntil(lambda: len(desk.answers) == 2)
    desk.answering.edit(desk.turns[0].question.id, "Changed?")
    qtbot.waitUntil(lambda: len(desk.answers) == 3)

    again, edited = desk.answers[1].reply, desk.turns[2]
    assert (again.parent_id, again.branch, again.num_branches) == (first.parent_id, 1, 2)
    assert (edited.question.branch, edited.question.num_branches) == (1, 2)
    opened = read(qtbot, desk, lambda db: open_conversation(db, first.conversation_id))
    assert [m.text for m in opened.messages] == ["Changed?", "One."]  # type: ignore[attr-defined]


def test_the_ticked_documents_are_kept_with_the_conversation(qtbot: QtBot, desk: Desk) -> None:
    document_id = add_document(qtbot, desk, "Text.")
    desk.client.answers = say("One.")

    desk.answering.ask("First?", document_ids=[document_id])
    qtbot.waitUntil(lambda: bool(desk.answers))

    opened = read(qtbot, desk, lambda db: open_conversation(db, desk.answers[0].reply.conversation_id))
    assert opened.document_ids == (document_id,)  # type: ignore[attr-defined]
    sources = opened.sources[desk.answers[0].reply.id]  # type: ignore[attr-defined]
    assert [source.is_cited for source in sources] == [False]


def test_a_conversation_deleted_while_it_is_answered_ends_quietly(qtbot: QtBot, desk: Desk) -> None:
    desk.answering.ask("Why?")
    qtbot.waitUntil(lambda: bool(desk.client.requests))
    conversation = desk.turns[0].conversation.id
    done: list[object] = []
    desk.tasks.write(lambda db: Conversations(db).delete(conversation), done.append)
    qtbot.waitUntil(lambda: bool(done))

    say("Too late.")(desk.client.requests[0])
    qtbot.waitUntil(lambda: desk.answering.active_reply(conversation) is None)
    desk.tasks.write(lambda db: None, done.append)
    qtbot.waitUntil(lambda: len(done) == 2)

    assert not desk.answers


def test_a_question_that_cannot_be_saved_is_given_back(qtbot: QtBot, desk: Desk) -> None:
    desk.answering.ask("Why?", conversation_id=99)
    qtbot.waitUntil(lambda: bool(desk.refusals))

    assert desk.refusals == [("Why?", "There is no conversation 99; it may have been deleted.")]
    assert not desk.client.requests


def test_an_empty_question_is_not_asked(qtbot: QtBot, desk: Desk) -> None:
    done: list[object] = []
    desk.answering.ask("  \n ")
    desk.tasks.write(lambda db: Conversations(db).count(), done.append)
    qtbot.waitUntil(lambda: bool(done))

    assert done == [0]


def test_closing_in_the_middle_keeps_what_there_is(qtbot: QtBot, desk: Desk) -> None:
    desk.answering.ask("Why?")
    qtbot.waitUntil(lambda: bool(desk.client.requests))
    desk.client.requests[0].say("so far", 3)
    qtbot.waitUntil(lambda: bool(desk.texts))

    desk.close()

    with Database.open(desk.path) as db:
        reply = Messages(db).shown(1)[-1]
    assert (reply.text, reply.token_ids, reply.status) == ("so far", (3,), "complete")
    assert reply.finish_reason == "cancelled"


def test_two_conversations_are_answered_at_the_same_time(qtbot: QtBot, desk: Desk) -> None:
    desk.answering.ask("One?")
    desk.answering.ask("Two?")
    qtbot.waitUntil(lambda: len(desk.client.requests) == 2)

    for asked, text in zip(reversed(desk.client.requests), ("second", "first"), strict=True):
        say(text)(asked)
    qtbot.waitUntil(lambda: len(desk.answers) == 2)

    texts = {a.reply.conversation_id: a.reply.text for a in desk.answers}
    assert texts == {1: "first", 2: "second"}


def test_a_full_disk_is_told_once_and_the_shown_text_stays(
    qtbot: QtBot, desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_arguments: object, **_options: object) -> None:
        raise DiskFullError("There is no room on the disk.")

    desk.answering.ask("Why?")
    qtbot.waitUntil(lambda: bool(desk.client.requests))
    monkeypatch.setattr(Messages, "save_reply", full)
    monkeypatch.setattr(Messages, "finish_reply", full)

    for piece in ("so", " far"):
        desk.client.requests[0].say(piece)
        qtbot.waitUntil(lambda piece=piece: piece in desk.texts)
        qtbot.waitUntil(lambda: not desk.answering._save_timer.isActive(), timeout=3000)
    desk.client.requests[0].finish()
    qtbot.waitUntil(lambda: bool(desk.answers))

    reply = desk.answers[0].reply
    assert desk.notices == ["There is no room on the disk."]
    assert (reply.text, reply.status, reply.error) == ("so far", "failed", "There is no room on the disk.")


def test_after_the_engine_gave_up_a_question_tries_once_more_and_says_why_not(
    qtbot: QtBot, desk: Desk
) -> None:
    desk.client.loads_at_once = False
    desk.client.die("Gone.")
    qtbot.waitUntil(lambda: desk.bridge.engine_state.phase == "stopped")
    desk.bridge.restart()
    desk.client.loads[-1].fail("EngineStoppedError", "It is not started again for 200 s.")
    qtbot.waitUntil(lambda: desk.bridge.engine_state.phase == "gave_up")

    desk.answering.ask("Why?")
    qtbot.waitUntil(lambda: len(desk.client.loads) == 3)
    desk.client.loads[-1].fail("EngineStoppedError", "It is not started again for 190 s.")
    qtbot.waitUntil(lambda: bool(desk.answers))

    assert desk.answers[0].reply.error == "It is not started again for 190 s."
    assert desk.bridge.engine_state.phase == "gave_up"


def test_a_question_that_the_passages_cannot_answer_is_refused_without_the_engine(
    qtbot: QtBot, desk: Desk
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


def test_each_sentence_of_an_answer_from_documents_is_checked_as_it_comes(qtbot: QtBot, desk: Desk) -> None:
    document_id = add_document(qtbot, desk, "The tower of Zorb is 34 metres high.")
    checked: list[str] = []
    desk.answering.sentence_checked.connect(lambda _id, check: checked.append(check.status))
    desk.client.answers = say("The tower of Zorb is 34 metres high. Its dome holds 900 bells.")

    desk.answering.ask("How high is the tower of Zorb?", document_ids=[document_id])
    qtbot.waitUntil(lambda: bool(desk.answers))

    assert checked == ["supported", "not found"]


def test_nothing_is_checked_in_an_answer_without_documents(qtbot: QtBot, desk: Desk) -> None:
    checked: list[object] = []
    desk.answering.sentence_checked.connect(lambda *check: checked.append(check))
    desk.client.answers = say("The tower of Zorb is 34 metres high. So it is.")

    desk.answering.ask("How high is the tower of Zorb?")
    qtbot.waitUntil(lambda: bool(desk.answers))

    assert checked == []
