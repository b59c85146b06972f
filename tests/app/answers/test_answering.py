"""One turn, with an engine played by hand: what is saved when, what is told, and how it ends."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from answering_desk import AnsweringDesk, read, say
from fake_client import Asked
from pytestqt.qtbot import QtBot

from inglenook.app.answers.answering import ReplyOptions, open_conversation
from inglenook.engine.request import Request, SamplingParams
from inglenook.storage.conversations import Conversations
from inglenook.storage.database import Database
from inglenook.storage.errors import DiskFullError
from inglenook.storage.messages import Messages


@pytest.fixture
def desk(qtbot: QtBot, tmp_path: Path) -> Iterator[AnsweringDesk]:
    desk = AnsweringDesk(tmp_path / "history.db").start(qtbot)
    yield desk
    desk.close()


def test_question_and_empty_reply_are_saved_before_anything_is_asked_of_the_engine(
    qtbot: QtBot, desk: AnsweringDesk
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


def test_a_reply_is_streamed_and_saved_whole_with_its_figures(qtbot: QtBot, desk: AnsweringDesk) -> None:
    desk.client.answers = say("Because.")

    desk.answering.ask("Why?")
    qtbot.waitUntil(lambda: bool(desk.answers))

    reply = desk.answers[0].reply
    assert desk.texts == ["Because."]
    assert (reply.text, reply.status, reply.finish_reason) == ("Because.", "complete", "stop")
    assert (reply.token_ids, reply.prompt_tokens, reply.ttft_s, reply.seed) == ((1, 2), 5, 0.25, 7)
    assert reply.model == "m"
    assert desk.answering.active_reply(reply.conversation_id) is None


def test_a_growing_reply_is_saved_within_half_a_second(qtbot: QtBot, desk: AnsweringDesk) -> None:
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


def test_a_reply_keeps_the_values_that_it_was_written_with(qtbot: QtBot, desk: AnsweringDesk) -> None:
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


def test_the_next_question_carries_the_conversation(qtbot: QtBot, desk: AnsweringDesk) -> None:
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


def test_stop_is_acknowledged_at_once_and_keeps_what_was_shown(qtbot: QtBot, desk: AnsweringDesk) -> None:
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


def test_stop_while_the_model_is_loading_ends_without_asking(qtbot: QtBot, desk: AnsweringDesk) -> None:
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


def test_a_question_asked_while_the_model_loads_is_answered_when_it_stands(
    qtbot: QtBot, desk: AnsweringDesk
) -> None:
    desk.client.loads_at_once = False
    desk.client.answers = say("Because.")
    desk.bridge.load(Path("/models/other.gguf"), name="other")
    desk.answering.ask("Why?")
    qtbot.waitUntil(lambda: bool(desk.stages))
    assert not desk.client.requests

    desk.client.loaded(desk.client.loads[-1])
    qtbot.waitUntil(lambda: bool(desk.answers))

    assert desk.answers[0].reply.text == "Because."


def test_without_a_model_the_reply_says_what_to_do(qtbot: QtBot, desk: AnsweringDesk) -> None:
    desk.bridge.unload()

    desk.answering.ask("Why?")
    qtbot.waitUntil(lambda: bool(desk.answers))

    reply = desk.answers[0].reply
    assert reply.status == "failed"
    assert reply.error == "No model is loaded. Choose one on the model page."


def test_a_failing_request_keeps_its_text_and_its_sentence(qtbot: QtBot, desk: AnsweringDesk) -> None:
    desk.answering.ask("Why?")
    qtbot.waitUntil(lambda: bool(desk.client.requests))

    desk.client.requests[0].say("so far")
    desk.client.die("The engine was ended by signal 9.", desk.client.requests[0])
    qtbot.waitUntil(lambda: bool(desk.answers))

    reply = desk.answers[0].reply
    assert (reply.text, reply.status) == ("so far", "failed")
    assert "signal 9" in reply.error


def test_turns_that_the_engine_left_out_are_told(qtbot: QtBot, desk: AnsweringDesk) -> None:
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


def test_a_question_alone_that_is_too_long_fails_with_the_engines_numbers(
    qtbot: QtBot, desk: AnsweringDesk
) -> None:
    desk.client.answers = lambda asked: asked.fail("ContextLengthError", "The prompt has 9,999 tokens.")

    desk.answering.ask("Why?")
    qtbot.waitUntil(lambda: bool(desk.answers))

    assert len(desk.client.requests) == 1
    assert desk.answers[0].reply.error == "The prompt has 9,999 tokens."


def test_a_deleted_document_is_told_and_the_question_is_still_answered(
    qtbot: QtBot, desk: AnsweringDesk
) -> None:
    desk.client.answers = say("Hm.")

    desk.answering.ask("How high?", document_ids=[77])
    qtbot.waitUntil(lambda: bool(desk.answers))

    assert desk.answers[0].notices == ("A ticked document has been deleted and was not searched.",)


def test_answering_again_makes_a_sibling_and_editing_makes_another_branch(
    qtbot: QtBot, desk: AnsweringDesk
) -> None:
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


def test_a_conversation_deleted_while_it_is_answered_ends_quietly(qtbot: QtBot, desk: AnsweringDesk) -> None:
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


def test_a_question_that_cannot_be_saved_is_given_back(qtbot: QtBot, desk: AnsweringDesk) -> None:
    desk.answering.ask("Why?", conversation_id=99)
    qtbot.waitUntil(lambda: bool(desk.refusals))

    assert desk.refusals == [("Why?", "There is no conversation 99; it may have been deleted.")]
    assert not desk.client.requests


def test_an_empty_question_is_not_asked(qtbot: QtBot, desk: AnsweringDesk) -> None:
    done: list[object] = []
    desk.answering.ask("  \n ")
    desk.tasks.write(lambda db: Conversations(db).count(), done.append)
    qtbot.waitUntil(lambda: bool(done))

    assert done == [0]


def test_closing_in_the_middle_keeps_what_there_is(qtbot: QtBot, desk: AnsweringDesk) -> None:
    desk.answering.ask("Why?")
    qtbot.waitUntil(lambda: bool(desk.client.requests))
    desk.client.requests[0].say("so far", 3)
    qtbot.waitUntil(lambda: bool(desk.texts))

    desk.close()

    with Database.open(desk.path) as db:
        reply = Messages(db).shown(1)[-1]
    assert (reply.text, reply.token_ids, reply.status) == ("so far", (3,), "complete")
    assert reply.finish_reason == "cancelled"


def test_two_conversations_are_answered_at_the_same_time(qtbot: QtBot, desk: AnsweringDesk) -> None:
    desk.answering.ask("One?")
    desk.answering.ask("Two?")
    qtbot.waitUntil(lambda: len(desk.client.requests) == 2)

    for asked, text in zip(reversed(desk.client.requests), ("second", "first"), strict=True):
        say(text)(asked)
    qtbot.waitUntil(lambda: len(desk.answers) == 2)

    texts = {a.reply.conversation_id: a.reply.text for a in desk.answers}
    assert texts == {1: "first", 2: "second"}


def test_a_full_disk_is_told_once_and_the_shown_text_stays(
    qtbot: QtBot, desk: AnsweringDesk, monkeypatch: pytest.MonkeyPatch
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
    qtbot: QtBot, desk: AnsweringDesk
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


def test_nothing_is_checked_in_an_answer_without_documents(qtbot: QtBot, desk: AnsweringDesk) -> None:
    checked: list[object] = []
    desk.answering.sentence_checked.connect(lambda *check: checked.append(check))
    desk.client.answers = say("The tower of Zorb is 34 metres high. So it is.")

    desk.answering.ask("How high is the tower of Zorb?")
    qtbot.waitUntil(lambda: bool(desk.answers))

    assert checked == []
