"""The list of chats in the side bar."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QPoint, Qt, QTimer
from PySide6.QtTest import QAbstractItemModelTester, QTest
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from inglenook.app.chat.conversation_list import ConversationList
from inglenook.app.chat.conversation_list_model import (
    ConversationEntry,
    ConversationFilter,
    ConversationListModel,
)
from inglenook.app.window.theme import Theme

ENTRIES = [
    ConversationEntry(3, "Heat pump manual"),
    ConversationEntry(2, "Tax & <b>lease</b>", is_busy=True),
    ConversationEntry(1, ""),
]


@pytest.fixture
def chats(qtbot: QtBot, theme: Theme) -> ConversationList:
    chats = ConversationList(theme)
    qtbot.addWidget(chats)
    chats.set_entries(ENTRIES)
    chats.resize(240, 300)
    chats.show()
    return chats


def test_the_model_keeps_qts_rules(qtbot: QtBot) -> None:
    model = ConversationListModel(ENTRIES)
    tester = QAbstractItemModelTester(model, QAbstractItemModelTester.FailureReportingMode.Fatal)

    model.replace(ENTRIES[:2])
    model.replace([ConversationEntry(3, "Other title"), ENTRIES[1]])
    model.replace([])

    assert model.rowCount() == 0
    tester.deleteLater()


def test_titles_are_shown_literally_and_the_nameless_one_has_a_name(qtbot: QtBot) -> None:
    model = ConversationListModel(ENTRIES)

    assert model.index(1).data() == "Tax & <b>lease</b>"
    assert "&lt;b&gt;lease" in model.index(1).data(Qt.ItemDataRole.ToolTipRole)
    assert model.index(2).data() == "New chat"
    assert "being answered" in model.index(1).data(Qt.ItemDataRole.AccessibleTextRole)


def test_a_filter_wants_every_word_in_any_case(qtbot: QtBot) -> None:
    chats = ConversationFilter()
    chats.setSourceModel(ConversationListModel(ENTRIES, chats))

    chats.set_words("PUMP heat")

    assert [chats.index(row, 0).data() for row in range(chats.rowCount())] == ["Heat pump manual"]


def test_a_click_and_return_activate_a_conversation(qtbot: QtBot, chats: ConversationList) -> None:
    place = chats.view.visualRect(chats.view.model().index(1, 0)).center()
    with qtbot.waitSignal(chats.activated) as clicked:
        QTest.mouseClick(chats.view.viewport(), Qt.MouseButton.LeftButton, pos=QPoint(place))
    chats.view.setFocus()
    QTest.keyClick(chats.view, Qt.Key.Key_Up)
    with qtbot.waitSignal(chats.activated) as pressed:
        QTest.keyClick(chats.view, Qt.Key.Key_Return)

    assert (clicked.args, pressed.args) == ([2], [3])


def test_renaming_asks_for_the_new_title_and_delete_for_deletion(
    qtbot: QtBot, chats: ConversationList
) -> None:
    with qtbot.waitSignal(chats.rename_requested) as renamed:
        chats.model.setData(chats.model.index(0), "  A  new\ntitle ")
    assert renamed.args == [3, "A new title"]
    assert chats.model.index(0).data() == "Heat pump manual"

    chats.set_current(3)
    with qtbot.waitSignal(chats.delete_requested) as deleted:
        QTest.keyClick(chats.view, Qt.Key.Key_Delete)
    assert deleted.args == [[3]]


def test_the_current_conversation_stays_current_when_the_list_changes(chats: ConversationList) -> None:
    chats.set_current(2)

    chats.set_entries([ConversationEntry(4, "Newest"), *ENTRIES])

    assert chats.view.currentIndex().data() == "Tax & <b>lease</b>"


@pytest.mark.no_qt_log  # without a screen, Qt warns that a menu cannot take the keyboard
def test_a_menu_that_is_left_leaves_the_current_conversation(chats: ConversationList) -> None:
    chats.set_current(2)
    other = chats.view.model().index(0, 0)
    assert chats.view.currentIndex() != other
    QTimer.singleShot(0, lambda: QApplication.activePopupWidget().close())

    chats.view.menu_requested.emit(chats.view.visualRect(other).center())

    assert chats.view.currentIndex().data() == "Tax & <b>lease</b>"


def test_a_search_without_a_hit_says_so(qtbot: QtBot, chats: ConversationList) -> None:
    chats.search.setText("zebra")

    assert chats._stack.currentWidget().text() == "Nothing in titles or messages: “zebra”"
