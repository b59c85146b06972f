"""Folders, several chats at once, and the filter of the search, in the whole window."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import QMimeData, QModelIndex, QPoint, QPointF, Qt
from PySide6.QtGui import QDropEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QMenu
from pytestqt.qtbot import QtBot
from window_desk import WindowDesk, put_model

from inglenook.app.chat.conversation_list_model import MIME_TYPE
from inglenook.app.window.theme import Theme
from inglenook.storage.conversations import Conversations
from inglenook.storage.messages import Messages

CTRL = Qt.KeyboardModifier.ControlModifier


@pytest.fixture
def desk(qtbot: QtBot, theme: Theme, tmp_path: Path) -> Iterator[WindowDesk]:
    put_model(tmp_path)
    desk = WindowDesk(qtbot, theme, tmp_path).start()

    def fill(db: object) -> None:
        for title, text in (("Bread", "flour"), ("Tea", "leaves"), ("Tax", "flour tax")):
            chat = Conversations(db).create(title)  # type: ignore[arg-type]
            Messages(db).add(chat, "user", text, parent_id=None)  # type: ignore[arg-type]

    desk.application.tasks.write(fill, lambda _: desk.join.chats.refresh())
    qtbot.waitUntil(lambda: listed(desk) == ["Tax", "Tea", "Bread"])
    yield desk
    desk.close()


def listed(desk: WindowDesk) -> list[str]:
    model = desk.window.sidebar.chats.view.model()
    return [model.index(row, 0).data() for row in range(model.rowCount())]


def index_of(desk: WindowDesk, words: str) -> QModelIndex:
    return desk.window.sidebar.chats.view.model().index(listed(desk).index(words), 0)


def click(desk: WindowDesk, words: str, modifiers: Qt.KeyboardModifier = CTRL) -> None:
    view = desk.window.sidebar.chats.view
    place = view.visualRect(index_of(desk, words)).center()
    QTest.mouseClick(view.viewport(), Qt.MouseButton.LeftButton, modifiers, pos=place)


def menu_of(desk: WindowDesk, words: str) -> dict[str, QMenu]:
    menu = desk.window.sidebar.chats.menu(index_of(desk, words))
    actions = {action.text(): action for action in menu.actions()}
    sub = next((m for m in menu.findChildren(QMenu) if m.title() == "Move to folder"), None)
    return actions | {action.text(): action for action in (sub.actions() if sub else ())}  # type: ignore[return-value]


def make_folder(desk: WindowDesk, name: str) -> None:
    desk.window.actions_by_name["new_folder"].trigger()
    desk.qtbot.waitUntil(lambda: "New folder" in listed(desk))
    chats = desk.window.sidebar.chats
    desk.qtbot.waitUntil(lambda: chats.view.state() == chats.view.State.EditingState)
    editor = chats.view.indexWidget(chats.view.currentIndex()) or chats.view.findChild(type(chats.search))
    editor.setText(name)
    QTest.keyClick(editor, Qt.Key.Key_Return)
    desk.qtbot.waitUntil(lambda: name in listed(desk))


def test_a_folder_is_made_by_key_named_filled_by_menu_and_closed(desk: WindowDesk) -> None:
    desk.window.activateWindow()
    make_folder(desk, "Kitchen")
    assert listed(desk) == ["Kitchen", "Tax", "Tea", "Bread"]

    menu_of(desk, "Bread")["Kitchen"].trigger()
    desk.qtbot.waitUntil(lambda: listed(desk) == ["Kitchen", "Bread", "Tax", "Tea"])
    view = desk.window.sidebar.chats.view
    view.setFocus()
    view.setCurrentIndex(index_of(desk, "Bread"))
    QTest.keyClick(view, Qt.Key.Key_Left)

    assert listed(desk) == ["Kitchen", "Tax", "Tea"]
    heard = index_of(desk, "Kitchen").data(Qt.ItemDataRole.AccessibleTextRole)
    assert heard == "Folder Kitchen, 1 chats"
    QTest.keyClick(view, Qt.Key.Key_Return)
    assert listed(desk) == ["Kitchen", "Bread", "Tax", "Tea"]


def test_several_chats_are_dragged_into_a_folder_and_out_again(desk: WindowDesk) -> None:
    make_folder(desk, "Kitchen")
    click(desk, "Bread")
    click(desk, "Tea")
    chats = desk.window.sidebar.chats
    data = chats.view.model().mimeData([index_of(desk, title) for title in ("Bread", "Tea")])

    def drop(place: QPoint) -> None:
        event = QDropEvent(
            QPointF(place), Qt.DropAction.MoveAction, data, Qt.MouseButton.LeftButton, Qt.KeyboardModifier(0)
        )
        chats.view.dropEvent(event)

    drop(chats.view.visualRect(index_of(desk, "Kitchen")).center())
    desk.qtbot.waitUntil(lambda: listed(desk) == ["Kitchen", "Tea", "Bread", "Tax"])

    drop(QPoint(40, chats.view.viewport().height() - 4))

    desk.qtbot.waitUntil(lambda: listed(desk) == ["Kitchen", "Tax", "Tea", "Bread"])


@pytest.mark.parametrize("raw", [b"", b"[", b"[999]", b'["1"]', b"{}", b"[true]", b"\xff" * 9])
def test_what_another_program_drags_in_moves_nothing(desk: WindowDesk, raw: bytes, qtbot: QtBot) -> None:
    model, data, before = desk.window.sidebar.chats.model, QMimeData(), listed(desk)
    data.setData(MIME_TYPE, raw)

    with qtbot.assertNotEmitted(model.move_requested):
        model.dropMimeData(data, Qt.DropAction.MoveAction, -1, -1, model.index(0))

    assert listed(desk) == before


def test_deleting_a_folder_keeps_its_chats_and_can_be_undone(desk: WindowDesk) -> None:
    make_folder(desk, "Kitchen")
    menu_of(desk, "Bread")["Kitchen"].trigger()
    desk.qtbot.waitUntil(lambda: listed(desk) == ["Kitchen", "Bread", "Tax", "Tea"])

    menu_of(desk, "Kitchen")["Delete the folder, keep its chats"].trigger()
    desk.qtbot.waitUntil(lambda: listed(desk) == ["Tax", "Tea", "Bread"])
    desk.window.banner.button.click()

    desk.qtbot.waitUntil(lambda: listed(desk) == ["Kitchen", "Bread", "Tax", "Tea"])


def test_a_folder_cannot_take_the_name_of_another(desk: WindowDesk) -> None:
    make_folder(desk, "Kitchen")
    make_folder(desk, "Garden")

    desk.window.sidebar.chats.model.setData(
        desk.window.sidebar.chats.model.index(desk.window.sidebar.chats.model.row_of_folder("Garden")),
        "kitchen",
    )

    desk.qtbot.waitUntil(lambda: "There is a folder “kitchen” already." in desk.window.banner.text)
    assert listed(desk)[:2] == ["Garden", "Kitchen"]


def test_several_chats_are_moved_to_the_trash_at_once_and_come_back(desk: WindowDesk) -> None:
    click(desk, "Bread")
    click(desk, "Tea")
    assert desk.messages == []

    menu_of(desk, "Tea")["Move to the trash"].trigger()
    desk.qtbot.waitUntil(lambda: listed(desk) == ["Tax"])
    assert desk.window.banner.text == "2 chats were moved to the trash, where they stay for 30 days."
    desk.window.banner.button.click()

    desk.qtbot.waitUntil(lambda: listed(desk) == ["Tax", "Tea", "Bread"])


def test_several_chats_are_exported_a_file_each_and_none_over_another(
    desk: WindowDesk, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (out / "Tea.md").write_text("mine")
    ids = [entry.id for entry in desk.window.sidebar.chats.model.entries]

    desk.join.chats.list.exports.write_many([*ids, 999], out, "md")

    desk.qtbot.waitUntil(lambda: "Exported 3 of 4 chats to out." in desk.window.banner.text)
    assert sorted(path.name for path in out.iterdir()) == ["Bread.md", "Tax.md", "Tea (2).md", "Tea.md"]
    assert (out / "Tea.md").read_text() == "mine"
    desk.join.chats.list.exports.write_many(ids, tmp_path / "missing", "json")
    desk.qtbot.waitUntil(lambda: "0 of 3 chats were exported" in desk.window.banner.text)


def test_a_search_is_confined_by_the_filter_which_says_so(desk: WindowDesk) -> None:
    chats = desk.window.sidebar.chats
    chats.search.setText("tax")
    desk.qtbot.waitUntil(lambda: listed(desk) == ["Tax"])
    chats.search.setText("flour")
    desk.qtbot.waitUntil(lambda: listed(desk) == ["Tax", "Bread"])

    next(a for a in chats.filter_button.fill().actions() if a.text() == "Titles only").trigger()

    desk.qtbot.waitUntil(lambda: listed(desk) == [])
    assert chats._confined.text() == "Only: Titles only"
    assert chats.filter_button.accessibleName() == "Search only: Titles only"
    chats.filter_button.clear()
    desk.qtbot.waitUntil(lambda: listed(desk) == ["Tax", "Bread"])
