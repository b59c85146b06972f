"""What a person does with turns, by keys and buttons in the whole window."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QMessageBox, QPushButton
from pytestqt.qtbot import QtBot
from window_desk import WindowDesk

from inglenook.app.window.theme import Theme


def press(desk: WindowDesk, row: int, name: str) -> None:
    """Click a button of a message, by the beginning of its accessible name."""

    def found() -> list[QPushButton]:
        view = desk.window.chat.view
        widgets = [w for w in view.visible_widgets() if w.message_id == desk.messages[row].id]
        for widget in widgets:
            widget.set_current(is_current=True)
        controls = [control for widget in widgets for control in widget.controls()]
        return [c for c in controls if isinstance(c, QPushButton) and c.accessibleName().startswith(name)]

    # A row shows what has changed a moment later.
    desk.qtbot.waitUntil(lambda: bool(found()))
    (button,) = found()
    QTest.mouseClick(button, Qt.MouseButton.LeftButton)


def choose(desk: WindowDesk, row: int, words: str) -> None:
    """Choose from a message's menu."""
    widgets = [w for w in desk.window.chat.view.visible_widgets() if w.message_id == desk.messages[row].id]
    menu = widgets[0].actions_bar.menu()
    next(action for action in menu.actions() if action.text() == words).trigger()


def answer(desk: WindowDesk, num_requests: int, text: str) -> None:
    desk.qtbot.waitUntil(lambda: len(desk.client.requests) == num_requests)
    asked = desk.client.requests[-1]
    asked.say(text, 1)
    asked.finish()
    desk.qtbot.waitUntil(lambda: bool(desk.messages) and desk.messages[-1].state == "complete")


def prompt(desk: WindowDesk) -> list[str]:
    return [message["content"] for message in desk.client.requests[-1].what.messages]


def test_a_question_edited_and_asked_again_keeps_the_old_one_as_a_version(desk: WindowDesk) -> None:
    desk.ask("Capitol of France?", "A building.")
    desk.ask("Where?", "There.")

    press(desk, 0, "Edit")
    edit = desk.window.chat.composer.edit
    assert edit.toPlainText() == "Capitol of France?"
    assert edit.hasFocus()
    edit.selectAll()
    QTest.keyClicks(edit, "Capital of France?")
    QTest.keyClick(edit, Qt.Key.Key_Return)
    answer(desk, 3, "Paris.")

    assert prompt(desk) == ["Capital of France?"]
    assert desk.texts == ["Capital of France?", "Paris."]
    assert (desk.messages[0].branch, desk.messages[0].num_branches) == (1, 2)
    assert not desk.window.chat.edit_bar.isVisible()

    press(desk, 0, "Earlier version")
    desk.qtbot.waitUntil(lambda: desk.texts == ["Capitol of France?", "A building.", "Where?", "There."])
    press(desk, 0, "Later version")
    desk.qtbot.waitUntil(lambda: desk.texts == ["Capital of France?", "Paris."])


def test_the_first_question_after_an_edit_comes_back_after_a_restart(
    desk: WindowDesk, qtbot: QtBot, theme: Theme, tmp_path: Path
) -> None:
    desk.ask("Old", "one")
    press(desk, 0, "Edit")
    desk.window.chat.composer.edit.clear()
    desk.send("New")
    answer(desk, 2, "two")
    desk.close()

    again = WindowDesk(qtbot, theme, tmp_path).start()
    qtbot.waitUntil(lambda: len(again.messages) == 2)

    assert again.texts == ["New", "two"]
    assert again.messages[0].num_branches == 2
    again.close()


def test_a_message_only_saved_is_not_asked_again_and_the_draft_comes_back(desk: WindowDesk) -> None:
    desk.ask("Teh question", "An answer.")
    desk.window.chat.composer.set_text("half a thought")

    press(desk, 0, "Edit")
    desk.window.chat.composer.set_text("The question")
    QTest.mouseClick(desk.window.chat.edit_bar.save_button, Qt.MouseButton.LeftButton)
    desk.qtbot.waitUntil(lambda: desk.texts == ["The question", "An answer."])

    assert len(desk.client.requests) == 1
    assert desk.window.chat.composer.text() == "half a thought"


def test_escape_leaves_an_edit_and_the_message_as_it_was(desk: WindowDesk) -> None:
    desk.ask("A question", "An answer.")
    press(desk, 0, "Edit")
    desk.window.chat.composer.set_text("something else")

    QTest.keyClick(desk.window.chat.composer.edit, Qt.Key.Key_Escape)

    assert not desk.window.chat.edit_bar.isVisible()
    assert desk.window.chat.composer.text() == ""
    assert desk.texts == ["A question", "An answer."]


def test_a_reply_edited_is_what_the_model_is_told_it_said(desk: WindowDesk) -> None:
    desk.ask("A question", "A wrong answer.")

    choose(desk, 1, "Edit this reply…")
    desk.window.chat.composer.edit.clear()
    desk.send("A right answer.")
    desk.qtbot.waitUntil(lambda: desk.texts[1] == "A right answer.")
    assert len(desk.client.requests) == 1
    desk.ask("And?", "So.")

    assert prompt(desk) == ["A question", "A right answer.", "And?"]


def test_answering_again_makes_a_version(desk: WindowDesk) -> None:
    desk.ask("A question", "First.")

    press(desk, 1, "Answer again")
    answer(desk, 2, "Second.")

    assert desk.texts == ["A question", "Second."]
    assert (desk.messages[1].branch, desk.messages[1].num_branches) == (1, 2)


