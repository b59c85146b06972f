"""The page that asks two models: which ones, the question, and their answers side by side.

It asks nothing itself; it shows what it is given and asks by signals. GUI thread only.
"""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QEvent, QObject, QSignalBlocker, Qt, QTimer, Signal
from PySide6.QtGui import QKeyEvent, QResizeEvent
from PySide6.QtWidgets import (
    QFrame,
    QGridLayout,
    QHBoxLayout,
    QPlainTextEdit,
    QScrollArea,
    QVBoxLayout,
    QWidget,
)

from inglenook.app.settings_page.form_controls import Choices
from inglenook.app.settings_page.form_style import form_style
from inglenook.app.text.markdown_blocks import StreamingMarkdown
from inglenook.app.text.plain_label import PlainLabel, button
from inglenook.app.text.reasoning import part_reply
from inglenook.app.text.rich_text import label
from inglenook.app.text.text_browser import SafeTextBrowser
from inglenook.app.translations.sentences import said
from inglenook.app.window.theme import SIDE_MARGIN, Theme

_REPAINT_MS = 80
_QUESTION_LINES = 3


class AnswerPane(QFrame):
    """One model's answer: which model, how far it is, the text, and a button to keep it.

    Signals: `keep_requested()`.
    """

    keep_requested = Signal()

    def __init__(self, theme: Theme, name: str) -> None:
        super().__init__()
        self._theme = theme
        self._text = ""
        self._is_streaming = False
        self.setObjectName("card")
        self.choices = Choices()
        self.choices.setAccessibleName(name)
        self.status = PlainLabel(look="small", is_selectable=True)
        self.problem = PlainLabel(look="error", is_selectable=True)
        self.problem.hide()
        self.browser = SafeTextBrowser(theme)
        self.browser.setAccessibleName(self.tr("Answer, {0}").format(name))
        self.keep_button = button(self.tr("Go on with this one"))
        self.keep_button.setToolTip(
            self.tr("Makes a chat of the question and this answer, and uses this model for it")
        )
        self.keep_button.clicked.connect(self.keep_requested)
        self._holder = QWidget()
        self.browser.setParent(self._holder)
        self._scroll = QScrollArea()
        self._scroll.setObjectName("answer_scroll")
        self._scroll.setFrameShape(QFrame.Shape.NoFrame)
        self._scroll.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self._scroll.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self._scroll.setWidget(self._holder)
        self._layout = QVBoxLayout(self)
        self._layout.addWidget(self.choices)
        self._layout.addWidget(self.problem)
        self._layout.addWidget(self._scroll, 1)
        self._layout.addWidget(self.status)
        self._layout.addWidget(self.keep_button, 0, Qt.AlignmentFlag.AlignRight)
        keep = self.keep_button.sizePolicy()
        keep.setRetainSizeWhenHidden(True)
        self.keep_button.setSizePolicy(keep)
        self._later = QTimer(self, singleShot=True, interval=_REPAINT_MS)
        self._later.timeout.connect(self._render)
        self.show_answer("", status="", problem="", is_streaming=False, can_keep=False)
        self.restyle()

    def show_answer(
        self, text: str, *, status: str, problem: str, is_streaming: bool, can_keep: bool
    ) -> None:
        """Show what was written so far, and how far it is in words."""
        self.status.setText(status)
        self.problem.setText(said(problem))
        self.problem.setVisible(bool(problem))
        self.keep_button.setVisible(can_keep)
        if (text, is_streaming) != (self._text, self._is_streaming):
            self._text, self._is_streaming = text, is_streaming
            if not self._later.isActive():
                self._later.start()

    def restyle(self) -> None:
        """Take the theme anew."""
        px, c = self._theme.px, self._theme.colours
        self._layout.setContentsMargins(px(14), px(12), px(10), px(12))
        self._layout.setSpacing(px(8))
        self._scroll.setMinimumHeight(px(150))
        self.setStyleSheet(
            f"#answer_scroll, #answer_scroll > QWidget > QWidget {{ background: {c.panel}; border: none; }}"
        )
        self.browser.restyle()
        self._render()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit()

    def _render(self) -> None:
        parted = part_reply(self._text, is_streaming=self._is_streaming)
        shown = parted.answer or (
            self.tr("*Thinking…*") if self._is_streaming and parted.thought else parted.thought
        )
        blocks = StreamingMarkdown.of(shown)
        self.browser.show_elements(
            [element for part in range(blocks.num_parts) for element in blocks.elements(part)]
        )
        self.browser.set_caret(is_shown=self._is_streaming and bool(self._text))
        self._fit()

    def _fit(self) -> None:
        bar = self._scroll.verticalScrollBar()
        was_at_end = bar.value() >= bar.maximum() - 4
        # Room for the bar is kept, so that no line breaks anew when it comes.
        width = max(80, self._scroll.width() - bar.sizeHint().width() - self._theme.px(4))
        height = self.browser.fit(width)
        self._holder.resize(width, height)
        if self._is_streaming and was_at_end:
            bar.setValue(bar.maximum())


