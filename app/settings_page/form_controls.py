"""What forms are made of: the controls that the platform's style draws too faintly in the dark, a list to choose from
and a box to tick, and how a dialog with fields is laid out.
"""

from __future__ import annotations

from PySide6.QtCore import QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QPainter, QPaintEvent, QPalette, QPen, QWheelEvent
from PySide6.QtWidgets import (
    QCheckBox,
    QComboBox,
    QDialog,
    QFrame,
    QHBoxLayout,
    QScrollArea,
    QVBoxLayout,
    QWidget,
)

from inglenook.app.window.centred_column import SteadyBar
from inglenook.app.window.theme import SCROLL_BAR_WIDTH, Theme

_SIDE = 22


def lay_out_form(dialog: QDialog, column: QVBoxLayout, foot: QHBoxLayout, theme: Theme) -> QScrollArea:
    """Fill a dialog with the rows of `column`, which scroll, and the buttons of `foot` below; return what scrolls.

    Fields and buttons end on one line, whether or not there is a scroll bar.
    """
    px = theme.px
    rows = QWidget()
    rows.setObjectName("page")
    rows.setLayout(column)
    side = px(_SIDE - SCROLL_BAR_WIDTH)
    column.setContentsMargins(side, px(14), side, px(10))
    foot.setContentsMargins(px(_SIDE), px(8), px(_SIDE), px(16))
    foot.setSpacing(px(8))
    scroll = QScrollArea()
    scroll.setObjectName("page_scroll")
    scroll.setFrameShape(QFrame.Shape.NoFrame)
    scroll.setWidgetResizable(True)
    scroll.setFocusPolicy(Qt.FocusPolicy.NoFocus)
    scroll.setVerticalScrollBar(SteadyBar())
    SteadyBar.balance(scroll, theme)
    scroll.setWidget(rows)
    outer = QVBoxLayout(dialog)
    outer.setContentsMargins(0, 0, 0, 0)
    outer.setSpacing(0)
    outer.addWidget(scroll, 1)
    outer.addLayout(foot)
    return scroll


class Choices(QComboBox):
    """A list to choose from, with a mark that it opens; a wheel over the page scrolls past instead of changing it."""

    def wheelEvent(self, event: QWheelEvent) -> None:
        event.ignore()

    def paintEvent(self, event: QPaintEvent) -> None:
        super().paintEvent(event)
        side = self.fontMetrics().height() / 2
        is_mirrored = self.layoutDirection() == Qt.LayoutDirection.RightToLeft
        x = side * 1.4 if is_mirrored else self.width() - side * 1.4
        middle, half = self.height() / 2, side / 2.4
        with QPainter(self) as painter:
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            painter.setPen(QPen(self.palette().color(QPalette.ColorRole.PlaceholderText), side / 6))
            mark = [(x - half, middle - half / 2), (x, middle + half / 2), (x + half, middle - half / 2)]
            painter.drawPolyline([QPointF(*point) for point in mark])


class TickBox(QCheckBox):
    """A box to tick, drawn in the theme's colours: filled with the accent while it is ticked."""

    def sizeHint(self) -> QSize:
        metrics = self.fontMetrics()
        width = metrics.horizontalAdvance(self.text()) + round(1.55 * metrics.height()) + 6
        return QSize(width, round(1.6 * metrics.height()))

    def minimumSizeHint(self) -> QSize:
        return self.sizeHint()

    def hitButton(self, _position: object) -> bool:
        return True

    def paintEvent(self, _event: QPaintEvent) -> None:
        role, palette = QPalette.ColorRole, self.palette()
        side = self.fontMetrics().height()
        is_mirrored = self.layoutDirection() == Qt.LayoutDirection.RightToLeft
        left = self.width() - side - 3 if is_mirrored else 3
        box = QRectF(left, (self.height() - side) / 2, side, side).adjusted(1, 1, -1, -1)
        with QPainter(self) as painter:
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            accent = palette.color(role.Accent)
            if self.hasFocus():
                painter.setPen(QPen(accent, 2))
                painter.drawRoundedRect(QRectF(self.rect()).adjusted(1, 1, -1, -1), 5, 5)
            painter.setPen(QPen(accent if self.isChecked() else palette.color(role.PlaceholderText), 1.3))
            painter.setBrush(accent if self.isChecked() else palette.color(role.Base))
            painter.drawRoundedRect(box, side / 5, side / 5)
            if self.isChecked():
                pen = QPen(palette.color(role.Base), side / 8)
                pen.setCapStyle(Qt.PenCapStyle.RoundCap)
                painter.setPen(pen)
                x, y, s = box.left(), box.top(), box.width()
                tick = [(0.24, 0.53), (0.43, 0.71), (0.77, 0.31)]
                painter.drawPolyline([QPointF(x + a * s, y + b * s) for a, b in tick])
            painter.setPen(palette.color(role.WindowText))
            gap = round(1.55 * side)
            room = self.rect().adjusted(0, 0, -gap, 0) if is_mirrored else self.rect().adjusted(gap, 0, 0, 0)
            painter.drawText(room, Qt.AlignmentFlag.AlignLeading | Qt.AlignmentFlag.AlignVCenter, self.text())
