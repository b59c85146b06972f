"""Find in the chat on screen: a line above the transcript, over all messages, whether in sight or not. GUI thread only."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLineEdit, QWidget

from inglenook.app.chat.message_list_model import MessageListModel
from inglenook.app.chat.message_view import MessageView
from inglenook.app.text.plain_label import PlainLabel, button
from inglenook.app.window.icons import icon
from inglenook.app.window.theme import Theme


class FindBar(QFrame):
    """Goes from message to message that holds what is typed, letter case aside. Signals: `closed()`."""

    closed = Signal()

    def __init__(
        self, model: MessageListModel, view: MessageView, theme: Theme, parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self._model, self._view, self._theme = model, view, theme
        self._found: list[int | str] = []
        self._place = -1
        self.setObjectName("find_bar")
        self.field = QLineEdit()
        self.field.setPlaceholderText(self.tr("Find in this chat"))
        self.field.setAccessibleName(self.tr("Find in this chat"))
        self.field.textChanged.connect(self._search)
        self.count = PlainLabel(look="small")
        self.previous_button = button("", "quiet_button", tip=self.tr("Earlier message (Shift+F3)"))
        self.previous_button.setAccessibleName(self.tr("Earlier message with these words"))
        self.next_button = button("", "quiet_button", tip=self.tr("Later message (F3)"))
        self.next_button.setAccessibleName(self.tr("Later message with these words"))
        self.close_button = button("", "quiet_button", tip=self.tr("Close (Esc)"))
        self.close_button.setAccessibleName(self.tr("Close the search in this chat"))
        self.previous_button.clicked.connect(lambda: self.step(-1))
        self.next_button.clicked.connect(lambda: self.step(1))
        self.close_button.clicked.connect(self.end)
        self._line = QHBoxLayout(self)
        self._line.addWidget(self.field, 1)
        self._line.addWidget(self.count)
        for made in (self.previous_button, self.next_button, self.close_button):
            self._line.addWidget(made)
        model.modelReset.connect(self._search)
        theme.changed.connect(self._restyle)
        self._restyle()
        self.hide()

    def begin(self) -> None:
        """Show the line, ready to be typed into."""
        self.show()
        self.field.setFocus(Qt.FocusReason.ShortcutFocusReason)
        self.field.selectAll()
        self._search()

    def end(self) -> None:
        """Hide the line."""
        if not self.isHidden():
            self.hide()
            self.closed.emit()

    def step(self, direction: int) -> None:
        """Go to the next message that holds the words, or the one before; around at the ends."""
        self._find()
        if self._found:
            self._place = (self._place + direction) % len(self._found)
            self._show()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            self.step(-1 if event.modifiers() & Qt.KeyboardModifier.ShiftModifier else 1)
        else:
            super().keyPressEvent(event)

    def _search(self) -> None:
        if self.isHidden():
            return
        self._find()
        # The latest is what one most often looks for.
        self._place = len(self._found) - 1
        self._show()

    def _find(self) -> None:
        """Look through all messages; a reply that is being written has grown since the last time."""
        words = self.field.text().casefold()
        before = self._found[self._place] if 0 <= self._place < len(self._found) else None
        self._found = [m.id for m in self._model.messages if words and words in m.text.casefold()]
        if before in self._found:
            self._place = self._found.index(before)

    def _show(self) -> None:
        words = self.field.text()
        has_any = bool(self._found)
        for made in (self.previous_button, self.next_button):
            made.setEnabled(has_any)
        if not words:
            self.count.setText("")
        elif not has_any:
            self.count.setText(self.tr("Nothing found"))
        else:
            self.count.setText(self.tr("{0} of {1} messages").format(self._place + 1, len(self._found)))
            self._view.reveal(self._found[self._place], words)
            self._mark(words)

    def _mark(self, words: str) -> None:
        """Select the words in the rows in sight of the message that was gone to."""
        for widget in self._view.visible_widgets():
            cursor = widget.browser.textCursor()
            cursor.setPosition(0)
            widget.browser.setTextCursor(cursor)
            if widget.message_id == self._found[self._place] and widget.browser.find(words):
                return

    def _restyle(self) -> None:
        px, muted = self._theme.px, self._theme.colours.muted
        self._line.setContentsMargins(px(12), px(6), px(8), px(6))
        self._line.setSpacing(px(6))
        self.previous_button.setIcon(icon("left", muted))
        self.next_button.setIcon(icon("right", muted))
        self.close_button.setIcon(icon("close", muted))
