"""Work off the GUI thread: one storage writer, one storage reader, and named threads for what else must wait.

`write` and `read` run a function with the database of their thread; `work` runs one on a thread of a given name
(parsing, pictures, downloads). Results and errors come back as callbacks on the GUI thread, in the order in which each
thread finished them. An expected error that nobody takes is told by `problem`; any other also reaches the excepthook,
so that none is lost. `close` lets the writer finish what it was given.
"""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from PySide6.QtCore import QObject, Qt, QThread, Signal, Slot

from inglenook.app.errors import AppError
from inglenook.engine.errors import EngineError
from inglenook.storage.database import Database
from inglenook.storage.errors import DatabaseClosedError, StorageError
from inglenook.storage.parsing.errors import ParsingError

logger = logging.getLogger(__name__)

EXPECTED_ERRORS = (StorageError, ParsingError, EngineError, AppError, OSError)
"""Errors whose text is a sentence for the user; all others are faults of the program."""

T = TypeVar("T")


class Task:
    """One piece of work given to a thread. After `cancel`, its callbacks are not called any more."""

    def __init__(
        self,
        on_done: Callable[[Any], object] | None,
        on_error: Callable[[Exception], object] | None,
        on_progress: Callable[[Any], object] | None,
        deliver: Callable[[Task, str, object], None],
    ) -> None:
        self.on_done = on_done
        self.on_error = on_error
        self.on_progress = on_progress
        self._deliver = deliver
        self._cancelled = threading.Event()

    @property
    def is_cancelled(self) -> bool:
        """Whether `cancel` was called; any thread. Long work asks now and then, and ends early."""
        return self._cancelled.is_set()

    def cancel(self) -> None:
        """Do not begin it, or let it end early; no callback comes any more. What was written stays written."""
        self._cancelled.set()

    def report(self, progress: object) -> None:
        """Tell how far the work is; from its own thread, for `on_progress` on the GUI thread."""
        self._deliver(self, "progress", progress)


class Tasks(QObject):
    """The program's worker threads. GUI thread only; close it.

    Signals, on the GUI thread:
        opened(str): the database stands; a notice for the user, or "".
        refused(Exception): it cannot be used; each task fails with the same. Its text says what to do.
        problem(Exception): an expected error of a task without `on_error`.
    """

    opened = Signal(str)
    refused = Signal(object)
    problem = Signal(object)
    _delivered = Signal(object, str, object)

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._threads: dict[str, _Thread] = {}
        self._is_closed = False
        self._delivered.connect(self._deliver, Qt.ConnectionType.QueuedConnection)
        self._databases = _Databases()

    def open(self, path: Path) -> None:
        """Open the database in its threads; `opened` or `refused` tells how it went. Tasks given before wait."""
        self._databases.path = path
        self._thread("storage-writer")
        self._thread("storage-reader")
        task = self.write(lambda db: db.notice, self.opened.emit, self.refused.emit)
        assert not task.is_cancelled

    def write(
        self,
        work: Callable[[Database], T],
        on_done: Callable[[T], object] | None = None,
        on_error: Callable[[Exception], object] | None = None,
    ) -> Task:
        """Run `work` with the writer's database, after all writes given before."""
        return self._run("storage-writer", lambda _task: work(self._databases.writer()), on_done, on_error)

    def read(
        self,
        work: Callable[[Database], T],
        on_done: Callable[[T], object] | None = None,
        on_error: Callable[[Exception], object] | None = None,
    ) -> Task:
        """Run `work` with the read-only database, which sees every write whose `on_done` was called."""
        return self._run("storage-reader", lambda _task: work(self._databases.reader()), on_done, on_error)

    def work(
        self,
        thread: str,
        work: Callable[[Task], T],
        on_done: Callable[[T], object] | None = None,
        on_error: Callable[[Exception], object] | None = None,
        on_progress: Callable[[Any], object] | None = None,
    ) -> Task:
        """Run `work` on the thread of that name, which is started at its first use; it is given its task."""
        return self._run(thread, work, on_done, on_error, on_progress)

    def close(self, timeout_s: float = 5.0) -> bool:
        """Cancel all but the writer's tasks, wait for what runs and for all writes; return whether all ended.

        No callback comes any more. Twice is fine.
        """
        self._is_closed = True
        deadline = time.monotonic() + timeout_s
        for name, thread in self._threads.items():
            thread.end(drain=name == "storage-writer")
        all_ended = True
        for name, thread in self._threads.items():
            if not thread.wait(max(1, round(1000 * (deadline - time.monotonic())))):
                logger.error("the thread %s did not end", name)
                all_ended = False
        return all_ended

    def _run(
        self,
        thread: str,
        work: Callable[[Task], Any],
        on_done: Callable[[Any], object] | None,
        on_error: Callable[[Exception], object] | None,
        on_progress: Callable[[Any], object] | None = None,
    ) -> Task:
        task = Task(on_done, on_error, on_progress, self._delivered.emit)
        if self._is_closed:
            task.cancel()
        else:
            self._thread(thread).queue.put((task, work))
        return task

    def _thread(self, name: str) -> _Thread:
        if name not in self._threads:
            on_end = {
                "storage-writer": self._databases.close_writer,
                "storage-reader": self._databases.close_reader,
            }
            thread = _Thread(name, on_end.get(name), self)
            start_thread(thread)
            self._threads[name] = thread
        return self._threads[name]

    @Slot(object, str, object)
    def _deliver(self, task: Task, what: str, value: object) -> None:
        if self._is_closed or task.is_cancelled:
            return
        if what == "progress":
            if task.on_progress is not None:
                task.on_progress(value)
        elif what == "done":
            if task.on_done is not None:
                task.on_done(value)
        else:
            assert isinstance(value, Exception)
            self._tell(task, value)

    def _tell(self, task: Task, error: Exception) -> None:
        is_expected = isinstance(error, EXPECTED_ERRORS)
        if task.on_error is not None:
            task.on_error(error if is_expected else AppError(unexpected_sentence(error)))
        elif is_expected:
            self.problem.emit(error)
        if not is_expected:
            raise error


