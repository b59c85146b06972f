"""The centre of the window: transcript, or a greeting while a chat is empty, and below them what is written.

It joins the transcript and the composer to one column and passes their signals on. GUI thread only.
"""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QHideEvent
from PySide6.QtWidgets import QHBoxLayout, QStackedWidget, QVBoxLayout, QWidget

from inglenook.app.chat.composer import Composer
from inglenook.app.chat.edit_bar import EditBar
from inglenook.app.chat.find_bar import FindBar
from inglenook.app.chat.message_list_model import MessageListModel
from inglenook.app.chat.message_view import MessageView
from inglenook.app.chat.queued_messages import QueuedMessages
from inglenook.app.chat.selection_bar import SelectionBar
from inglenook.app.text.maths_drawings import MathsDrawings
from inglenook.app.text.plain_label import PlainLabel, button
from inglenook.app.translations.figures import numbered
from inglenook.app.window.centred_column import in_column
from inglenook.app.window.theme import COLUMN_WIDTH, Theme


class ChatPage(QWidget):
    """One conversation. `model`, `view`, `composer`, `find_bar`, `edit_bar` and `queue` are there for whoever feeds them.

    Signals: `example_chosen(text)` of the greeting; the other ones are those of `view` and `composer`.
    """

    example_chosen = Signal(str)

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self.setObjectName("page")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self.model = MessageListModel(parent=self)
        self._maths = MathsDrawings(self)
        self.view = MessageView(self.model, theme, maths=self._maths)
        self.find_bar = FindBar(self.model, self.view, theme)
        self.selection_bar = SelectionBar(self.view.selection, theme)
        self.composer = Composer(theme)
        self.edit_bar = EditBar(theme)
        self.queue = QueuedMessages(theme)
        self.greeting = _Greeting(theme)
        self.greeting.chosen.connect(self.example_chosen)
        self.stage = PlainLabel(look="small")
        self.stage.setAlignment(Qt.AlignmentFlag.AlignHCenter)
        self._footer = PlainLabel(
            self.tr("Answered on this computer. Models make mistakes: check the pages they name."),
            look="small",
        )
        self._footer.setAlignment(Qt.AlignmentFlag.AlignHCenter)
        self.temporary = PlainLabel(
            self.tr(
                "Temporary chat: nothing of it is saved, and it is gone when you leave it. Documents that you add stay."
            ),
            look="small",
        )
        self.temporary.setWordWrap(True)
        self.temporary.setAlignment(Qt.AlignmentFlag.AlignHCenter)
        self.temporary.hide()
        self._stack = QStackedWidget()
        self._stack.addWidget(self.greeting)
        self._stack.addWidget(self.view)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(0)
        layout.addWidget(in_column(self.find_bar, theme))
        layout.addWidget(in_column(self.temporary, theme))
        layout.addWidget(self._stack, 1)
        layout.addWidget(self.stage)
        layout.addWidget(in_column(self.selection_bar, theme))
        layout.addWidget(in_column(self.queue, theme))
        layout.addWidget(in_column(self.edit_bar, theme))
        layout.addWidget(self.composer)
        layout.addWidget(self._footer)
        for signal in (self.model.rowsInserted, self.model.rowsRemoved, self.model.modelReset):
            signal.connect(self._show_emptiness)
        theme.changed.connect(self._restyle)
        self._restyle()
        self.set_stage("")
        self._show_emptiness()

    def hideEvent(self, event: QHideEvent) -> None:
        super().hideEvent(event)
        if not self.window().isVisible():
            # The window is gone, not only another page in front.
            self._maths.close()

    def take_escape(self) -> bool:
        """Let Esc leave choosing messages or, after a reply was stopped, drop what waits; say whether it did."""
        if self.view.selection.is_on:
            self.view.selection.end()
            return True
        if not self.queue.is_paused:
            return False
        self.queue.drop_requested.emit()
        return True

    def set_stage(self, sentence: str) -> None:
        """Say above the composer what is being done or used; "" leaves the line empty."""
        self.stage.setText(sentence)
        self.stage.setVisible(bool(sentence))

    def set_temporary(self, is_temporary: bool) -> None:
        """Say above the transcript that nothing of this chat is kept."""
        self.temporary.setVisible(is_temporary)

    def set_document_names(self, names: list[str]) -> None:
        """Say in the greeting which documents a question would be about."""
        self.greeting.set_document_names(names)

    def _show_emptiness(self) -> None:
        self._stack.setCurrentIndex(1 if self.model.messages else 0)

    def _restyle(self) -> None:
        self.temporary.setContentsMargins(0, self._theme.px(8), 0, self._theme.px(8))
        self.stage.setContentsMargins(
            self._theme.px(24), self._theme.px(4), self._theme.px(24), self._theme.px(2)
        )
        self._footer.setContentsMargins(self._theme.px(24), 0, self._theme.px(24), self._theme.px(10))


class _Greeting(QWidget):
    chosen = Signal(str)

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._known: dict[str, list[str]] = {}
        self.setObjectName("page")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self._title = PlainLabel(self.tr("What would you like to know?"), look="title")
        self._lead = PlainLabel(look="muted")
        self.examples = [button("", "example") for _ in range(3)]
        self._column = QWidget()
        self._layout = QVBoxLayout(self._column)
        self._layout.addWidget(self._title)
        self._layout.addWidget(self._lead)
        for example in self.examples:
            example.clicked.connect(
                lambda _=False, example=example: self.chosen.emit(example.accessibleName())
            )
            self._layout.addWidget(example)
        middle = QHBoxLayout()
        middle.addStretch(1)
        middle.addWidget(self._column, 100)
        middle.addStretch(1)
        self._outer = QVBoxLayout(self)
        self._outer.addStretch(3)
        self._outer.addLayout(middle)
        self._outer.addStretch(4)
        theme.changed.connect(self._restyle)
        self.set_document_names([])
        self._restyle()

    def set_examples_for(self, name: str, texts: list[str]) -> None:
        """Offer these three questions while only the document of this name is ticked."""
        self._known[name] = texts

    def set_document_names(self, names: list[str]) -> None:
        """Suit the examples to the documents that are ticked."""
        if names:
            which = names[0] if len(names) == 1 else numbered("{0} documents", len(names))
            self._lead.setText(self.tr("Your question will be about {0}.").format(which))
            texts = [
                self.tr("What is this document about?")
                if len(names) == 1
                else self.tr("What are these documents about?"),
                self.tr("List the dates and numbers that matter most."),
                self.tr("What is the reader asked to do?"),
            ]
            texts = self._known.get(names[0], texts) if len(names) == 1 else texts
        else:
            self._lead.setText(
                self.tr(
                    "Write below, or drop a document here to ask about it: PDF, Word, web page, table or text."
                )
            )
            texts = [
                self.tr("Explain how a hedge differs from a fence, in two sentences."),
                self.tr("Write a friendly reminder that the meeting moved to Thursday."),
                self.tr("Give me three names for a small bakery by the sea."),
            ]
        for example, text in zip(self.examples, texts, strict=True):
            example.setText(text)
            example.setAccessibleName(text)

    def _restyle(self) -> None:
        px = self._theme.px
        self._column.setMaximumWidth(px(COLUMN_WIDTH - 160))
        self._outer.setContentsMargins(px(24), 0, px(24), 0)
        self._layout.setContentsMargins(0, 0, 0, 0)
        self._layout.setSpacing(px(10))
        self._lead.setContentsMargins(0, 0, 0, px(10))
