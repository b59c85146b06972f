"""How the window looks and where it stood, kept over a restart and on another computer."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtCore import QRect
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot
from window_desk import WindowDesk, put_model

from inglenook.app.window.theme import Theme


def open_desk(qtbot: QtBot, theme: Theme, folder: Path) -> WindowDesk:
    return WindowDesk(qtbot, theme, folder).start()


@pytest.fixture
def profile(tmp_path: Path) -> Path:
    put_model(tmp_path)
    return tmp_path


@pytest.mark.slow
def test_size_of_text_and_colours_last_as_settings(qtbot: QtBot, theme: Theme, profile: Path) -> None:
    desk = open_desk(qtbot, theme, profile)
    desk.window.actions_by_name["zoom_in"].trigger()
    desk.window.actions_by_name["scheme_dark"].trigger()
    desk.close()
    theme.set_scale(1.0)
    theme.set_scheme("light")

    again = open_desk(qtbot, theme, profile)

    assert again.application.settings.value("appearance.scale") == 1.1
    assert (theme.scale, theme.scheme) == (1.1, "dark")
    again.close()
    theme.set_scheme("light")


def test_a_setting_changes_the_window_live(qtbot: QtBot, theme: Theme, profile: Path) -> None:
    desk = open_desk(qtbot, theme, profile)

    desk.application.settings.set("appearance.scheme", "dark")

    assert theme.is_dark
    desk.application.settings.set("appearance.scheme", "light")
    desk.close()


def test_a_window_without_a_file_of_its_state_stands_as_its_history_says(
    qtbot: QtBot, theme: Theme, profile: Path
) -> None:
    desk = open_desk(qtbot, theme, profile)
    desk.window.resize(700, 500)
    desk.window.sidebar.hide()
    desk.window.close()
    desk.close()

    again = open_desk(qtbot, theme, profile)

    assert (again.window.width(), again.window.height()) == (700, 500)
    assert again.window.sidebar.isHidden()
    assert again.window.is_restored
    again.close()


def test_a_window_left_on_a_screen_that_is_gone_comes_back_on_one_that_is_there(
    qtbot: QtBot, theme: Theme, profile: Path
) -> None:
    desk = open_desk(qtbot, theme, profile)
    desk.window.setGeometry(QRect(9_000, 7_000, 700, 500))
    state = desk.window.save_state()

    desk.window.restore_state(state)

    frame, screen = desk.window.frameGeometry(), QApplication.primaryScreen().availableGeometry()
    assert screen.intersected(frame).width() * 2 > frame.width()
    assert screen.intersected(frame).height() * 2 > frame.height()
    desk.close()
