"""Columns in the middle, as wide as the transcript at most: of a page that scrolls, or of one line."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QFrame, QHBoxLayout, QScrollArea, QWidget

from inglenook.app.window.theme import COLUMN_WIDTH, Theme


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


def in_column(widget: QWidget, theme: Theme) -> QWidget:
    """Put a widget into the middle of its line, as wide as the transcript at most; the line is gone when it is hidden."""
    return _ColumnLine(widget, theme)


class _ColumnLine(QWidget):
    def __init__(self, widget: QWidget, theme: Theme) -> None:
        super().__init__()
        self._widget, self._theme = widget, theme
        self._line = QHBoxLayout(self)
        self._line.addStretch(1)
        self._line.addWidget(widget, 100)
        self._line.addStretch(1)
        theme.changed.connect(self._restyle)
        self._restyle()

    def _restyle(self) -> None:
        self._widget.setMaximumWidth(self._theme.px(COLUMN_WIDTH) + self._theme.px(16))
        self._line.setContentsMargins(self._theme.px(24), 0, self._theme.px(24), 0)


class _CentredArea(QScrollArea):
    """Keeps its column as wide as the theme says; a QObject's slot ends with it, a closure would outlive it."""

    def __init__(self, column: QWidget, theme: Theme) -> None:
        super().__init__()
        self._column, self._theme = column, theme
        theme.changed.connect(self._restyle)
        self._restyle()

    def _restyle(self) -> None:
        self._column.setMaximumWidth(self._theme.px(COLUMN_WIDTH) + self._theme.px(48))
