"""What covers the window while files are dragged over it. GUI thread only."""

from __future__ import annotations

from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QColor, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QWidget

from inglenook.app.window.theme import Theme


class DropOverlay(QWidget):
    """A sentence on a dimmed window; takes no input itself."""

    def __init__(self, theme: Theme, parent: QWidget) -> None:
        super().__init__(parent)
        self._theme, self._window = theme, parent
        self.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self.setAccessibleName(self.tr("Drop to add documents"))
        self.hide()

    def begin(self) -> None:
        """Show it over everything."""
        self.setGeometry(self._window.rect())
        self.raise_()
        self.show()

    def end(self) -> None:
        """Take it away."""
        self.hide()

    def paintEvent(self, event: QPaintEvent) -> None:
        theme, px = self._theme, self._theme.px
        with QPainter(self) as painter:
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            ground = QColor(theme.colours.window)
            ground.setAlphaF(0.92)
            painter.fillRect(self.rect(), ground)
            painter.setPen(QPen(QColor(theme.colours.accent), px(2), Qt.PenStyle.DashLine))
            painter.drawRoundedRect(
                QRectF(self.rect()).adjusted(px(18), px(18), -px(18), -px(18)), px(16), px(16)
            )
            painter.setPen(QColor(theme.colours.text))
            painter.setFont(theme.font(1.5, bold=True))
            middle = QRectF(self.rect()).adjusted(px(40), 0, -px(40), -px(36))
            centre = Qt.AlignmentFlag.AlignCenter | Qt.TextFlag.TextWordWrap
            painter.drawText(middle, int(centre), self.tr("Drop to ask about these files"))
            painter.setPen(QColor(theme.colours.muted))
            painter.setFont(theme.font())
            painter.drawText(
                middle.translated(0, px(40)),
                int(centre),
                self.tr(
                    "PDF, Word, web pages, tables and text, also whole folders. They stay on this computer."
                ),
            )
