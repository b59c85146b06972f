"""The list of chats in the whole window: pins, archive, trash, searching and exporting."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QMessageBox
from pytestqt.qtbot import QtBot
from window_desk import WindowDesk


@pytest.fixture
def desk(desk: WindowDesk, qtbot: QtBot) -> WindowDesk:
    for question, answer in (("About bread", "Flour and water."), ("About tea", "Leaves and water.")):
        desk.window.actions_by_name["new_chat"].trigger()
        desk.ask(question, answer)
    qtbot.waitUntil(lambda: listed(desk) == ["About tea", "About bread"])
    return desk


def listed(desk: WindowDesk) -> list[str]:
    model = desk.window.sidebar.chats.view.model()
    return [model.index(row, 0).data() for row in range(model.rowCount())]


def choose(desk: WindowDesk, title: str, words: str) -> None:
    """Choose from the menu of a row."""
    chats = desk.window.sidebar.chats
    index = chats.view.model().index(listed(desk).index(title), 0)
    next(action for action in chats.menu(index).actions() if action.text() == words).trigger()


def test_a_pinned_chat_stands_on_top_until_it_is_unpinned(desk: WindowDesk) -> None:
    choose(desk, "About bread", "Pin on top")
    desk.qtbot.waitUntil(lambda: listed(desk) == ["About bread", "About tea"])

    heard = desk.window.sidebar.chats.model.index(0).data(Qt.ItemDataRole.AccessibleTextRole)
    assert heard == "About bread, pinned"
    choose(desk, "About bread", "Unpin")
    desk.qtbot.waitUntil(lambda: listed(desk) == ["About tea", "About bread"])


def test_a_chat_goes_into_the_archive_and_comes_back(desk: WindowDesk) -> None:
    choose(desk, "About bread", "Archive")
    desk.qtbot.waitUntil(lambda: listed(desk) == ["About tea"])

    desk.window.actions_by_name["show_archive"].trigger()
    desk.qtbot.waitUntil(lambda: listed(desk) == ["About bread"])
    choose(desk, "About bread", "Back to the list")
    desk.qtbot.waitUntil(lambda: listed(desk) == [])
    QTest.mouseClick(desk.window.sidebar.chats.back_button, Qt.MouseButton.LeftButton)

    desk.qtbot.waitUntil(lambda: listed(desk) == ["About tea", "About bread"])


def test_archiving_can_be_undone_at_once(desk: WindowDesk) -> None:
    choose(desk, "About tea", "Archive")
    desk.qtbot.waitUntil(lambda: listed(desk) == ["About bread"])
    assert desk.messages == []

    desk.window.banner.button.click()

    desk.qtbot.waitUntil(lambda: listed(desk) == ["About tea", "About bread"])


def test_the_trash_gives_back_and_deletes_for_good_only_once_it_was_meant(desk: WindowDesk) -> None:
    for title in ("About tea", "About bread"):
        choose(desk, title, "Move to the trash")
        desk.qtbot.waitUntil(lambda title=title: title not in listed(desk))
    desk.window.actions_by_name["show_trash"].trigger()
    desk.qtbot.waitUntil(lambda: listed(desk) == ["About tea", "About bread"])

    choose(desk, "About tea", "Take back")
    desk.qtbot.waitUntil(lambda: listed(desk) == ["About bread"])
    assert [message.text for message in desk.messages] == ["About tea", "Leaves and water."]
    choose(desk, "About bread", "Delete for good…")
    box = desk.window.findChild(QMessageBox)
    assert isinstance(box, QMessageBox)
    assert box.text() == "Delete “About bread” for good?"
    next(button for button in box.buttons() if button.text().replace("&", "") == "Delete").click()

    desk.qtbot.waitUntil(lambda: listed(desk) == [])
    assert not desk.window.banner.button.isVisible(), "there is nothing left to undo"


def test_a_chat_in_the_trash_says_how_to_read_it(desk: WindowDesk) -> None:
    choose(desk, "About bread", "Move to the trash")
    desk.window.actions_by_name["show_trash"].trigger()
    desk.qtbot.waitUntil(lambda: listed(desk) == ["About bread"])

    desk.window.sidebar.chats.activated.emit(desk.window.sidebar.chats.model.entries[0].id)
    assert "“About bread” is in the trash." in desk.window.banner.text
    desk.window.banner.button.click()

    desk.qtbot.waitUntil(lambda: [m.text for m in desk.messages] == ["About bread", "Flour and water."])


def test_a_word_of_a_reply_finds_its_chat_and_a_click_goes_there(desk: WindowDesk) -> None:
    search = desk.window.sidebar.chats.search
    desk.window.actions_by_name["search_chats"].trigger()
    QTest.keyClicks(search, "flour")
    desk.qtbot.waitUntil(lambda: listed(desk) == ["About bread"])
    entry = desk.window.sidebar.chats.model.entries[0]

    desk.window.sidebar.chats.activated.emit(entry.id)
    desk.qtbot.waitUntil(lambda: [m.text for m in desk.messages] == ["About bread", "Flour and water."])

    assert entry.snippet == "Flour and water."
    search.clear()
    desk.qtbot.waitUntil(lambda: listed(desk) == ["About tea", "About bread"])


def test_a_hit_in_a_version_that_is_not_shown_is_shown_when_it_is_opened(desk: WindowDesk) -> None:
    desk.window.actions_by_name["regenerate"].trigger()
    desk.qtbot.waitUntil(lambda: len(desk.client.requests) == 3)
    desk.client.requests[-1].say("Water alone.", 1)
    desk.client.requests[-1].finish()
    desk.qtbot.waitUntil(
        lambda: desk.messages[-1].text == "Water alone." and desk.messages[-1].state == "complete"
    )
    desk.window.sidebar.chats.search.setText("leaves")
    desk.qtbot.waitUntil(lambda: listed(desk) == ["About tea"])

    desk.window.sidebar.chats.activated.emit(desk.window.sidebar.chats.model.entries[0].id)

    desk.qtbot.waitUntil(lambda: desk.messages[-1].text == "Leaves and water.")
    assert (desk.messages[-1].branch, desk.messages[-1].num_branches) == (0, 2)


def test_a_search_without_a_hit_says_so(desk: WindowDesk) -> None:
    QTest.keyClicks(desk.window.sidebar.chats.search, "zebra")

    desk.qtbot.waitUntil(lambda: listed(desk) == [])
    assert desk.window.sidebar.chats._empty.text() == "Nothing in titles or messages: “zebra”"


def test_a_chat_is_exported_and_a_bad_place_is_a_sentence(desk: WindowDesk, tmp_path: Path) -> None:
    chats = desk.join.chats
    entry = desk.window.sidebar.chats.model.entries[0]

    chats.list.exports.write_one(entry.id, tmp_path / "tea.md")
    desk.qtbot.waitUntil(lambda: "Exported to tea.md." in desk.window.banner.text)
    chats.list.exports.write_one(entry.id, tmp_path / "missing" / "tea.md")
    desk.qtbot.waitUntil(lambda: "could not be written" in desk.window.banner.text)

    assert "Leaves and water." in (tmp_path / "tea.md").read_text(encoding="utf-8")
