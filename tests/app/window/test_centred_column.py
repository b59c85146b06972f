"""Columns stand still in the middle, whether or not their page has a scroll bar."""

from __future__ import annotations

from PySide6.QtCore import QPoint, Qt
from PySide6.QtWidgets import QVBoxLayout, QWidget
from pytestqt.qtbot import QtBot

from inglenook.app.window.centred_column import centred
from inglenook.app.window.theme import COLUMN_WIDTH, Theme


def test_a_page_stays_in_the_middle_when_it_becomes_longer_than_its_window(
    qtbot: QtBot, theme: Theme
) -> None:
    column, page = QWidget(), QWidget()
    layout = QVBoxLayout(page)
    layout.setContentsMargins(0, 0, 0, 0)
    area = centred(column, theme)
    layout.addWidget(area)
    qtbot.addWidget(page)
    page.resize(COLUMN_WIDTH + 300, 400)
    page.show()
    qtbot.waitExposed(page)
    places = []

    for direction in (Qt.LayoutDirection.LeftToRight, Qt.LayoutDirection.RightToLeft):
        page.setLayoutDirection(direction)
        for height in (100, 2_000):
            column.setMinimumHeight(height)
            is_long = height > page.height()
            qtbot.waitUntil(lambda is_long=is_long: (area.verticalScrollBar().maximum() > 0) == is_long)  # type: ignore[misc]
            places.append(column.mapTo(page, QPoint(column.width() // 2, 0)).x())

    assert all(abs(middle - page.width() // 2) <= 1 for middle in places), places
