"""`TemporaryChat`: a chat that is answered like any other and of which nothing is ever written.

Its turns go into a database in memory, through calls like those of `Tasks` which are done at once; documents are
searched in the history as usual. Closing it stops what is being answered, has the engine forget it, and drops it all.
GUI thread only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, TypeVar

from PySide6.QtCore import QObject, QTimer

from inglenook.app.answers.answering import Answering
from inglenook.app.application import Application
from inglenook.app.tasks import EXPECTED_ERRORS, Tasks
from inglenook.storage.database import Database
from inglenook.storage.temporary import note_documents, temporary_database

T = TypeVar("T")


class MemoryTasks(QObject):
    """`write`, `read` and `work` as in `Tasks`, over one database in memory; callbacks come in a later turn of the loop."""

    def __init__(self, tasks: Tasks, database: Database, parent: QObject) -> None:
        super().__init__(parent)
        self._tasks, self._database = tasks, database

    def write(
        self,
        work: Callable[[Database], T],
        on_done: Callable[[T], object] | None = None,
        on_error: Callable[[Exception], object] | None = None,
    ) -> None:
        """Run `work` now."""
        try:
            result = work(self._database)
        except EXPECTED_ERRORS as error:
            tell = on_error or self._tasks.problem.emit
            QTimer.singleShot(0, self, partial(tell, error))
            return
        if on_done is not None:
            QTimer.singleShot(0, self, partial(on_done, result))

    read = write

    def work(self, *arguments: Any, **options: Any) -> Any:
        """Run what needs no database on a thread of `Tasks`."""
        return self._tasks.work(*arguments, **options)


class TemporaryChat(QObject):
    """The `number`-th chat in memory of this run: `tasks` and `answering` stand in place of the application's."""

    def __init__(self, application: Application, number: int, parent: QObject) -> None:
        super().__init__(parent)
        self._database = temporary_database(number % (1 << 13))
        self.tasks = MemoryTasks(application.tasks, self._database, self)
        self.answering = Answering(
            application.bridge,
            self.tasks,  # type: ignore[arg-type]  # the same calls
            application.embedder,
            application.reply_options,
            self,
            documents=application.tasks,
        )

    def note_documents(self, document_ids: Iterable[int]) -> None:
        """Let answers name these documents."""
        note_documents(self._database, document_ids)

    def close(self) -> None:
        """End it; nothing is left of it."""
        self.answering.close()
        for row in self._database.rows("SELECT id FROM conversations"):
            self.answering.cached_text.forget_conversation(row[0])
        self.answering.blockSignals(True)
        self._database.close()
        self.deleteLater()
