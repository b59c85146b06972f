"""Choosing several messages: by mouse and keys, told to a screen reader, then copied, exported or deleted."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QAccessible, QGuiApplication
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QMessageBox
from window_desk import WindowDesk

from inglenook.app.chat.message_widget import MessageWidget


@pytest.fixture
def desk(desk: WindowDesk) -> WindowDesk:
    desk.ask("One?", "<think>hm</think>**1**")
    desk.ask("Two?", "2")
    desk.window.actions_by_name["select_messages"].trigger()
    return desk


def row(desk: WindowDesk, index: int) -> MessageWidget:
    view = desk.window.chat.view
    return next(w for w in view.visible_widgets() if w.message_id == desk.messages[index].id)


def click(desk: WindowDesk, index: int, *, shift: bool = False) -> None:
    keys = Qt.KeyboardModifier.ShiftModifier if shift else Qt.KeyboardModifier.NoModifier
    QTest.mouseClick(row(desk, index).cover, Qt.MouseButton.LeftButton, keys)


def chosen(desk: WindowDesk) -> list[int]:
    selection = desk.window.chat.view.selection
    return [i for i, message in enumerate(desk.messages) if message.id in selection]


def test_clicks_choose_and_a_click_with_shift_chooses_all_between(
    desk: WindowDesk, monkeypatch: pytest.MonkeyPatch
) -> None:
    click(desk, 0)
    assert (chosen(desk), desk.window.chat.selection_bar.words.text()) == ([0], "1 message chosen")
    # The state of the real keyboard is asked, which a test does not hold.
    monkeypatch.setattr(QApplication, "keyboardModifiers", lambda: Qt.KeyboardModifier.ShiftModifier)
    click(desk, 2)
    assert chosen(desk) == [0, 1, 2]
    monkeypatch.undo()
    click(desk, 1)
    assert chosen(desk) == [0, 2]


def test_the_keyboard_chooses_and_leaves(desk: WindowDesk) -> None:
    view = desk.window.chat.view
    QTest.keyClick(view, Qt.Key.Key_Home)
    QTest.keyClick(view, Qt.Key.Key_Space)
    QTest.keyClick(view, Qt.Key.Key_Down)
    QTest.keyClick(view, Qt.Key.Key_Space)
    assert chosen(desk) == [0, 1]

    QTest.keyClick(view, Qt.Key.Key_A, Qt.KeyboardModifier.ControlModifier)
    assert chosen(desk) == [0, 1, 2, 3]
    desk.window.actions_by_name["stop"].trigger()

    assert not view.selection.is_on
    assert row(desk, 0).cover.isHidden()
    assert desk.window.chat.selection_bar.isHidden()


def test_each_row_is_a_check_box_with_the_messages_words(desk: WindowDesk) -> None:
    click(desk, 1)

    told = QAccessible.queryAccessibleInterface(row(desk, 1).cover)

    assert told.role() == QAccessible.Role.CheckBox
    assert told.text(QAccessible.Text.Name).startswith("Assistant, ")
    assert "1" in told.text(QAccessible.Text.Name)
    assert told.state().checked


def test_the_chosen_messages_are_copied_in_order_without_thoughts(desk: WindowDesk) -> None:
    click(desk, 3)
    click(desk, 0)
    click(desk, 1)

    QTest.mouseClick(desk.window.chat.selection_bar.copy_button, Qt.MouseButton.LeftButton)

    assert (
        QGuiApplication.clipboard().text()
        == "**You:**\n\nOne?\n\n**Assistant:**\n\n**1**\n\n**Assistant:**\n\n2"
    )
    assert not desk.window.chat.view.selection.is_on


def test_only_the_chosen_messages_are_exported(desk: WindowDesk, tmp_path: Path) -> None:
    click(desk, 2)
    click(desk, 3)

    desk.join.chats.turns.selection.write(tmp_path / "some.md")
    desk.qtbot.waitUntil(lambda: (tmp_path / "some.md").exists())

    text = (tmp_path / "some.md").read_text()
    assert "Two?" in text
    assert "**1**" not in text
    assert text.count("## ") == 2


@pytest.mark.parametrize("is_meant", [True, False])
def test_the_turns_of_the_chosen_messages_are_deleted_once_it_was_meant(
    desk: WindowDesk, is_meant: bool
) -> None:
    click(desk, 1)
    QTest.mouseClick(desk.window.chat.selection_bar.delete_button, Qt.MouseButton.LeftButton)
    (box,) = desk.window.findChildren(QMessageBox)
    words = "Delete" if is_meant else "Cancel"
    next(b for b in box.buttons() if b.text().replace("&", "") == words).click()

    if is_meant:
        desk.qtbot.waitUntil(lambda: [m.text for m in desk.messages] == ["Two?", "2"])
    else:
        assert len(desk.messages) == 4
        assert chosen(desk) == [1]


def test_another_chat_ends_it(desk: WindowDesk) -> None:
    click(desk, 1)

    desk.window.actions_by_name["new_chat"].trigger()

    assert not desk.window.chat.view.selection.is_on
