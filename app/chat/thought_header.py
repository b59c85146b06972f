"""The line above a reply that says how long it was thought over, and folds or unfolds the thought."""

from __future__ import annotations

from typing import NamedTuple

from PySide6.QtCore import QSize, Qt
from PySide6.QtWidgets import QPushButton, QWidget

from inglenook.app.chat.message_list_model import Message
from inglenook.app.text.reply_text import ReplyText
from inglenook.app.window.icons import IconName, icon
from inglenook.app.window.theme import Theme


class ThoughtLine(NamedTuple):
    """How a thought is shown; `is_open`: it has not ended."""

    is_unfolded: bool
    is_open: bool

    @classmethod
    def of(cls, reply: ReplyText) -> ThoughtLine | None:
        """The line of a message; None without a thought."""
        return cls(reply.is_unfolded, reply.is_open) if reply.has_thought else None


class ThoughtHeader(QPushButton):
    """Shows "Thinking…", "Thought for 12 s" or that a thought never ended; a click folds or unfolds it."""

    def __init__(self, theme: Theme, parent: QWidget) -> None:
        super().__init__(parent)
        self._theme = theme
        self._is_unfolded = False
        self.setObjectName("quiet_button")
        self.setAutoDefault(False)
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self.restyle()
        self.hide()

    def show_for(self, message: Message, thought: ThoughtLine | None) -> None:
        """Say how a message's thought stands; None hides the line."""
        self.setVisible(thought is not None)
        if thought is None:
            return
        words = self._words(message, thought)
        what = self.tr("hide the reasoning") if thought.is_unfolded else self.tr("show the reasoning")
        self.setText(words)
        self.setAccessibleName(f"{words}, {what}")
        self.setToolTip(what[:1].upper() + what[1:])
        if thought.is_unfolded != self._is_unfolded:
            self._is_unfolded = thought.is_unfolded
            self._set_icon()

    def restyle(self) -> None:
        """Take the theme anew."""
        self.setFont(self._theme.font(0.92))
        self.setIconSize(QSize(self._theme.px(14), self._theme.px(14)))
        self._set_icon()

    def fit(self, left: int, width: int, top: int) -> int:
        """Stand at the beginning of a line; return where the line ends."""
        if self.isHidden():
            return top
        px, size = self._theme.px, self.sizeHint()
        wide = min(size.width(), width + px(8))
        is_mirrored = self.layoutDirection() == Qt.LayoutDirection.RightToLeft
        # The words begin where the text below begins.
        x = left + width - wide + px(12) if is_mirrored else left - px(12)
        self.setGeometry(x, top + px(4), wide, size.height())
        return top + px(4) + size.height() + px(6)

    def _words(self, message: Message, thought: ThoughtLine) -> str:
        seconds = message.reasoning_s
        time = "" if seconds is None else duration_words(seconds, self.tr("{0} s"), self.tr("{0} min {1} s"))
        if thought.is_open and message.state == "streaming":
            return self.tr("Thinking for {0}…").format(time) if time else self.tr("Thinking…")
        if thought.is_open:
            return (
                self.tr("Thought for {0}, not finished").format(time)
                if time
                else self.tr("Reasoning, not finished")
            )
        return self.tr("Thought for {0}").format(time) if time else self.tr("Reasoning")

    def _set_icon(self) -> None:
        is_mirrored = self.layoutDirection() == Qt.LayoutDirection.RightToLeft
        closed: IconName = "left" if is_mirrored else "right"
        self.setIcon(icon("down" if self._is_unfolded else closed, self._theme.colours.muted))


def duration_words(seconds: float, short: str, long: str) -> str:
    """Say a duration with the given patterns: whole seconds, from a minute on minutes too."""
    whole = max(1, round(seconds))
    return short.format(whole) if whole < 60 else long.format(*divmod(whole, 60))
