"""The documents that wait to be read, one at a time: parsed in the parser's process, then stored slice by slice.

A slice is a transaction of its own that other changes come between, so that a long document never keeps the words of
a chat waiting. Every end is stored: "ready", "failed" with its sentence, or "locked". GUI thread only.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from PySide6.QtCore import QObject, Signal

from inglenook.app.documents.embedder import Embedder
from inglenook.app.errors import AppError
from inglenook.app.tasks import Task, Tasks
from inglenook.storage.database import Database
from inglenook.storage.documents import Documents, slices
from inglenook.storage.errors import NotFoundError
from inglenook.storage.parsing.client import ParserClient
from inglenook.storage.parsing.document import Chunk, ParsedDocument, ParsedPage
from inglenook.storage.parsing.errors import FileVanishedError, PasswordRequiredError
from inglenook.storage.records import Document

MAX_REREADINGS = 3

_CANCELLED = "Reading was cancelled. Read it again when you need it."
_WAS_CHANGED = "This file was changed while it was being read; it is read again."
_KEEPS_CHANGING = "This file was changed each time it was being read. Add it again when it is finished."

MakeParser = Callable[[Path | None], ParserClient]


def make_parser(tokenizer: Path | None) -> ParserClient:
    """Make a parser that measures chunks with the embedder's tokenizer, or by approximation."""
    return ParserClient(tokenizer=tokenizer)


class ReadingQueue(QObject):
    """Reads documents that are noted in the database. GUI thread only; close it.

    Signals:
        document_changed(Document): another status.
        progress_changed(int, int, int): document id, pages read, pages in all.
        finished(): a document is ready.
        file_changed(Path): a file has other bytes than when it was noted, and must be noted again.
    """

    document_changed = Signal(object)
    progress_changed = Signal(int, int, int)
    finished = Signal()
    file_changed = Signal(object)

    def __init__(
        self,
        tasks: Tasks,
        embedder: Embedder,
        *,
        make_parser: MakeParser = make_parser,
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._tasks = tasks
        self._embedder = embedder
        self._make_parser = make_parser
        self._parser: ParserClient | None = None
        self._waiting: deque[_Reading] = deque()
        self._reading: _Reading | None = None
        self._rereadings: dict[int, int] = {}
        self._is_closed = False
        embedder.changed.connect(self._drop_parser)

    def add(self, document: Document, password: str | None = None) -> bool:
        """Read a version when its turn comes; False where it is in the queue already."""
        queued = [*self._waiting, *([self._reading] if self._reading else [])]
        if any(reading.document.version_id == document.version_id for reading in queued):
            return False
        self._waiting.append(_Reading(document, password))
        self._next()
        return True

    def cancel(self, document_id: int) -> None:
        """End the reading of a document, or keep it from beginning, and store that."""
        reading = self.take_out(document_id)
        if reading is not None:
            self._fail(reading, AppError(_CANCELLED))

    def take_out(self, document_id: int) -> _Reading | None:
        """Take a document out of the queue, or end its reading; return it if it was there."""
        reading = self._reading
        if reading is not None and reading.document.id == document_id:
            if reading.task is not None:
                reading.task.cancel()
            self._end(reading)
            return reading
        for reading in self._waiting:
            if reading.document.id == document_id:
                self._waiting.remove(reading)
                return reading
        return None

    def close(self) -> None:
        """End the parser; what is not finished stays "parsing", and waits again at the next start."""
        self._is_closed = True
        if self._reading is not None and self._reading.task is not None:
            self._reading.task.cancel()
        if self._parser is not None:
            self._parser.close()

    def _next(self) -> None:
        if self._reading is not None or not self._waiting or self._is_closed:
            return
        reading = self._reading = self._waiting.popleft()
        if self._parser is None:
            self._parser = self._make_parser(self._embedder.tokenizer)
        self._tasks.write(
            lambda db: _begin(db, reading.document),
            partial(self._parse, reading, self._parser),
            partial(self._fail, reading),
        )

    def _parse(self, reading: _Reading, parser: ParserClient, document: Document) -> None:
        if reading is not self._reading:
            return
        self.document_changed.emit(document)

        def work(task: Task) -> tuple[ParsedDocument, list[_Slice]]:
            parsed = parser.parse(
                Path(document.path),
                password=reading.password,
                encoding=document.chosen_encoding or None,
                progress=lambda done, total: task.report((done, total)),
                cancelled=lambda: task.is_cancelled,
            )
            return parsed, list(slices(parsed))

        reading.task = self._tasks.work(
            "documents",
            work,
            partial(self._store, reading),
            partial(self._fail, reading),
            lambda pages: self.progress_changed.emit(document.id, *pages),
        )

    def _store(self, reading: _Reading, result: tuple[ParsedDocument, list[_Slice]]) -> None:
        parsed, rest = result
        if reading is not self._reading:
            return
        document = reading.document
        if parsed.sha256 != document.sha256:
            self._read_anew(reading)
        elif rest:
            pages, chunks = rest[0]
            self._tasks.write(
                lambda db: Documents(db).add_pages(document.version_id, pages, chunks),
                lambda _: self._store(reading, (parsed, rest[1:])),
                partial(self._fail, reading),
            )
        else:
            self._tasks.write(
                lambda db: _finish(db, document, parsed),
                partial(self._finished, reading),
                partial(self._fail, reading),
            )

    def _read_anew(self, reading: _Reading) -> None:
        """The file was changed between being noted and being read: have it noted again."""
        document = reading.document
        count = self._rereadings[document.id] = self._rereadings.get(document.id, 0) + 1
        goes_on = count < MAX_REREADINGS
        self._fail(reading, AppError(_WAS_CHANGED if goes_on else _KEEPS_CHANGING))
        if goes_on:
            self.file_changed.emit(Path(document.path))

    def _finished(self, reading: _Reading, document: Document) -> None:
        self._rereadings.pop(document.id, None)
        self.document_changed.emit(document)
        self._end(reading)
        self.finished.emit()

    def _fail(self, reading: _Reading, error: Exception) -> None:
        """Store why a document could not be read, and go on with the next."""
        document_id, version_id = reading.document.id, reading.document.version_id

        def note(db: Database) -> Document | None:
            documents = Documents(db)
            try:
                with db.atomic():
                    needs_password = isinstance(error, PasswordRequiredError)
                    documents.fail_version(version_id, str(error), needs_password=needs_password)
                    if isinstance(error, FileVanishedError):
                        documents.set_missing(document_id, True)
                    return documents.get(document_id)
            except NotFoundError:
                return None

        def noted(document: Document | None) -> None:
            if document is not None:
                self.document_changed.emit(document)

        self._tasks.write(note, noted)
        self._end(reading)

    def _end(self, reading: _Reading) -> None:
        if self._reading is reading:
            self._reading = None
            self._next()

    def _drop_parser(self) -> None:
        """Use the new embedder's tokenizer from the next document on."""
        old, self._parser = self._parser, None
        if old is not None:
            self._tasks.work("documents", lambda _task: old.close())


_Slice = tuple[list[ParsedPage], list[Chunk]]


@dataclass(slots=True, eq=False)
class _Reading:
    """A document whose turn is now or comes later."""

    document: Document
    password: str | None
    task: Task | None = None


def _begin(db: Database, document: Document) -> Document:
    documents = Documents(db)
    documents.begin_version(document.version_id)
    return documents.get(document.id)


def _finish(db: Database, document: Document, parsed: ParsedDocument) -> Document:
    documents = Documents(db)
    documents.finish_parsed(document.version_id, parsed)
    return documents.get(document.id)
