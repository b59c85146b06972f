"""Columns in the middle, as wide as the transcript at most: of a page that scrolls, or of one line."""

from __future__ import annotations

from PySide6.QtCore import QEvent, Qt
from PySide6.QtGui import QPainter, QPaintEvent
from PySide6.QtWidgets import QAbstractScrollArea, QFrame, QHBoxLayout, QScrollArea, QScrollBar, QWidget

from inglenook.app.window.theme import COLUMN_WIDTH, SCROLL_BAR_WIDTH, SIDE_MARGIN, Theme


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


class SteadyBar(QScrollBar):
    """A scroll bar that keeps its room and shows nothing while there is nothing to scroll.

    With the same room kept at the other side (`balance`), what is in the middle stays there when the bar comes.
    """

    def paintEvent(self, event: QPaintEvent) -> None:
        if self.maximum() > self.minimum():
            super().paintEvent(event)
        else:
            with QPainter(self) as painter:
                painter.fillRect(event.rect(), self.palette().base())

    @staticmethod
    def balance(area: QAbstractScrollArea, theme: Theme) -> None:
        """Keep as much room at the other side of an area as the bar takes in the theme of now."""
        area.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOn)
        room = theme.px(SCROLL_BAR_WIDTH)
        # Qt puts the bar at the other side where one reads from the right, but not the margins.
        area.setViewportMargins(*((0, 0, room, 0) if area.isRightToLeft() else (room, 0, 0, 0)))


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
        self._widget.setMaximumWidth(self._theme.px(COLUMN_WIDTH))
        self._line.setContentsMargins(self._theme.px(SIDE_MARGIN), 0, self._theme.px(SIDE_MARGIN), 0)


class _CentredArea(QScrollArea):
    """Keeps its column as wide as the theme says; a QObject's slot ends with it, a closure would outlive it."""

    def __init__(self, column: QWidget, theme: Theme) -> None:
        super().__init__()
        self._column, self._theme = column, theme
        self.setVerticalScrollBar(SteadyBar())
        theme.changed.connect(self._restyle)
        self._restyle()

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() == QEvent.Type.LayoutDirectionChange:
            SteadyBar.balance(self, self._theme)

    def _restyle(self) -> None:
        self._column.setMaximumWidth(self._theme.px(COLUMN_WIDTH) + self._theme.px(48))
        SteadyBar.balance(self, self._theme)
