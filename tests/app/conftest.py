"""Fixtures for the window: Qt without a screen, a theme, and a look at every widget's names."""

from __future__ import annotations

import os

# Before anything imports Qt.
os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
os.environ.setdefault("PYTEST_QT_API", "pyside6")

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from PySide6.QtWidgets import QApplication

    from inglenook.app.window.theme import Theme


@pytest.fixture
def theme(qapp: QApplication) -> Iterator[Theme]:
    from inglenook.app.window.theme import Theme

    theme = Theme(qapp, scheme="light")
    yield theme
    theme.set_scale(1.0)
    theme.deleteLater()