def test_a_chat_forks_at_a_message(desk: WindowDesk) -> None:
    desk.ask("One", "1")
    desk.ask("Two", "2")

    choose(desk, 1, "New chat from here")
    desk.qtbot.waitUntil(lambda: desk.texts == ["One", "1"])
    desk.ask("Three", "3")

    assert desk.titles == ["One (from here)", "One"]
    desk.window.sidebar.chats.activated.emit(desk.window.sidebar.chats.model.entries[1].id)
    desk.qtbot.waitUntil(lambda: desk.texts == ["One", "1", "Two", "2"])


@pytest.mark.parametrize("is_meant", [True, False])
def test_a_turn_is_deleted_once_it_was_meant(desk: WindowDesk, is_meant: bool) -> None:
    desk.ask("One", "1")
    desk.ask("Two", "2")
    desk.ask("Three", "3")

    choose(desk, 3, "Delete question and answer…")
    box = desk.window.findChild(QMessageBox)
    assert isinstance(box, QMessageBox)
    words = "Delete" if is_meant else "Cancel"
    next(button for button in box.buttons() if button.text().replace("&", "") == words).click()

    left = ["One", "1", "Three", "3"] if is_meant else ["One", "1", "Two", "2", "Three", "3"]
    desk.qtbot.waitUntil(lambda: desk.texts == left)


def test_messages_written_while_a_reply_comes_wait_and_are_sent_in_order(desk: WindowDesk) -> None:
    desk.send("One")
    desk.qtbot.waitUntil(lambda: len(desk.client.requests) == 1)
    desk.send("Two")
    desk.send("Three")
    queue = desk.window.chat.queue
    assert queue.isVisible()
    assert [chip.accessibleName() for chip in queue.chips[::2]] == [
        "Edit the waiting message: Two",
        "Edit the waiting message: Three",
    ]

    for number in (1, 2):
        desk.client.requests[-1].say(str(number), number)
        desk.client.requests[-1].finish()
        desk.qtbot.waitUntil(lambda number=number: len(desk.client.requests) == number + 1)
    answer(desk, 3, "3")

    assert desk.texts == ["One", "1", "Two", "2", "Three", "3"]
    assert not queue.isVisible()


def test_a_waiting_message_can_be_changed_or_taken_out(desk: WindowDesk) -> None:
    desk.send("One")
    desk.qtbot.waitUntil(lambda: len(desk.client.requests) == 1)
    desk.send("Two")
    desk.send("Three")
    queue = desk.window.chat.queue

    queue.chips[3].click()  # type: ignore[attr-defined]
    queue.chips[0].click()  # type: ignore[attr-defined]

    assert desk.window.chat.composer.text() == "Two"
    assert not queue.isVisible()


def test_stopping_a_reply_holds_what_waits_until_it_is_sent(desk: WindowDesk) -> None:
    desk.send("One")
    desk.qtbot.waitUntil(lambda: len(desk.client.requests) == 1)
    desk.send("Two")

    QTest.keyClick(desk.window.chat.composer.edit, Qt.Key.Key_Escape)
    desk.client.requests[0].finish("cancelled")
    queue = desk.window.chat.queue
    desk.qtbot.waitUntil(queue.send_button.isVisible)
    assert len(desk.client.requests) == 1
    QTest.mouseClick(queue.send_button, Qt.MouseButton.LeftButton)
    answer(desk, 2, "2")

    assert desk.texts[-2:] == ["Two", "2"]


def test_what_waits_belongs_to_its_own_chat(desk: WindowDesk) -> None:
    desk.send("One")
    desk.qtbot.waitUntil(lambda: len(desk.client.requests) == 1)
    desk.send("Two")

    desk.window.actions_by_name["new_chat"].trigger()
    assert not desk.window.chat.queue.isVisible()
    desk.client.requests[0].say("1", 1)
    desk.client.requests[0].finish()
    desk.qtbot.waitUntil(lambda: len(desk.client.requests) == 2)

    assert desk.texts == []
    assert prompt(desk) == ["One", "1", "Two"]


def test_arrows_and_e_work_on_the_message_under_the_keyboard(desk: WindowDesk) -> None:
    desk.ask("A question", "First.")
    press(desk, 1, "Answer again")
    answer(desk, 2, "Second.")
    view = desk.window.chat.view
    view.setFocus()
    QTest.keyClick(view, Qt.Key.Key_End)

    QTest.keyClick(view, Qt.Key.Key_Left)
    desk.qtbot.waitUntil(lambda: desk.texts[1] == "First.")
    QTest.keyClick(view, Qt.Key.Key_Home)
    QTest.keyClick(view, Qt.Key.Key_E)

    assert desk.window.chat.composer.text() == "A question"
    assert desk.window.chat.edit_bar.isVisible()


def test_a_message_is_copied_as_markdown_as_text_and_with_formatting(desk: WindowDesk) -> None:
    desk.ask("q", "A **bold** <b>word</b>.")
    clipboard = QGuiApplication.clipboard()

    choose(desk, 1, "Copy as Markdown")
    assert clipboard.text() == "A **bold** <b>word</b>."
    choose(desk, 1, "Copy as plain text")
    assert clipboard.text() == "A bold <b>word</b>."
    assert not clipboard.mimeData().hasHtml()
    choose(desk, 1, "Copy with formatting")

    assert clipboard.mimeData().html() == "<p>A <strong>bold</strong> &lt;b&gt;word&lt;/b&gt;.</p>"
    QApplication.processEvents()