def start_thread(thread: QThread) -> None:
    """Start a thread.

    Raises:
        AppError: the system has none left.
    """
    thread.start()
    if not thread.isRunning() and not thread.isFinished():
        raise AppError("The system has no thread left for Inglenook. Close other programs and try again.")


def unexpected_sentence(error: BaseException) -> str:
    """Say that the program itself is at fault; the class alone, since the text may quote the user's."""
    return f"Something unexpected went wrong in Inglenook ({type(error).__name__}). Please report it."


class _Databases:
    """The two connections, each made and closed in its own thread."""

    def __init__(self) -> None:
        self.path: Path | None = None
        self._writer: Database | None = None
        self._reader: Database | None = None
        self._error: StorageError | None = None
        self._tried = threading.Event()

    def writer(self) -> Database:
        """Return the writer, opened at the first call."""
        if self._writer is None:
            if self._error is not None:
                raise self._error
            if self.path is None:
                raise DatabaseClosedError("The history is not open.")
            try:
                self._writer = Database.open(self.path)
            except StorageError as error:
                self._error = error
                raise
            finally:
                self._tried.set()
        return self._writer

    def reader(self) -> Database:
        """Return the reader, once the writer stands."""
        if self._reader is None:
            self._tried.wait()
            if self._writer is None:
                raise self._error or DatabaseClosedError("The history is not open.")
            self._reader = self._writer.open_reader()
        return self._reader

    def close_writer(self) -> None:
        """Close the writer; its thread."""
        self._tried.set()
        if self._writer is not None:
            self._writer.close()

    def close_reader(self) -> None:
        """Close the reader; its thread."""
        if self._reader is not None:
            self._reader.close()


class _Thread(QThread):
    """One thread with a queue of work."""

    def __init__(self, name: str, on_end: Callable[[], None] | None, parent: QObject) -> None:
        super().__init__(parent)
        self.setObjectName(name)
        self.queue: queue.SimpleQueue[tuple[Task, Callable[[Task], Any]] | None] = queue.SimpleQueue()
        self._on_end = on_end
        self._is_draining = True
        self._running: Task | None = None

    def end(self, *, drain: bool) -> None:
        """Ask the thread to end, after what it was given when `drain`, or else after what it is doing."""
        self._is_draining = drain
        if not drain and (running := self._running) is not None:
            running.cancel()
        self.queue.put(None)

    def run(self) -> None:
        """Do one piece of work after the other, until the end."""
        while (item := self.queue.get()) is not None:
            task, work = item
            if task.is_cancelled or not self._is_draining:
                continue
            self._running = task
            try:
                task._deliver(task, "done", work(task))
            except Exception as error:  # noqa: BLE001 - told on the GUI thread
                task._deliver(task, "error", error)
            self._running = None
        if self._on_end is not None:
            self._on_end()
