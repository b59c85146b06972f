"""Replies that end before their end: Stop in two stages, and going on with what was cut, in the whole window."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QPushButton
from pytestqt.qtbot import QtBot
from window_desk import WindowDesk

from inglenook.app.answers import answering
from inglenook.app.window.theme import Theme


def start(desk: WindowDesk, question: str = "Count.") -> None:
    count = len(desk.client.requests)
    desk.send(question)
    desk.qtbot.waitUntil(lambda: len(desk.client.requests) == count + 1)


def end(desk: WindowDesk, text: str, reason: str) -> None:
    asked = desk.client.requests[-1]
    asked.say(text, 1, 2)
    asked.finish(reason)
    desk.qtbot.waitUntil(lambda: bool(desk.messages) and desk.messages[-1].state != "streaming")


def status(desk: WindowDesk) -> tuple[str, QPushButton]:
    row = desk.window.chat.view.visible_widgets()[-1]
    return row._status.text(), row._retry


def press_continue(desk: WindowDesk) -> None:
    desk.qtbot.waitUntil(lambda: status(desk)[1].isVisible() and status(desk)[1].text() == "Continue")
    count = len(desk.client.requests)
    QTest.mouseClick(status(desk)[1], Qt.MouseButton.LeftButton)
    desk.qtbot.waitUntil(lambda: len(desk.client.requests) == count + 1)


@pytest.mark.parametrize("reason", ["length", "cancelled"])
def test_a_cut_reply_goes_on_in_the_same_message(desk: WindowDesk, reason: str) -> None:
    start(desk)
    end(desk, "One, two", reason)
    before = [message.id for message in desk.messages]

    press_continue(desk)
    asked = desk.client.requests[-1]
    assert (asked.what.reply_begin, asked.what.reply_begin_ids) == ("One, two", (1, 2))
    assert [m["content"] for m in asked.what.messages] == ["Count."]
    asked.say(", three.", 3)
    asked.finish()
    desk.qtbot.waitUntil(lambda: desk.messages[-1].state == "complete")

    assert [message.id for message in desk.messages] == before
    assert desk.messages[-1].text == "One, two, three."
    assert desk.messages[-1].num_branches == 1


def test_a10_a_character_that_was_cut_in_the_middle_is_whole_once_the_reply_goes_on(desk: WindowDesk) -> None:
    start(desk)
    end(desk, "Hello \ufffd", "length")

    press_continue(desk)
    asked = desk.client.requests[-1]
    assert (asked.what.reply_begin, asked.what.reply_begin_ids) == ("Hello ", ())
    asked.say("😀漢", 3, 4)
    asked.finish()
    desk.qtbot.waitUntil(lambda: desk.messages[-1].state == "complete")

    assert desk.messages[-1].text == "Hello 😀漢"


def test_a_cut_reply_says_so(desk: WindowDesk) -> None:
    start(desk)
    end(desk, "One, two", "length")

    desk.qtbot.waitUntil(lambda: status(desk)[0].startswith("Cut off"))


def test_a_reply_that_repeats_itself_says_so_holds_what_waits_and_can_go_on(desk: WindowDesk) -> None:
    start(desk)
    assert desk.client.requests[-1].what.sampling.stop_repetition
    desk.send("And then?")
    end(desk, "Well. " + "Severin " * 199, "repetition")

    desk.qtbot.waitUntil(
        lambda: status(desk)[0] == "It began to repeat itself and was stopped after 200 words."
    )
    assert desk.window.chat.queue.is_paused
    desk.application.settings.set("chat.stop_repetition", False)
    press_continue(desk)

    assert desk.client.requests[-1].what.reply_begin.endswith("Severin ")
    assert not desk.client.requests[-1].what.sampling.stop_repetition


def test_a_reply_that_a_crash_interrupted_goes_on_after_a_restart(
    desk: WindowDesk, qtbot: QtBot, theme: Theme, tmp_path: Path
) -> None:
    start(desk)
    end(desk, "One", "cancelled")
    desk.application.tasks.write(
        lambda db: db.execute("UPDATE messages SET status = 'streaming' WHERE role = 'assistant'")
    )
    desk.close()

    again = WindowDesk(qtbot, theme, tmp_path).start()
    qtbot.waitUntil(lambda: len(again.messages) == 2)
    assert again.messages[-1].state == "interrupted"
    press_continue(again)
    again.client.requests[-1].say(", two.", 3)
    again.client.requests[-1].finish()
    qtbot.waitUntil(lambda: again.messages[-1].state == "complete")
    text = again.messages[-1].text
    again.close()

    assert text == "One, two."


def test_a_reply_gone_on_with_and_stopped_again_keeps_all_of_it(desk: WindowDesk) -> None:
    start(desk)
    end(desk, "One", "length")
    press_continue(desk)
    desk.client.requests[-1].say(", two", 3)
    desk.qtbot.waitUntil(lambda: desk.messages[-1].text == "One, two")

    desk.window.chat.composer.stop_requested.emit()
    desk.client.requests[-1].finish("cancelled")
    desk.qtbot.waitUntil(lambda: desk.messages[-1].state == "stopped")
    press_continue(desk)

    assert desk.client.requests[-1].what.reply_begin_ids == (1, 2, 3)


def test_a_thought_that_was_cut_is_gone_on_with_as_a_thought(desk: WindowDesk) -> None:
    start(desk)
    end(desk, "<think>one", "length")
    press_continue(desk)
    asked = desk.client.requests[-1]
    asked.say(" and two</think>Three.", 3)
    asked.finish()
    desk.qtbot.waitUntil(lambda: desk.messages[-1].state == "complete")

    assert desk.messages[-1].parted.thought == "one and two"
    assert desk.messages[-1].answer == "Three."


def test_escape_stops_the_reply_and_once_more_drops_what_waits_which_can_be_taken_back(
    desk: WindowDesk,
) -> None:
    start(desk)
    desk.client.requests[-1].say("One", 1)
    desk.send("Next question")
    edit, queue = desk.window.chat.composer.edit, desk.window.chat.queue
    assert not queue.isHidden()

    QTest.keyClick(edit, Qt.Key.Key_Escape)
    desk.client.requests[-1].finish("cancelled")
    desk.qtbot.waitUntil(lambda: bool(desk.join.chats.turns._paused))
    assert not queue.isHidden()
    assert len(desk.client.requests) == 1

    QTest.keyClick(edit, Qt.Key.Key_Escape)
    assert queue.isHidden()
    QTest.mouseClick(desk.window.banner.button, Qt.MouseButton.LeftButton)
    assert not queue.isHidden()


def test_an_engine_that_does_not_answer_stop_can_be_ended(
    desk: WindowDesk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(answering, "_STOP_PATIENCE_MS", 50)
    start(desk)
    desk.client.requests[-1].say("One", 1)
    desk.qtbot.waitUntil(lambda: desk.messages[-1].text == "One")

    desk.window.chat.composer.stop_requested.emit()
    desk.qtbot.waitUntil(lambda: desk.window.banner.button.text() == "End the engine")
    QTest.mouseClick(desk.window.banner.button, Qt.MouseButton.LeftButton)

    assert desk.client.num_ended == 1
    assert desk.messages[-1].text == "One"
    desk.qtbot.waitUntil(lambda: not desk.window.chat.composer.is_streaming and not desk.join.chats.busy)
    count = len(desk.client.loads)
    start(desk, "Again?")
    assert len(desk.client.loads) == count + 1


def test_up_in_the_empty_field_brings_the_last_question_back(desk: WindowDesk) -> None:
    desk.ask("A question", "An answer")
    edit = desk.window.chat.composer.edit

    QTest.keyClick(edit, Qt.Key.Key_Up)

    assert edit.toPlainText() == "A question"
