"""A page's column in the middle of what scrolls, as wide as the transcript at most."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QFrame, QHBoxLayout, QScrollArea, QWidget

from inglenook.app.theme import COLUMN_WIDTH, Theme


def centred(column: QWidget, theme: Theme) -> QScrollArea:
    """Put a page's column into the middle of what scrolls, as wide as the transcript at most."""
    holder = QWidget()
    holder.setObjectName("page")
    line = QHBoxLayout(holder)
    line.setContentsMargins(0, 0, 0, 0)
    line.addStretch(1)
    line.addWidget(column, 100)
    line.addStretch(1)
    scroll = _CentredArea(column, theme)
    scroll.setObjectName("page_scroll")
    scroll.setFrameShape(QFrame.Shape.NoFrame)
    scroll.setWidgetResizable(True)
    scroll.setFocusPolicy(Qt.FocusPolicy.NoFocus)
    scroll.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
    scroll.setWidget(holder)
    return scroll


class _CentredArea(QScrollArea):
    """Keeps its column as wide as the theme says; a QObject's slot ends with it, a closure would outlive it."""

    def __init__(self, column: QWidget, theme: Theme) -> None:
        super().__init__()
        self._column, self._theme = column, theme
        theme.changed.connect(self._restyle)
        self._restyle()

    def _restyle(self) -> None:
        self._column.setMaximumWidth(self._theme.px(COLUMN_WIDTH) + self._theme.px(48))
