"""The dialog of keys, used as a person would."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot
from window_desk import WindowDesk

from inglenook.app.window.actions import ACTIONS
from inglenook.app.window.main_window import MainWindow
from inglenook.app.window.shortcuts_dialog import ShortcutsDialog
from inglenook.app.window.theme import Theme

CTRL = Qt.KeyboardModifier.ControlModifier


@pytest.fixture
def window(qtbot: QtBot, theme: Theme) -> MainWindow:
    window = MainWindow(theme)
    qtbot.addWidget(window)
    window.show()
    return window


@pytest.fixture
def dialog(window: MainWindow, qtbot: QtBot) -> ShortcutsDialog:
    window.actions_by_name["shortcuts"].trigger()
    dialog = window.findChild(ShortcutsDialog)
    assert dialog is not None
    return dialog


def record(dialog: ShortcutsDialog, name: str, key: Qt.Key, modifiers: Qt.KeyboardModifier = CTRL) -> None:
    button = dialog.key_button(name)
    button.setFocus()
    QTest.keyClick(button, Qt.Key.Key_Space)
    QTest.keyClick(button, key, modifiers)


def test_every_action_is_listed_with_its_keys(dialog: ShortcutsDialog) -> None:
    assert dialog.key_button("new_chat").text() == "Ctrl+N"
    assert dialog.key_button("zoom_in").text() == "Ctrl++ or Ctrl+="
    assert dialog.key_button("show_trash").text() == "No keys"
    assert all(dialog._rows[spec.name].text.text() == spec.text.rstrip("…") for spec in ACTIONS)


def test_new_keys_work_in_the_window_and_can_be_put_back(
    dialog: ShortcutsDialog, window: MainWindow, qtbot: QtBot
) -> None:
    record(dialog, "models", Qt.Key.Key_J)
    assert dialog.key_button("models").text() == "Ctrl+J"
    dialog.close_button.click()
    window.activateWindow()
    qtbot.waitUntil(window.isActiveWindow)
    QTest.keyClick(window, Qt.Key.Key_J, CTRL)
    assert window.page is window.models
    assert "Ctrl+J" in window.sidebar.models_button.toolTip()

    window.actions_by_name["shortcuts"].trigger()
    again = window.findChildren(ShortcutsDialog)[-1]
    again.reset_button("models").click()

    assert again.key_button("models").text() == "Ctrl+L"
    assert not again.reset_button("models").isVisible()


def test_a_key_that_is_taken_is_named_and_taken_only_when_meant(
    dialog: ShortcutsDialog, window: MainWindow
) -> None:
    record(dialog, "models", Qt.Key.Key_N)
    assert dialog.message.text() == "Ctrl+N is used by “New chat”."
    assert dialog.key_button("models").text() == "Ctrl+L"

    dialog.take_button.click()

    assert dialog.key_button("models").text() == "Ctrl+N"
    assert dialog.key_button("new_chat").text() == "No keys"
    assert dialog.message.isHidden()


def test_a_key_that_writing_needs_is_refused(dialog: ShortcutsDialog) -> None:
    record(dialog, "models", Qt.Key.Key_A, Qt.KeyboardModifier.NoModifier)

    assert "alone is needed for writing" in dialog.message.text()
    assert dialog.take_button.isHidden()
    assert dialog.key_button("models").text() == "Ctrl+L"


def test_esc_and_tab_leave_the_keys_and_backspace_takes_them_away(dialog: ShortcutsDialog) -> None:
    button = dialog.key_button("models")
    record(dialog, "models", Qt.Key.Key_Escape, Qt.KeyboardModifier.NoModifier)
    assert (button.text(), dialog.isVisible()) == ("Ctrl+L", True)
    record(dialog, "models", Qt.Key.Key_Tab, Qt.KeyboardModifier.NoModifier)
    assert button.text() == "Ctrl+L"

    record(dialog, "models", Qt.Key.Key_Backspace, Qt.KeyboardModifier.NoModifier)

    assert button.text() == "No keys"
    assert not button.is_recording


def test_typing_finds_rows_by_words_and_by_keys(dialog: ShortcutsDialog) -> None:
    def found() -> set[str]:
        return {name for name, row in dialog._rows.items() if row.text.isVisibleTo(dialog)}

    QTest.keyClicks(dialog.search, "side bar")
    assert found() == {"sidebar"}
    dialog.search.setText("ctrl+shift+f")
    assert found() == {"search_chats"}
    dialog.search.clear()
    assert len(found()) > len(ACTIONS)


def test_all_keys_can_be_switched_off(dialog: ShortcutsDialog, window: MainWindow, qtbot: QtBot) -> None:
    dialog.switch.click()
    dialog.close_button.click()
    window.activateWindow()
    qtbot.waitUntil(window.isActiveWindow)

    QTest.keyClick(window, Qt.Key.Key_L, CTRL)

    assert window.page is window.chat
    QTest.keyClick(window, Qt.Key.Key_F1)
    assert QApplication.activeModalWidget() is not None


def test_the_choice_is_there_after_a_restart(qtbot: QtBot, theme: Theme, tmp_path: Path) -> None:
    desk = WindowDesk(qtbot, theme, tmp_path).start()
    desk.window.shortcuts.rebind("models", ["Ctrl+J"])
    desk.close()

    again = WindowDesk(qtbot, theme, tmp_path).start()

    assert again.window.shortcuts.keys("models") == ("Ctrl+J",)
    again.close()
