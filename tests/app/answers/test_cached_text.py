"""What a person deletes in the window is dropped from the engine's caches too, under the owner that asked."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtWidgets import QAbstractButton, QMessageBox
from window_desk import WindowDesk

NOTES = "The tower of Zorb is 34 metres high.\n"


def choose_of_message(desk: WindowDesk, row: int, words: str) -> None:
    """Choose from a message's menu."""
    widgets = [w for w in desk.window.chat.view.visible_widgets() if w.message_id == desk.messages[row].id]
    menu = widgets[0].actions_bar.menu()
    next(action for action in menu.actions() if action.text() == words).trigger()


def answer_box(desk: WindowDesk, words: str) -> None:
    """Press a button of the question that stands before the window."""
    box = desk.window.findChild(QMessageBox)
    assert isinstance(box, QMessageBox)
    buttons: list[QAbstractButton] = list(box.buttons())
    next(button for button in buttons if button.text().replace("&", "") == words).click()


def owners(desk: WindowDesk) -> list[str]:
    return [asked.what.owner for asked in desk.client.requests]


def test_every_turn_of_a_chat_has_the_same_owner_and_another_chat_another(desk: WindowDesk) -> None:
    desk.ask("One", "1")
    desk.ask("Two", "2")
    desk.window.actions_by_name["new_chat"].trigger()
    desk.ask("Other", "3")

    first, second, third = owners(desk)

    assert first == second != third
    assert desk.client.forgotten == []


@pytest.mark.parametrize("is_meant", [True, False])
def test_a_turn_deleted_is_forgotten_once_it_was_meant(desk: WindowDesk, is_meant: bool) -> None:
    desk.ask("One", "1")
    desk.ask("Two", "2")

    choose_of_message(desk, 3, "Delete question and answer…")
    answer_box(desk, "Delete" if is_meant else "Cancel")
    if is_meant:
        desk.qtbot.waitUntil(lambda: [m.text for m in desk.messages] == ["One", "1"])

    assert desk.client.forgotten == ([owners(desk)[0]] if is_meant else [])


def test_a_message_overwritten_is_forgotten(desk: WindowDesk) -> None:
    desk.ask("One", "1")

    desk.join.chats.turns.act(desk.messages[1].id, "edit")
    desk.window.chat.composer.set_text("1, exactly")
    desk.window.chat.edit_bar.save_requested.emit()
    desk.qtbot.waitUntil(lambda: [m.text for m in desk.messages] == ["One", "1, exactly"])

    assert desk.client.forgotten == [owners(desk)[0]]


def test_a_chat_in_the_trash_is_kept_and_deleted_for_good_is_forgotten(desk: WindowDesk) -> None:
    desk.ask("One", "1")
    (conversation_id,) = [entry.id for entry in desk.window.sidebar.chats.model.entries]
    desk.window.sidebar.chats.delete_requested.emit([conversation_id])
    desk.qtbot.waitUntil(lambda: desk.titles == [])
    assert desk.client.forgotten == []

    desk.window.actions_by_name["show_trash"].trigger()
    desk.qtbot.waitUntil(lambda: desk.titles == ["One"])
    desk.window.sidebar.chats.delete_requested.emit([conversation_id])
    answer_box(desk, "Delete")
    desk.qtbot.waitUntil(lambda: desk.titles == [])

    assert desk.client.forgotten == [owners(desk)[0]]


def test_a_document_forgotten_takes_the_chats_along_that_were_asked_about_it(
    desk: WindowDesk, tmp_path: Path
) -> None:
    desk.ask("Without a document", "1")
    path = tmp_path / "notes.md"
    path.write_text(NOTES)
    desk.drop(path)
    entries = desk.window.sidebar.documents.model
    desk.qtbot.waitUntil(lambda: [e.state for e in entries.entries] == ["ready"], timeout=30_000)
    desk.window.actions_by_name["new_chat"].trigger()
    desk.window.sidebar.documents.ticked.emit(entries.entries[0].id, True)
    desk.ask("How high is the tower of Zorb?", "34 metres.")

    desk.window.sidebar.documents.remove_requested.emit(entries.entries[0].id)
    answer_box(desk, "Remove")
    desk.qtbot.waitUntil(lambda: entries.entries == [])

    assert desk.client.forgotten == [owners(desk)[1]]
