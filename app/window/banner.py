"""One calm line across the top of the page, with at most one button: what is wrong or was done, never a dialog.

Several sentences may be due at once, each under a key of its own; the most important one is shown, and taking it away
shows the next. GUI thread only.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import QAccessible, QAccessibleAnnouncementEvent
from PySide6.QtWidgets import QFrame, QHBoxLayout, QToolButton, QWidget

from inglenook.app.text.plain_label import PlainLabel, button, plain_button_text
from inglenook.app.translations.sentences import said
from inglenook.app.window.icons import icon
from inglenook.app.window.theme import COLUMN_WIDTH, SIDE_MARGIN, Theme

Tone = Literal["error", "notice"]


@dataclass(frozen=True, slots=True)
class BannerLine:
    """One sentence. `button_text` "" is no button; an error stands before a notice, and a later line before an earlier."""

    text: str
    tone: Tone = "notice"
    button_text: str = ""
    on_button: Callable[[], object] | None = None
    is_dismissable: bool = True


class Banner(QWidget):
    """Shows the line that matters most; hidden without one."""

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._lines: dict[str, BannerLine] = {}
        self._frame = QFrame()
        self._frame.setObjectName("banner")
        self._text = PlainLabel(is_selectable=True)
        self.button = button("")
        self.button.clicked.connect(self._on_button)
        self.dismiss_button = QToolButton()
        self.dismiss_button.setObjectName("icon_button")
        self.dismiss_button.setAccessibleName(self.tr("Dismiss"))
        self.dismiss_button.setToolTip(self.tr("Dismiss"))
        self.dismiss_button.clicked.connect(self._dismiss)
        self._line = QHBoxLayout(self._frame)
        self._line.addWidget(self._text, 1)
        self._line.addWidget(self.button, 0, Qt.AlignmentFlag.AlignVCenter)
        self._line.addWidget(self.dismiss_button, 0, Qt.AlignmentFlag.AlignVCenter)
        self._outer = QHBoxLayout(self)
        self._outer.addStretch(1)
        self._outer.addWidget(self._frame, 100)
        self._outer.addStretch(1)
        theme.changed.connect(self._restyle)
        self._restyle()
        self.hide()

    @property
    def text(self) -> str:
        """The sentence shown, or ""."""
        return self._text.text() if self._lines else ""

    def show_line(self, key: str, line: BannerLine) -> None:
        """Have a sentence shown under a key, in place of the one it had."""
        self._lines.pop(key, None)
        self._lines[key] = line
        self._show()

    def clear_line(self, key: str) -> None:
        """Take a sentence away; fine if there is none."""
        if self._lines.pop(key, None) is not None:
            self._show()

    def _foremost(self) -> str:
        errors = [key for key, line in self._lines.items() if line.tone == "error"]
        return (errors or list(self._lines))[-1]

    def _show(self) -> None:
        if not self._lines:
            self.hide()
            return
        line = self._lines[self._foremost()]
        text = said(line.text)
        is_new = text != self._text.text() or self.isHidden()
        self._text.setText(text)
        self.button.setText(plain_button_text(line.button_text))
        self.button.setAccessibleName(line.button_text)
        self.button.setVisible(bool(line.button_text))
        self.dismiss_button.setVisible(line.is_dismissable)
        self._frame.setProperty("tone", line.tone)
        self._frame.style().unpolish(self._frame)
        self._frame.style().polish(self._frame)
        self.show()
        if is_new:
            QAccessible.updateAccessibility(QAccessibleAnnouncementEvent(self, text))

    def _on_button(self) -> None:
        if self._lines:
            on_button = self._lines[self._foremost()].on_button
            if on_button is not None:
                on_button()

    def _dismiss(self) -> None:
        if self._lines:
            self.clear_line(self._foremost())

    def _restyle(self) -> None:
        px = self._theme.px
        self._outer.setContentsMargins(px(SIDE_MARGIN), px(10), px(SIDE_MARGIN), 0)
        self._frame.setMaximumWidth(px(COLUMN_WIDTH))
        self._line.setContentsMargins(px(14), px(8), px(8), px(8))
        self._line.setSpacing(px(10))
        self.dismiss_button.setIcon(icon("close", self._theme.colours.muted))
        self.dismiss_button.setIconSize(QSize(px(14), px(14)))
        self.dismiss_button.setCursor(Qt.CursorShape.PointingHandCursor)
