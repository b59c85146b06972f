"""`ChatHome`: where the chat on screen is kept and answered: in the history, or in memory if it is a temporary one."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QObject

from inglenook.app.answers.answering import Answering
from inglenook.app.application import Application
from inglenook.app.chat.temporary_chat import MemoryTasks, TemporaryChat
from inglenook.app.tasks import Tasks


class ChatHome(QObject):
    """Gives the right `tasks` and `answering`; `ticked` says which documents the next question is about."""

    def __init__(self, application: Application, ticked: Callable[[], list[int]], parent: QObject) -> None:
        super().__init__(parent)
        self._app, self._ticked = application, ticked
        self._temporary: TemporaryChat | None = None
        self._num_temporary = 0

    @property
    def is_temporary(self) -> bool:
        """Whether the chat on screen is one of which nothing is kept."""
        return self._temporary is not None

    @property
    def answering(self) -> Answering:
        """What answers in the chat on screen."""
        return self._temporary.answering if self._temporary is not None else self._app.answering

    @property
    def tasks(self) -> Tasks | MemoryTasks:
        """Where the chat on screen is read and changed."""
        return self._temporary.tasks if self._temporary is not None else self._app.tasks

    def documents(self) -> list[int]:
        """The documents that the next question is about."""
        ids = self._ticked()
        if self._temporary is not None:
            self._temporary.note_documents(ids)
        return ids

    def begin_temporary(self) -> TemporaryChat:
        """Keep the chat on screen in memory from now on."""
        self.leave_temporary()
        self._temporary = TemporaryChat(self._app, self._num_temporary, self)
        self._num_temporary += 1
        return self._temporary

    def leave_temporary(self) -> None:
        """Drop a temporary chat, if there is one."""
        temporary, self._temporary = self._temporary, None
        if temporary is not None:
            temporary.close()
