"""What is said above the field when a chat has outgrown its window, or when the meter is pressed, with what can be done.

Three ways: a larger window with its cost, a fresh chat that begins with a summary, or going on without the oldest
turns. It asks by signals and decides nothing. GUI thread only.
"""

from __future__ import annotations

from dataclasses import dataclass

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QFrame, QHBoxLayout, QVBoxLayout, QWidget

from inglenook.app.context.window_fill import WindowFill
from inglenook.app.text.plain_label import PlainLabel, button, plain_button_text
from inglenook.app.text.rich_text import label
from inglenook.app.translations import figures
from inglenook.app.translations.figures import numbered
from inglenook.app.translations.sentences import said
from inglenook.app.window.theme import Theme


@dataclass(frozen=True, slots=True)
class LargerWindow:
    """The next larger window: `tokens`, in words what it costs, and why it cannot be had ("" where it can)."""

    tokens: int = 0
    cost: str = ""
    refusal: str = ""


class ContextPanel(QFrame):
    """Signals: `larger_requested()`, `summary_requested()`, `cancel_requested()` of a summary that is being written,
    `drop_requested()`, `closed()`."""

    larger_requested = Signal()
    summary_requested = Signal()
    cancel_requested = Signal()
    drop_requested = Signal()
    closed = Signal()

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self.setObjectName("banner")
        self.setAccessibleName(self.tr("The window of this chat"))
        self.words = PlainLabel(is_selectable=True)
        self.details = PlainLabel(look="small", is_selectable=True)
        self.remark = PlainLabel(look="small", is_selectable=True)
        self.problem = PlainLabel(look="error", is_selectable=True)
        self.larger_button = button("", "plain_button")
        self.larger_button.clicked.connect(self.larger_requested)
        self.summary_button = button("", "plain_button")
        self.summary_button.clicked.connect(self._on_summary)
        self.drop_button = button(self.tr("Leave out the oldest"), "plain_button")
        self.drop_button.clicked.connect(self.drop_requested)
        self.close_button = button(self.tr("Close"), "quiet_button")
        self.close_button.clicked.connect(self.end)
        self._is_writing = False
        self._refusal = self._progress = ""
        self._buttons = QHBoxLayout()
        for made in (self.larger_button, self.summary_button, self.drop_button):
            self._buttons.addWidget(made)
        self._buttons.addStretch()
        self._buttons.addWidget(self.close_button)
        self._layout = QVBoxLayout(self)
        for label_ in (self.words, self.details, self.remark, self.problem):
            self._layout.addWidget(label_)
        self._layout.addLayout(self._buttons)
        theme.changed.connect(self._restyle)
        self._restyle()
        self.show_summary(is_writing=False)
        self.show_problem("")
        self.hide()

    def controls(self) -> tuple[QWidget, ...]:
        """All that the keyboard reaches, in order."""
        return self.larger_button, self.summary_button, self.drop_button, self.close_button

    def show_fill(self, fill: WindowFill, *, asks: bool) -> None:
        """Say how full the window is and what is left out; `asks` offers to leave out, which is not done by itself."""
        number = figures.count
        gone = len(fill.left_out)
        about = "" if fill.is_exact else self.tr("about ")
        if gone:
            oldest = self.tr("oldest question") if gone == 1 else numbered("{0} oldest questions", gone)
            end = self.tr("would be left out.") if asks else self.tr("will be left out of the next one.")
            words = self.tr(
                "This chat needs {0}{1} tokens with room for a reply, the model holds {2}. The {3} {4}"
            )
            need = number(fill.wanted + fill.reserve)
            self.words.setText(words.format(about, need, number(fill.limit), oldest, end))
        else:
            words = self.tr(
                "This chat takes {0}{1} of the {2} tokens that the model holds; {3} are kept for its reply."
            )
            self.words.setText(
                words.format(about, number(fill.used), number(fill.limit), number(fill.reserve))
            )
        quotes = [f"“{label(turn.question, 60)}”" for turn in fill.left_out[:3]]
        more = gone - len(quotes)
        if more > 0:
            quotes.append(self.tr("{0} more").format(number(more)))
        self.details.setText(self.tr("Left out, with their replies: {0}").format(figures.listed(quotes)))
        self.details.setVisible(bool(quotes))
        self.drop_button.setVisible(bool(gone) and asks)
        self.summary_button.setVisible(fill.num_turns > 0)

    def show_larger(self, larger: LargerWindow) -> None:
        """Offer a larger window, or say why there is none."""
        self.larger_button.setVisible(bool(larger.tokens))
        self.larger_button.setEnabled(bool(larger.tokens) and not larger.refusal)
        words = self.tr("Larger window")
        if larger.tokens:
            words = numbered("{0} tokens: {1}", larger.tokens, said(larger.cost))
        self.larger_button.setText(plain_button_text(words))
        spoken = self.tr("Use a larger window, {0}").format(words) if larger.tokens else words
        self.larger_button.setAccessibleName(spoken)
        self.larger_button.setAccessibleDescription(said(larger.refusal))
        self.larger_button.setToolTip(said(larger.refusal) or self.tr("The model is loaded again with it."))
        self._refusal = said(larger.refusal)
        self._show_remark()

    def show_summary(self, *, is_writing: bool, words: str = "") -> None:
        """Say that a summary is being written, and offer to end that."""
        self._is_writing = is_writing
        text = self.tr("Cancel the summary") if is_writing else self.tr("Fresh chat with a summary")
        self.summary_button.setText(text)
        self.summary_button.setAccessibleName(text)
        self._progress = (words or self.tr("Writing the summary…")) if is_writing else ""
        self._show_remark()

    def show_problem(self, sentence: str) -> None:
        """Say what went wrong; "" takes it away."""
        self.problem.setText(sentence)
        self.problem.setVisible(bool(sentence))

    def end(self) -> None:
        """Hide, and tell it."""
        self.hide()
        self.closed.emit()

    def _show_remark(self) -> None:
        self.remark.setText(self._progress or self._refusal)
        self.remark.setVisible(bool(self._progress or self._refusal))

    def _on_summary(self) -> None:
        if self._is_writing:
            self.cancel_requested.emit()
        else:
            self.summary_requested.emit()

    def _restyle(self) -> None:
        px = self._theme.px
        self._layout.setContentsMargins(px(14), px(10), px(10), px(10))
        self._layout.setSpacing(px(6))
        self._buttons.setSpacing(px(8))