class ComparisonPage(QWidget):
    """Two answers beside each other; `panes` are the left and the right one.

    Signals: `asked(str)`, `stop_requested()`, `chosen()` after another model was chosen, `keep_requested(int)` a side,
    `close_requested()`.
    """

    asked = Signal(str)
    stop_requested = Signal()
    chosen = Signal()
    keep_requested = Signal(int)
    close_requested = Signal()

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._names: list[str] = []
        self._is_running = self._can_ask = False
        self.setObjectName("page")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self.setAccessibleName(self.tr("Ask two models"))
        self._title = PlainLabel(self.tr("Ask two models"), look="title")
        self.question = QPlainTextEdit()
        self.question.setObjectName("long_field")
        self.question.setAccessibleName(self.tr("Question for both models"))
        self.question.setPlaceholderText(self.tr("One question for both"))
        self.question.setTabChangesFocus(True)
        self.question.installEventFilter(self)
        self.question.textChanged.connect(self._show_button)
        self.ask_button = button(self.tr("Ask both"), "primary_button")
        self.ask_button.clicked.connect(self._on_button)
        self.plan = PlainLabel(look="muted", is_selectable=True)
        self.panes = (
            AnswerPane(theme, self.tr("Left model")),
            AnswerPane(theme, self.tr("Right model")),
        )
        for number, pane in enumerate(self.panes):
            pane.choices.currentIndexChanged.connect(lambda _index: self.chosen.emit())
            pane.keep_requested.connect(lambda number=number: self.keep_requested.emit(number))
        self._line = QHBoxLayout()
        self._line.addWidget(self.question, 1)
        self._line.addWidget(self.ask_button, 0, Qt.AlignmentFlag.AlignBottom)
        self._grid = QGridLayout()
        column = QWidget()
        column.setObjectName("page")
        self._layout = QVBoxLayout(column)
        self._layout.addWidget(self._title)
        self._layout.addLayout(self._line)
        self._layout.addWidget(self.plan)
        self._layout.addLayout(self._grid, 1)
        scroll = QScrollArea()
        scroll.setObjectName("page_scroll")
        scroll.setFrameShape(QFrame.Shape.NoFrame)
        scroll.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        scroll.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        scroll.setWidgetResizable(True)
        scroll.setWidget(column)
        outer = QVBoxLayout(self)
        outer.setContentsMargins(0, 0, 0, 0)
        outer.addWidget(scroll)
        theme.changed.connect(self._restyle)
        self._restyle()
        self._show_button()

    @property
    def chosen_names(self) -> tuple[str, ...]:
        """The names of the two models chosen; () while there are none to choose from."""
        places = [pane.choices.currentIndex() for pane in self.panes]
        return tuple(self._names[place] for place in places if 0 <= place < len(self._names))

    def show_models(self, models: Sequence[tuple[str, str]], chosen: Sequence[str]) -> None:
        """Offer these models, as name and title, with the two in `chosen` chosen."""
        self._names = [name for name, _ in models]
        for pane, name in zip(self.panes, chosen, strict=True):
            with QSignalBlocker(pane.choices):
                pane.choices.clear()
                pane.choices.addItems([label(title, 60) for _, title in models])
                pane.choices.setCurrentIndex(self._names.index(name) if name in self._names else -1)
        self.chosen.emit()

    def show_plan(self, sentence: str, *, can_ask: bool) -> None:
        """Say how they will answer, or why they cannot."""
        self.plan.setText(sentence)
        self._can_ask = can_ask
        self._show_button()

    def show_running(self, *, is_running: bool) -> None:
        """Offer to stop while answers are written; the models cannot be changed meanwhile."""
        self._is_running = is_running
        for pane in self.panes:
            pane.choices.setEnabled(not is_running)
        self._show_button()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Ask by Enter; Shift and Enter begin a line."""
        if isinstance(event, QKeyEvent) and event.type() == QEvent.Type.KeyPress:
            is_enter = event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter)
            is_composing = bool(self.question.textCursor().block().layout().preeditAreaText())
            if is_enter and not is_composing and not event.modifiers() & Qt.KeyboardModifier.ShiftModifier:
                if self.ask_button.isEnabled() and not self._is_running:
                    self._on_button()
                return True
        return super().eventFilter(watched, event)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._place_panes()

    def _place_panes(self) -> None:
        """Set the answers beside each other, or where there is no room for that, below each other."""
        is_narrow = self.width() < self._theme.px(600)
        for number, pane in enumerate(self.panes):
            self._grid.removeWidget(pane)
            self._grid.addWidget(pane, number if is_narrow else 0, 0 if is_narrow else number)
        self._grid.setColumnStretch(0, 1)
        self._grid.setColumnStretch(1, 0 if is_narrow else 1)

    def _on_button(self) -> None:
        if self._is_running:
            self.stop_requested.emit()
        else:
            self.asked.emit(self.question.toPlainText().strip())

    def _show_button(self) -> None:
        words = self.tr("Stop") if self._is_running else self.tr("Ask both")
        self.ask_button.setText(words)
        self.ask_button.setAccessibleName(words)
        has_text = bool(self.question.toPlainText().strip())
        self.ask_button.setEnabled(self._is_running or (self._can_ask and has_text))

    def _restyle(self) -> None:
        px = self._theme.px
        self.setStyleSheet(form_style(self._theme))
        self._layout.setContentsMargins(px(SIDE_MARGIN), px(36), px(SIDE_MARGIN), px(24))
        self._layout.setSpacing(px(12))
        self._line.setSpacing(px(12))
        self._grid.setSpacing(px(14))
        self.question.setFixedHeight(self.question.fontMetrics().lineSpacing() * _QUESTION_LINES + 2 * px(9))
        for pane in self.panes:
            pane.restyle()
        self._place_panes()
