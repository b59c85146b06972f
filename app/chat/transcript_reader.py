"""`TranscriptReader`: the keyboard's way through a transcript: which message is current, what the keys do, and copying.

The base of `MessageView`, which owns the rows and widgets and places them. GUI thread only.
"""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QFocusEvent, QGuiApplication, QKeyEvent, QTextCursor
from PySide6.QtWidgets import QAbstractScrollArea

from inglenook.app.chat.copied_message import copied_message
from inglenook.app.chat.message_list_model import MessageListModel
from inglenook.app.chat.message_selection import MessageSelection
from inglenook.app.chat.message_widget import MessageWidget
from inglenook.app.chat.reply_announcer import ReplyAnnouncer
from inglenook.app.chat.row_pool import RowPool
from inglenook.app.chat.transcript_rows import TranscriptRows
from inglenook.app.chat.transcript_texts import TranscriptTexts
from inglenook.app.window.theme import Theme


class TranscriptReader(QAbstractScrollArea):
    """A scroll area over messages, one of which is current; the view gives it the parts named here."""

    action_requested = Signal(object, str)

    _model: MessageListModel
    _theme: Theme
    _blocks: TranscriptTexts
    _rows: TranscriptRows
    _widgets: RowPool
    _announcer: ReplyAnnouncer
    selection: MessageSelection
    _current: int

    def follow_end(self) -> None:
        """Go to the end and follow it."""
        raise NotImplementedError

    def copy_message(self, message_id: int | str) -> None:
        """Put a message on the clipboard as it is stored, without what was thought."""
        QGuiApplication.clipboard().setText(self._model.message(message_id).answer)

    def act_on(self, message_id: int | str, name: str) -> None:
        """Do what a button or key of a message asks for."""
        if name == "copy":
            self.copy_message(message_id)
        elif name == "select":
            self.selection.toggle(message_id)
        elif name == "select_to":
            self.selection.extend_to(message_id)
        elif name == "copy_all":
            QGuiApplication.clipboard().setText(self._model.message(message_id).text)
        elif name in ("copy_text", "copy_rich"):
            message = self._model.message(message_id)
            copied = copied_message(
                message.answer, is_plain=message.role == "user", is_rich=name == "copy_rich"
            )
            QGuiApplication.clipboard().setMimeData(copied)
        else:
            self.action_requested.emit(message_id, name)

    def copy_last_reply(self) -> None:
        """Put the latest reply on the clipboard."""
        for message in reversed(self._model.messages):
            if message.role == "assistant":
                self.copy_message(message.id)
                return

    def keyPressEvent(self, event: QKeyEvent) -> None:
        bar, key = self.verticalScrollBar(), event.key()
        page = int(self.viewport().height() * 0.9)
        if self.selection.is_on and self._select_by_key(event):
            return
        is_copy = key == Qt.Key.Key_C and event.modifiers() == Qt.KeyboardModifier.ControlModifier
        if is_copy and 0 <= self._current < len(self._blocks):
            self.copy_message(self._model.messages[self._current].id)
        elif 0 <= self._current < len(self._blocks) and self._act_by_key(event):
            pass
        elif key == Qt.Key.Key_PageUp:
            bar.setValue(bar.value() - page)
        elif key == Qt.Key.Key_PageDown:
            bar.setValue(bar.value() + page)
        elif key == Qt.Key.Key_Home:
            bar.setValue(0)
            self._set_current(0)
        elif key == Qt.Key.Key_End:
            self.follow_end()
            self._set_current(len(self._blocks) - 1)
        elif key in (Qt.Key.Key_Up, Qt.Key.Key_Down):
            self._step(-1 if key == Qt.Key.Key_Up else 1)
        elif key in (Qt.Key.Key_Return, Qt.Key.Key_Enter, Qt.Key.Key_F2) and self._focus_text():
            pass
        elif key == Qt.Key.Key_Escape and not self.hasFocus():
            self.setFocus(Qt.FocusReason.ShortcutFocusReason)
        else:
            event.ignore()

    def _select_by_key(self, event: QKeyEvent) -> bool:
        """Do what a key means while messages may be chosen; say whether it means something."""
        control = event.modifiers() == Qt.KeyboardModifier.ControlModifier
        if event.key() == Qt.Key.Key_Space and 0 <= self._current < len(self._blocks):
            message = self._model.messages[self._current]
            self.selection.toggle(message.id)
            words = self.tr("Chosen") if message.id in self.selection else self.tr("Not chosen")
            self._announcer.say(words)
        elif event.key() == Qt.Key.Key_A and control:
            self.selection.choose_all()
        elif event.key() == Qt.Key.Key_Escape:
            self.selection.end()
        else:
            return False
        return True

    def _act_by_key(self, event: QKeyEvent) -> bool:
        """Do what a key means for the current message; say whether it means something."""
        key, message = event.key(), self._model.messages[self._current]
        is_plain = event.modifiers() in (Qt.KeyboardModifier.NoModifier, Qt.KeyboardModifier.KeypadModifier)
        is_menu = key == Qt.Key.Key_Menu or (
            key == Qt.Key.Key_F10 and event.modifiers() == Qt.KeyboardModifier.ShiftModifier
        )
        if is_menu:
            for row, widget in self._widgets:
                if self._rows.place(row) == (self._current, self._rows.place(row)[1]):
                    bar = widget.actions_bar
            bar.open_menu()
            return True
        names = {Qt.Key.Key_Left: "previous", Qt.Key.Key_Right: "next", Qt.Key.Key_E: "edit"}
        if not is_plain or key not in names or message.state == "streaming":
            return False
        name = names[Qt.Key(key)]
        step = {"previous": -1, "next": 1}.get(name, 0)
        if 0 <= message.branch + step < message.num_branches:
            self.act_on(message.id, name)
        return True

    def focusInEvent(self, event: QFocusEvent) -> None:
        super().focusInEvent(event)
        if self._current < 0:
            self._current = len(self._blocks) - 1
        self._show_current()

    def focusOutEvent(self, event: QFocusEvent) -> None:
        super().focusOutEvent(event)
        self._show_current()

    def _step(self, direction: int) -> None:
        """Go on to the next message, or further in this one while it reaches out of sight."""
        if not self._blocks:
            return
        bar, height = self.verticalScrollBar(), self.viewport().height()
        current = min(max(0, self._current), len(self._blocks) - 1)
        top, bottom = self._span(current)
        is_cut = top < bar.value() if direction < 0 else bottom > bar.value() + height
        is_seen = bottom > bar.value() and top < bar.value() + height
        if is_cut and is_seen:
            bar.setValue(bar.value() + direction * self._theme.px(72))
            return
        self._set_current(min(max(0, current + direction), len(self._blocks) - 1))
        top, bottom = self._span(self._current)
        if direction < 0 and top < bar.value():
            bar.setValue(max(top, bottom - height))
        elif direction > 0 and bottom > bar.value() + height:
            bar.setValue(min(top, bottom - height) if bottom - top <= height else top)

    def _span(self, index: int) -> tuple[int, int]:
        return self._rows.top(self._rows.first(index)), self._rows.top(self._rows.end(index))

    def _set_current(self, index: int) -> None:
        self._current = index
        self._show_current()
        if 0 <= index < len(self._blocks) and self.hasFocus():
            name = self._model.index(index).data(Qt.ItemDataRole.AccessibleTextRole)
            self._announcer.say(str(name))

    def _show_current(self) -> None:
        for row, widget in self._widgets:
            self._dress(row, widget)

    def _dress(self, row: int, widget: MessageWidget) -> None:
        """Show on a row whether it is the current one, and whether it is chosen."""
        index = self._rows.place(row)[0]
        widget.set_current(is_current=index == self._current and self.hasFocus())
        is_on = self.selection.is_on
        widget.set_chosen(self._model.messages[index].id in self.selection if is_on else None)

    def _focus_text(self) -> bool:
        for row, widget in self._widgets:
            if self._rows.place(row)[0] == self._current:
                # It is read from its first line on; writing has left the caret at the end.
                widget.browser.moveCursor(QTextCursor.MoveOperation.Start)
                widget.browser.setFocus(Qt.FocusReason.ShortcutFocusReason)
                return True
        return False
