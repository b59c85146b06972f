"""Pages of the centre that other parts bring."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt, Signal
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QPushButton, QVBoxLayout, QWidget
from pytestqt.qtbot import QtBot

from inglenook.app.window.main_window import MainWindow
from inglenook.app.window.pages import Pages
from inglenook.app.window.theme import Theme


class ClosablePage(QWidget):
    close_requested = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.button = QPushButton("Do it")
        QVBoxLayout(self).addWidget(self.button)


@pytest.fixture
def window(qtbot: QtBot, theme: Theme) -> MainWindow:
    window = MainWindow(theme)
    qtbot.addWidget(window)
    window.show()
    return window


def test_a_page_that_was_added_is_offered_shown_with_its_title_and_closed_with_esc(
    window: MainWindow, qtbot: QtBot
) -> None:
    page, action = ClosablePage(), window.actions_by_name["settings"]
    assert not action.isVisible()

    window.add_page("settings", page, "Settings", lambda: page.button)
    assert action.isVisible()
    window.activateWindow()
    QTest.keyClick(window, Qt.Key.Key_Comma, Qt.KeyboardModifier.ControlModifier)

    assert window.page is page
    assert window.windowTitle() == "Settings — Inglenook"
    qtbot.waitUntil(lambda: QApplication.focusWidget() is page.button)
    QTest.keyClick(page.button, Qt.Key.Key_Escape)
    assert window.page is window.chat


def test_a_page_has_a_visible_way_back_and_a_chat_has_none(window: MainWindow) -> None:
    window.add_page("settings", ClosablePage(), "Settings")
    assert not window.header.back_button.isVisible()

    window.actions_by_name["settings"].trigger()
    assert window.header.back_button.isVisible()
    window.header.back_button.click()

    assert window.page is window.chat
    assert not window.header.back_button.isVisible()


def test_a_page_closes_itself_by_its_signal_and_its_action_closes_it_too(window: MainWindow) -> None:
    page = ClosablePage()
    window.add_page("compare", page, "Two models")
    window.actions_by_name["compare"].trigger()
    assert window.page is page

    page.close_requested.emit()
    assert window.page is window.chat
    window.actions_by_name["compare"].trigger()
    window.actions_by_name["compare"].trigger()

    assert window.page is window.chat


def test_an_action_of_another_part_reaches_its_handler(window: MainWindow) -> None:
    called = []

    window.on_action("export_chat", lambda: called.append("export"))
    window.actions_by_name["export_chat"].trigger()

    assert called == ["export"]
    with pytest.raises(KeyError):
        window.on_action("no_such_action", lambda: None)


def test_two_pages_of_one_name_are_refused(qtbot: QtBot) -> None:
    pages = Pages()
    qtbot.addWidget(pages)
    pages.add("one", QWidget())

    with pytest.raises(ValueError, match="already"):
        pages.add("one", QWidget())
