"""What a model thought before it answered, in the whole window: live, folded, found, copied, kept and sent back."""

from __future__ import annotations

from pathlib import Path

import pytest
from fake_client import FakeClient
from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtTest import QTest
from pytestqt.qtbot import QtBot
from window_desk import WindowDesk, put_model

from inglenook.app.chat.message_widget import MessageWidget
from inglenook.app.window.theme import Theme
from inglenook.engine.tokenizer.reasoning import ReasoningTags

OPEN = ReasoningTags("<think>", "</think>", is_open=True)


def rows(desk: WindowDesk, index: int = -1) -> list[MessageWidget]:
    view = desk.window.chat.view
    return [w for w in view.visible_widgets() if w.message_id == desk.messages[index].id]


def shown(desk: WindowDesk, index: int = -1) -> str:
    return "\n".join(row.browser.toPlainText() for row in rows(desk, index))


def header(desk: WindowDesk, index: int = -1) -> str:
    found = rows(desk, index)
    return found[0].thought.text() if found and not found[0].thought.isHidden() else ""


def start(desk: WindowDesk, question: str = "2 and 2?") -> None:
    count = len(desk.client.requests)
    desk.send(question)
    desk.qtbot.waitUntil(lambda: len(desk.client.requests) == count + 1)


def say(desk: WindowDesk, text: str) -> None:
    desk.client.requests[-1].say(text, 1)


def ended(desk: WindowDesk) -> bool:
    return bool(desk.messages) and desk.messages[-1].state != "streaming"


def test_a_thought_is_seen_while_it_is_written_and_folds_when_the_answer_begins(desk: WindowDesk) -> None:
    start(desk)
    say(desk, "<think>\nTwo and two")
    desk.qtbot.waitUntil(lambda: "Two and two" in shown(desk))
    assert header(desk).startswith("Thinking")

    say(desk, " make four.\n</think>\n\nIt is **four**.")
    desk.qtbot.waitUntil(lambda: shown(desk) == "It is four.")

    assert header(desk) == "Thought for 1 s"
    assert rows(desk)[0].thought.accessibleName() == "Thought for 1 s, show the reasoning"


def test_a_click_or_a_key_unfolds_the_thought_and_folds_it_again(desk: WindowDesk) -> None:
    desk.ask("2 and 2?", "<think>Two and two.</think>It is four.")
    desk.qtbot.waitUntil(lambda: shown(desk) == "It is four.")

    QTest.mouseClick(rows(desk)[0].thought, Qt.MouseButton.LeftButton)
    assert shown(desk).split() == ["Two", "and", "two.", "It", "is", "four."]
    assert rows(desk)[0].thought.accessibleName().endswith("hide the reasoning")

    rows(desk)[0].thought.setFocus()
    QTest.keyClick(rows(desk)[0].thought, Qt.Key.Key_Space)
    assert shown(desk) == "It is four."


def test_who_reads_further_up_keeps_the_thought_unfolded(desk: WindowDesk) -> None:
    start(desk)
    say(desk, "<think>\n" + "One thing.\n\n" * 80)
    desk.qtbot.waitUntil(lambda: "One thing." in shown(desk))
    bar = desk.window.chat.view.verticalScrollBar()
    bar.setValue(bar.maximum() // 2)
    place = bar.value()

    say(desk, "</think>\nDone.")
    desk.client.requests[-1].finish()
    desk.qtbot.waitUntil(lambda: ended(desk))

    assert "One thing." in shown(desk)
    assert bar.value() == place


@pytest.mark.parametrize("engine_answers", [True, False], ids=["the engine ends it", "closed before that"])
def test_a_thought_that_was_stopped_is_kept_marked_and_shown_after_a_restart(
    desk: WindowDesk, qtbot: QtBot, theme: Theme, tmp_path: Path, engine_answers: bool
) -> None:
    start(desk)
    say(desk, "<think>so it is 4")
    desk.qtbot.waitUntil(lambda: "so it is 4" in shown(desk))
    desk.window.chat.composer.stop_requested.emit()
    if engine_answers:
        desk.client.requests[-1].finish("cancelled")
        desk.qtbot.waitUntil(lambda: ended(desk) and "not finished" in header(desk))
    desk.close()

    again = WindowDesk(qtbot, theme, tmp_path).start()
    qtbot.waitUntil(lambda: bool(again.messages) and "so it is 4" in shown(again))
    words = header(again)
    again.close()

    assert words == "Thought for 1 s, not finished"


def test_a_thought_that_the_prompt_began_is_known_after_a_restart_and_closed_in_the_next_prompt(
    qtbot: QtBot, theme: Theme, tmp_path: Path
) -> None:
    put_model(tmp_path)
    desk = WindowDesk(qtbot, theme, tmp_path, FakeClient(reasoning=OPEN)).start()
    start(desk)
    say(desk, "hidden words, then nothing")
    desk.qtbot.waitUntil(lambda: header(desk).startswith("Thinking"))
    desk.client.requests[-1].finish("length")
    desk.qtbot.waitUntil(lambda: ended(desk))
    desk.close()

    again = WindowDesk(qtbot, theme, tmp_path, FakeClient(reasoning=OPEN)).start()
    qtbot.waitUntil(lambda: bool(again.messages) and "not finished" in header(again))
    start(again, "And 3?")
    sent = [message["content"] for message in again.client.requests[-1].what.messages]
    again.close()

    assert sent == ["2 and 2?", "hidden words, then nothing\n</think>\n", "And 3?"]


def test_copies_are_without_the_thought_unless_it_is_asked_for(desk: WindowDesk) -> None:
    text = "<think>Two and two.</think>\n\nIt is **four**."
    desk.ask("2 and 2?", text)
    view, reply = desk.window.chat.view, desk.messages[-1].id
    copied = []

    for name in ("copy", "copy_text", "copy_rich", "copy_all"):
        view.act_on(reply, name)
        copied.append(QGuiApplication.clipboard().text())

    assert copied == ["It is **four**.", "It is four.", "It is four.", text]
    words = [action.text() for action in rows(desk)[0].actions_bar.menu().actions()]
    assert "Copy with the reasoning" in words
    assert "Two and two" not in rows(desk)[0].accessibleName()


def test_words_found_only_in_a_thought_unfold_it(desk: WindowDesk) -> None:
    desk.ask("2 and 2?", "<think>Two apples.</think>It is four.")
    desk.qtbot.waitUntil(lambda: shown(desk) == "It is four.")
    bar = desk.window.chat.find_bar
    bar.begin()

    bar.field.setText("apples")

    assert "apples" in shown(desk)


def test_tags_in_a_question_are_shown_as_typed(desk: WindowDesk) -> None:
    desk.ask("<think>what</think> does this do?", "It opens a thought.")

    assert shown(desk, 0) == "<think>what</think> does this do?"
    assert header(desk, 0) == ""
