"""The line below the field that is written in: who answers at the left, how full the window is at the right."""

from __future__ import annotations

from PySide6.QtCore import QRectF, QSize, Qt
from PySide6.QtGui import QColor, QPainter, QPaintEvent
from PySide6.QtWidgets import QHBoxLayout, QPushButton, QWidget

from inglenook.app.context.window_fill import WindowFill
from inglenook.app.text.plain_label import button, plain_tooltip
from inglenook.app.translations import figures
from inglenook.app.window.theme import Theme

_BAR = 64


class ContextMeter(QPushButton):
    """Shows a `WindowFill` as a short bar and two numbers; pressed, it asks for the details by `clicked`."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._fill = WindowFill(0, 0)
        self.setObjectName("quiet_button")
        self.setAutoDefault(False)
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self.hide()

    def show_fill(self, fill: WindowFill) -> None:
        """Show how full the window is; one without a limit hides the meter."""
        self._fill = fill
        self.setVisible(fill.limit > 0)
        number = figures.count
        used, limit = number(fill.used), number(fill.limit)
        about = "" if fill.is_exact else self.tr("about ")
        words = self.tr("{0}{1} of {2}").format(about, used, limit)
        gone = len(fill.left_out)
        if gone:
            words = self.tr("{0} · leaves out {1}").format(words, number(gone))
        self.setText(words)
        spoken = self.tr("Window: {0}{1} of {2} tokens used, {3} percent").format(
            about, used, limit, round(100 * fill.share)
        )
        if gone:
            spoken = self.tr("{0}; the next question leaves out the {1} oldest").format(spoken, number(gone))
        self.setAccessibleName(spoken)
        self.setToolTip(plain_tooltip(self.tr("{0}. Press for what can be done.").format(spoken)))
        self.updateGeometry()
        self.update()

    def sizeHint(self) -> QSize:
        px = self._theme.px
        width = self.fontMetrics().horizontalAdvance(self.text()) + px(_BAR + 8) + 2 * px(8)
        return QSize(width + 4, self.fontMetrics().height() + 2 * px(4))

    def minimumSizeHint(self) -> QSize:
        return self.sizeHint()

    def paintEvent(self, _event: QPaintEvent) -> None:
        px, c = self._theme.px, self._theme.colours
        height = px(4)
        is_mirrored = self.layoutDirection() == Qt.LayoutDirection.RightToLeft
        left = self.width() - px(8) - px(_BAR) if is_mirrored else px(8)
        bar = QRectF(left, (self.height() - height) / 2, px(_BAR), height)
        with QPainter(self) as painter:
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            if self.underMouse() or self.hasFocus():
                painter.setPen(QColor(c.accent) if self.hasFocus() else Qt.PenStyle.NoPen)
                painter.setBrush(QColor(c.hover) if self.underMouse() else Qt.BrushStyle.NoBrush)
                painter.drawRoundedRect(QRectF(self.rect()).adjusted(0.5, 0.5, -0.5, -0.5), px(6), px(6))
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(QColor(c.hover if self._theme.is_high_contrast else c.border))
            painter.drawRoundedRect(bar, height / 2, height / 2)
            filled = QRectF(bar)
            filled.setWidth(max(height, bar.width() * self._fill.share) if self._fill.used else 0)
            if is_mirrored:
                filled.moveRight(bar.right())
            painter.setBrush(QColor(c.caution if self._fill.is_nearly_full else c.accent))
            painter.drawRoundedRect(filled, height / 2, height / 2)
            painter.setPen(QColor(c.caution if self._fill.left_out else c.muted))
            gap = px(_BAR + 16)
            room = self.rect().adjusted(0, 0, -gap, 0) if is_mirrored else self.rect().adjusted(gap, 0, 0, 0)
            painter.drawText(room, Qt.AlignmentFlag.AlignLeading | Qt.AlignmentFlag.AlignVCenter, self.text())


class ChatFoot(QWidget):
    """Holds `persona_button` and `meter`."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self.persona_button = button("", "quiet_button")
        self.meter = ContextMeter(theme)
        self._line = QHBoxLayout(self)
        self._line.addWidget(self.persona_button)
        self._line.addStretch()
        self._line.addWidget(self.meter)
        theme.changed.connect(self._restyle)
        self._restyle()

    def _restyle(self) -> None:
        px = self._theme.px
        self._line.setContentsMargins(px(4), 0, px(4), px(2))
        for made in (self.persona_button, self.meter):
            made.setFont(self._theme.font(0.86))
