"""Tells a screen reader when a reply begins, when it ends and how, once each and never token by token."""

from __future__ import annotations

from PySide6.QtCore import QModelIndex, QObject
from PySide6.QtGui import QAccessible, QAccessibleAnnouncementEvent
from PySide6.QtWidgets import QWidget

from inglenook.app.chat.message_list_model import Message, MessageListModel, State


class ReplyAnnouncer(QObject):
    """Watches a model and speaks for a widget."""

    def __init__(self, model: MessageListModel, speaker: QWidget) -> None:
        super().__init__(speaker)
        self._model = model
        self._speaker = speaker
        self._states: dict[int | str, State] = {}
        model.modelReset.connect(self._remember)
        model.rowsInserted.connect(self._on_inserted)
        model.dataChanged.connect(self._on_changed)
        self._remember()

    def say(self, sentence: str) -> None:
        """Say a sentence when the screen reader has time for it."""
        QAccessible.updateAccessibility(QAccessibleAnnouncementEvent(self._speaker, sentence))

    def _remember(self) -> None:
        self._states = {message.id: message.state for message in self._model.messages}

    def _on_inserted(self, _parent: QModelIndex, first: int, last: int) -> None:
        self._hear(first, last)

    def _on_changed(self, top: QModelIndex, bottom: QModelIndex) -> None:
        self._hear(top.row(), bottom.row())

    def _hear(self, first: int, last: int) -> None:
        for message in self._model.messages[first : last + 1]:
            before = self._states.get(message.id, "complete")
            self._states[message.id] = message.state
            if before != message.state:
                self.say(self._sentence(message))

    def _sentence(self, message: Message) -> str:
        return {
            "streaming": self.tr("The assistant is answering"),
            "complete": self.tr("Answer ready"),
            "stopped": self.tr("Answer stopped"),
            "repeated": self.tr("Answer stopped, since it repeated itself"),
            "cut": self.tr("Answer cut off at its longest length"),
            "interrupted": self.tr("Answer interrupted"),
            "failed": message.error or self.tr("The answer failed"),
        }[message.state]
