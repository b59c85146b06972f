"""`MessageSelection`: which messages are chosen while the transcript is in its mode for choosing several."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QObject, Signal

from inglenook.app.chat.message_list_model import Message, MessageListModel


class MessageSelection(QObject):
    """Chosen messages of a model, in their order; the mode ends when the model shows another chat.

    Signals: `changed()` when the mode begins or ends, or another message is chosen.
    """

    changed = Signal()

    def __init__(self, model: MessageListModel, parent: QObject, on_changed: Callable[[], object]) -> None:
        super().__init__(parent)
        self._model = model
        self._chosen: set[int | str] = set()
        self._last: int | str | None = None
        self.is_on = False
        self.changed.connect(on_changed)
        model.modelReset.connect(self.end)
        model.rowsRemoved.connect(self._forget_removed)

    def __contains__(self, message_id: int | str) -> bool:
        return message_id in self._chosen

    @property
    def messages(self) -> list[Message]:
        """The chosen messages in the order of the chat."""
        return [message for message in self._model.messages if message.id in self._chosen]

    def begin(self) -> None:
        """Let messages be chosen."""
        if not self.is_on:
            self.is_on = True
            self.changed.emit()

    def end(self) -> None:
        """Leave the mode; nothing is chosen any more."""
        if self.is_on:
            self.is_on = False
            self._chosen.clear()
            self._last = None
            self.changed.emit()

    def toggle(self, message_id: int | str) -> None:
        """Choose a message, or no longer."""
        self.begin()
        self._chosen ^= {message_id}
        self._last = message_id
        self.changed.emit()

    def extend_to(self, message_id: int | str) -> None:
        """Choose all from the message that was last chosen to this one."""
        self.begin()
        rows = [self._model.row_of(id_) for id_ in (self._last, message_id) if id_ is not None]
        self._chosen |= {message.id for message in self._model.messages[min(rows) : max(rows) + 1]}
        self._last = message_id
        self.changed.emit()

    def choose_all(self) -> None:
        """Choose every message, or none when all are."""
        self.begin()
        everything = {message.id for message in self._model.messages}
        self._chosen = set() if self._chosen == everything else everything
        self.changed.emit()

    def _forget_removed(self) -> None:
        self._chosen &= {message.id for message in self._model.messages}
        self._last = self._last if self._last in self._chosen else None
        if self.is_on:
            self.changed.emit()
