"""Fixtures for the window: Qt without a screen, a theme, and a look at every widget's names."""

from __future__ import annotations

import os

# Before anything imports Qt.
os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
os.environ.setdefault("PYTEST_QT_API", "pyside6")

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from PySide6.QtWidgets import QApplication
    from pytestqt.qtbot import QtBot
    from window_desk import WindowDesk

    from inglenook.app.window.theme import Theme


@pytest.fixture
def theme(qapp: QApplication) -> Iterator[Theme]:
    from inglenook.app.window.theme import Theme

    theme = Theme(qapp, scheme="light")
    yield theme
    theme.set_scale(1.0)
    theme.deleteLater()


@pytest.fixture
def desk(qtbot: QtBot, theme: Theme, tmp_path: Path) -> Iterator[WindowDesk]:
    """The whole window with a loaded model, and an engine that the test plays."""
    from window_desk import WindowDesk, put_model

    put_model(tmp_path)
    desk = WindowDesk(qtbot, theme, tmp_path).start()
    qtbot.waitUntil(lambda: desk.application.bridge.model_state().phase == "ready")
    desk.window.resize(1_000, 900)
    yield desk
    desk.close()
