"""`SelectionCover`: lies over a message while several may be chosen: the whole row is one check box."""

from __future__ import annotations

from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QColor, QPainter, QPainterPath, QPaintEvent, QPen
from PySide6.QtWidgets import QAbstractButton, QApplication, QWidget

from inglenook.app.window.theme import COLUMN_WIDTH, Theme

_BOX = 16


class SelectionCover(QAbstractButton):
    """Painted as a tint and a box at the row's beginning; a screen reader is told of a check box."""

    def __init__(self, theme: Theme, parent: QWidget) -> None:
        super().__init__(parent)
        self._theme = theme
        self.setCheckable(True)
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        # The transcript's own keys go from message to message.
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.hide()

    def is_range_wanted(self) -> bool:
        """Whether Shift is held, which chooses all up to here."""
        return bool(QApplication.keyboardModifiers() & Qt.KeyboardModifier.ShiftModifier)

    def nextCheckState(self) -> None:
        """What is chosen is kept elsewhere."""

    def paintEvent(self, event: QPaintEvent) -> None:
        px, colours = self._theme.px, self._theme.colours
        column = min(px(COLUMN_WIDTH), self.width() - 2 * px(24))
        left = (self.width() - column) // 2
        with QPainter(self) as painter:
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            if self.isChecked():
                tint = QColor(colours.accent)
                tint.setAlphaF(0.12)
                painter.fillRect(self.rect(), tint)
            is_mirrored = self.layoutDirection() == Qt.LayoutDirection.RightToLeft
            x = left + column + px(14) if is_mirrored else left - px(14) - px(_BOX)
            box = QRectF(max(px(2), x) + 0.5, px(9) + 0.5, px(_BOX), px(_BOX))
            painter.setPen(QPen(QColor(colours.accent if self.isChecked() else colours.muted), 1.5))
            painter.setBrush(QColor(colours.accent if self.isChecked() else colours.window))
            painter.drawRoundedRect(box, px(4), px(4))
            if self.isChecked():
                tick = QPainterPath()
                tick.moveTo(box.left() + box.width() * 0.24, box.center().y())
                tick.lineTo(box.left() + box.width() * 0.43, box.bottom() - box.height() * 0.28)
                tick.lineTo(box.right() - box.width() * 0.22, box.top() + box.height() * 0.3)
                painter.setBrush(Qt.BrushStyle.NoBrush)
                painter.setPen(QPen(QColor(colours.on_accent), 1.8))
                painter.drawPath(tick)
