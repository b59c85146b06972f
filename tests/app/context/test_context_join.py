"""The meter, the panel and the figures of replies, as a person uses them in the whole window."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from pytestqt.qtbot import QtBot
from tiny_gguf import write_tiny_gguf
from window_desk import WindowDesk, put_model

from inglenook.app.context.context_join import ContextJoin
from inglenook.app.context.reply_details import ReplyDetails
from inglenook.app.window.theme import Theme

QUESTIONS = ("What is a hedge?", "And a fence?", "Which lasts longer?")


@pytest.fixture
def desk(qtbot: QtBot, theme: Theme, tmp_path: Path) -> Iterator[WindowDesk]:
    put_model(tmp_path)
    model = tmp_path / "data" / "models" / "tiny" / "model.gguf"
    model.unlink()
    write_tiny_gguf(model, context=4096)
    desk = WindowDesk(qtbot, theme, tmp_path).start()
    qtbot.waitUntil(lambda: desk.application.bridge.model_state().phase == "ready")
    yield desk
    desk.close()


@pytest.fixture
def context(desk: WindowDesk) -> ContextJoin:
    return desk.join.context


def ask(desk: WindowDesk, question: str, prompt_tokens: int, reply_tokens: int) -> None:
    num_requests, num_messages = len(desk.client.requests), len(desk.messages)
    desk.send(question)
    desk.qtbot.waitUntil(lambda: len(desk.client.requests) > num_requests)
    asked = desk.client.requests[-1]
    asked.say("word " * reply_tokens, *range(reply_tokens))
    asked.finish(prompt_tokens=prompt_tokens)
    desk.qtbot.waitUntil(
        lambda: len(desk.messages) == num_messages + 2 and desk.messages[-1].state == "complete"
    )
    desk.qtbot.waitUntil(lambda: desk.join.context.fill.used == prompt_tokens + reply_tokens)


def fill_up(desk: WindowDesk) -> None:
    """Of 2,048 tokens, 512 are kept for a reply: 1,600 are too many."""
    ask(desk, QUESTIONS[0], 40, 460)
    ask(desk, QUESTIONS[1], 540, 460)
    ask(desk, QUESTIONS[2], 1_040, 560)


def test_the_meter_begins_empty_and_follows_the_engines_counts(
    desk: WindowDesk, context: ContextJoin
) -> None:
    assert context.foot.meter.text() == "0 of 2,048"

    ask(desk, QUESTIONS[0], 40, 460)

    assert context.foot.meter.text() == "500 of 2,048"
    assert context.foot.meter.accessibleName() == "Window: 500 of 2,048 tokens used, 24 percent"
    desk.window.actions_by_name["new_chat"].trigger()
    assert context.foot.meter.text() == "0 of 2,048"


def test_a_chat_that_outgrows_its_window_says_what_goes_with_the_numbers(
    desk: WindowDesk, context: ContextJoin
) -> None:
    fill_up(desk)

    assert context.panel.isVisible()
    assert context.panel.words.text() == (
        "This chat needs 2,112 tokens with room for a reply, the model holds 2,048. The oldest question will be left "
        "out of the next one."
    )
    assert context.panel.details.text() == "Left out, with their replies: “What is a hedge?”"
    assert context.foot.meter.text() == "1,600 of 2,048 · leaves out 1"
    assert not context.panel.drop_button.isVisible()


def test_a_panel_that_was_closed_stays_closed_until_the_meter_is_pressed(
    desk: WindowDesk, context: ContextJoin
) -> None:
    fill_up(desk)
    QTest.mouseClick(context.panel.close_button, Qt.MouseButton.LeftButton)
    assert desk.window.chat.composer.edit.hasFocus()

    context.refresh()
    desk.qtbot.wait(50)
    assert not context.panel.isVisible()
    QTest.mouseClick(context.foot.meter, Qt.MouseButton.LeftButton)

    assert context.panel.isVisible()


def test_a_larger_window_is_offered_with_its_cost_and_loads_the_model_again(
    desk: WindowDesk, context: ContextJoin
) -> None:
    fill_up(desk)
    desk.qtbot.waitUntil(lambda: context.panel.larger_button.isVisible())
    assert context.panel.larger_button.text() == "4,096 tokens: +524 kB, fits"
    desk.client.context_length = 4096

    QTest.mouseClick(context.panel.larger_button, Qt.MouseButton.LeftButton)

    desk.qtbot.waitUntil(lambda: len(desk.client.loads) == 2)
    assert desk.application.settings.load_options("tiny").context_length == 4096
    assert not context.panel.isVisible()
    desk.qtbot.waitUntil(lambda: context.foot.meter.text() == "1,600 of 4,096")
    QTest.mouseClick(context.foot.meter, Qt.MouseButton.LeftButton)
    assert context.panel.remark.text() == "4,096 tokens is the longest window that this model takes."
    assert not context.panel.larger_button.isVisible()
    assert context.panel.summary_button.hasFocus()


def test_a_fresh_chat_begins_with_the_summary_that_the_model_wrote(
    desk: WindowDesk, context: ContextJoin
) -> None:
    fill_up(desk)
    num_requests = len(desk.client.requests)
    QTest.mouseClick(context.panel.summary_button, Qt.MouseButton.LeftButton)
    desk.qtbot.waitUntil(lambda: len(desk.client.requests) > num_requests)
    asked = desk.client.requests[-1]
    assert [message["content"] for message in asked.what.messages][::2][:3] == list(QUESTIONS)
    assert asked.what.messages[-1]["content"].startswith("Summarise our conversation")
    assert asked.what.reply_token_ids[1] == tuple(range(460))
    assert context.panel.summary_button.text() == "Cancel the summary"

    asked.say("<think>They want it short.</think>We compared a hedge with a fence.", 1)
    assert asked.what.overflow == "refuse"
    asked.finish()

    desk.qtbot.waitUntil(lambda: len(desk.messages) == 2)
    assert desk.messages[1].text == "We compared a hedge with a fence."
    assert "What is a hedge? (continued)" in desk.titles
    assert not context.panel.isVisible()


def test_a_chat_longer_than_the_window_is_summarised_in_parts_and_all_of_it_is_read(
    desk: WindowDesk, context: ContextJoin
) -> None:
    for number in range(12):
        desk.ask(f"Question {number}?", f"<think>hm</think>Answer {number}. " + "word " * 150)
    count = len(desk.client.requests)
    QTest.mouseClick(context.foot.meter, Qt.MouseButton.LeftButton)
    QTest.mouseClick(context.panel.summary_button, Qt.MouseButton.LeftButton)
    desk.qtbot.waitUntil(lambda: len(desk.client.requests) == count + 1)

    desk.client.requests[-1].fail("ContextLengthError", "2,900 tokens, 2,048 are free.")
    desk.qtbot.waitUntil(lambda: len(desk.client.requests) == count + 2)
    first = context.panel.remark.text()
    desk.client.requests[-1].fail("ContextLengthError", "The part has 2,100 tokens.")
    desk.qtbot.waitUntil(lambda: len(desk.client.requests) == count + 3)
    num_parts = int(context.panel.remark.text().split()[-1].rstrip("…"))
    assert first.startswith("Writing the summary: reading part 1 of ")
    assert num_parts > int(first.split()[-1].rstrip("…")) > 1
    read = ""
    for part in range(1, num_parts + 1):
        desk.qtbot.waitUntil(lambda part=part: len(desk.client.requests) == count + 2 + part)  # type: ignore[misc]
        (asked,) = desk.client.requests[-1].what.messages
        read += asked["content"]
        desk.client.requests[-1].say(f"Sum {part}.", 1)
        desk.client.requests[-1].finish()

    desk.qtbot.waitUntil(lambda: len(desk.messages) == 2)
    assert all(read.count(f"Question {n}?") == read.count(f"Answer {n}.") == 1 for n in range(12))
    assert "hm" not in read.split()
    assert desk.messages[1].text == "\n\n".join(f"Sum {part}." for part in range(1, num_parts + 1))
    assert f"it was read whole in {num_parts} parts" in desk.window.banner.text


def test_a_summary_that_is_cancelled_or_fails_leaves_the_chat_as_it_is(
    desk: WindowDesk, context: ContextJoin
) -> None:
    fill_up(desk)
    num_requests = len(desk.client.requests)
    context.panel.summary_button.click()
    desk.qtbot.waitUntil(lambda: len(desk.client.requests) == num_requests + 1)
    context.panel.summary_button.click()
    assert desk.client.requests[-1].is_cancelled
    assert context.panel.summary_button.text() == "Fresh chat with a summary"

    context.panel.summary_button.click()
    desk.qtbot.waitUntil(lambda: len(desk.client.requests) == num_requests + 2)
    desk.client.requests[-1].fail("EngineError", "It broke.")
    desk.qtbot.waitUntil(lambda: context.panel.problem.isVisible())

    assert context.panel.problem.text() == "It broke."
    assert len(desk.messages) == 6


def test_whoever_wants_to_be_asked_is_and_leaving_out_asks_again(
    desk: WindowDesk, context: ContextJoin
) -> None:
    desk.application.settings.set("chat.overflow", "ask")
    fill_up(desk)
    assert "would be left out." in context.panel.words.text()
    desk.send("And in winter?")
    desk.qtbot.waitUntil(lambda: len(desk.client.requests) == 4)
    assert desk.client.requests[-1].what.overflow == "refuse"
    desk.client.requests[-1].fail("ContextLengthError", "The chat has 1,620 tokens, 1,536 are free.")
    desk.qtbot.waitUntil(lambda: desk.messages[-1].state == "failed")

    QTest.mouseClick(context.panel.drop_button, Qt.MouseButton.LeftButton)

    desk.qtbot.waitUntil(lambda: len(desk.client.requests) == 5)
    assert desk.client.requests[-1].what.overflow == "drop_oldest"
    assert desk.application.settings.value("chat.overflow") == "drop"


def test_the_figures_stand_under_a_reply_unless_switched_off(desk: WindowDesk) -> None:
    ask(desk, QUESTIONS[0], 40, 4)
    line = "0.25 s to the first word · 20 tokens a second · 1 of 40 tokens from the cache"
    assert desk.messages[-1].figures == line

    desk.application.settings.set("chat.figures", False)

    desk.qtbot.waitUntil(lambda: desk.messages[-1].figures == "")
    desk.application.settings.set("chat.figures", True)
    desk.qtbot.waitUntil(lambda: desk.messages[-1].figures == line)


def test_the_details_of_a_reply_open_from_its_menu(desk: WindowDesk) -> None:
    desk.application.settings.set("chat.preset", "precise")
    ask(desk, QUESTIONS[0], 40, 4)

    desk.window.chat.view.action_requested.emit(desk.messages[-1].id, "details")
    desk.qtbot.waitUntil(lambda: bool(desk.window.findChildren(ReplyDetails)))
    (dialog,) = desk.window.findChildren(ReplyDetails)

    assert dialog.values["Temperature"].text() == "0.2"
    assert dialog.values["Style of answers"].text() == "Precise"
    assert dialog.values["Read"].text() == "40 tokens, 1 of them from the cache"
    assert dialog.values["Written"].text() == "4 tokens"
    dialog.reject()


def test_the_persona_of_a_chat_is_chosen_below_the_field(desk: WindowDesk, context: ContextJoin) -> None:
    made: list[int] = []
    desk.application.personas.add("Editor & co", "Cut.", "", {}, made.append, made.append)  # type: ignore[arg-type]
    desk.qtbot.waitUntil(lambda: bool(made))
    button = context.foot.persona_button
    assert button.accessibleName() == "Persona of this chat: none"

    menu = desk.join.personas.menu()
    next(action for action in menu.actions() if action.text() == "Editor && co").trigger()

    assert button.text().startswith("Editor && co")
    assert button.accessibleName() == "Persona of this chat: Editor & co"
    assert [a.text() for a in desk.join.personas.menu().actions() if a.isChecked()] == ["Editor && co"]


def test_what_is_typed_or_pasted_counts_before_it_is_sent(desk: WindowDesk, context: ContextJoin) -> None:
    ask(desk, QUESTIONS[0], 40, 60)
    composer = desk.window.chat.composer
    assert context.foot.meter.text() == "100 of 2,048"

    composer.edit.insertPlainText("word " * 70)
    desk.qtbot.waitUntil(lambda: context.fill.used > 160)
    assert context.foot.meter.text().startswith("about 2")
    composer.set_text("word\n" * 6_000)
    desk.qtbot.waitUntil(lambda: context.fill.used == 2_048)
    assert len(context.fill.left_out) == 1
    composer.clear()

    desk.qtbot.waitUntil(lambda: context.fill.used == 100)
    assert context.foot.meter.text() == "100 of 2,048"
