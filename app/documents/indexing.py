"""From a drop to searchable documents: found, noted, parsed in the parser's process, stored, embedded.

A document's text is searched by keyword as soon as it is stored; vectors follow in the background, a batch at a time.
Whatever was cut off goes on at the next start. GUI thread only; disk, parser and database work on the threads of
`Tasks`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from PySide6.QtCore import QObject, Signal

from inglenook.app.documents.dropped_files import Look, NotedFile, Refusal, look_at
from inglenook.app.documents.embedder import Embedder
from inglenook.app.documents.embedder_swap import EmbedderSwap
from inglenook.app.documents.embedding_queue import EmbeddingQueue
from inglenook.app.documents.reading_queue import MakeParser, ReadingQueue, make_parser
from inglenook.app.tasks import Task, Tasks
from inglenook.app.translations import figures
from inglenook.storage.database import Database
from inglenook.storage.document_collections import Collection, DocumentCollections
from inglenook.storage.documents import Documents
from inglenook.storage.forget import forget_documents
from inglenook.storage.parsing.document import READABLE_FORMATS
from inglenook.storage.records import Document
from inglenook.storage.vectors import Vectors


class Indexing(QObject):
    """Adds documents and keeps them indexed. GUI thread only; `start` once the database stands, then close it.

    `swap` changes the sentence encoder.

    Signals:
        documents_changed(list[Document]): the list, in the order added; after each addition and removal.
        document_changed(Document): one of the list has another status ("waiting", "parsing", "ready", "failed" or
            "locked"; its `error` is the sentence) or other `notices`.
        collections_changed(list[Collection]): at start and after each change.
        progress_changed(int, int, int): document id, pages read, pages in all.
        embedding_changed(int, int): passages with a vector, passages in all; equal when nothing is left to do.
        document_embedding_changed(int, int, int): document id, its passages with a vector, its passages in all.
        forgotten(int): the document of that id is deleted for good.
        refused(Refusal): a file that is not in the list.
        repeated(list[int]): documents that were added again and are in the list already.
        notice(str): one sentence for the line below the list ("Left out: 2 link, not followed.").
    """

    documents_changed = Signal(object)
    document_changed = Signal(object)
    collections_changed = Signal(object)
    progress_changed = Signal(int, int, int)
    embedding_changed = Signal(int, int)
    document_embedding_changed = Signal(int, int, int)
    forgotten = Signal(int)
    refused = Signal(object)
    repeated = Signal(object)
    notice = Signal(str)

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
        self._documents: dict[int, Document] = {}
        self._adding: list[Task] = []
        self._vectors = EmbeddingQueue(tasks, embedder, self)
        self._vectors.changed.connect(self.embedding_changed)
        self._vectors.document_changed.connect(self.document_embedding_changed)
        self._vectors.completed.connect(self._take_completed)
        self.swap = EmbedderSwap(tasks, embedder.bridge, self)
        self._queue = ReadingQueue(tasks, embedder, make_parser=make_parser, parent=self)
        self._queue.document_changed.connect(self._update)
        self._queue.progress_changed.connect(self.progress_changed)
        self._queue.finished.connect(self._vectors.go_on)
        self._queue.finished.connect(self.swap.go_on)
        self._queue.file_changed.connect(lambda path: self.add([path]))
        embedder.changed.connect(self._vectors.go_on)

    @property
    def documents(self) -> list[Document]:
        """The documents, in the order in which they were added; without those in the trash."""
        return [document for document in self._documents.values() if document.trashed_at_ms is None]

    def start(self) -> None:
        """Show what is there, go on with what was cut off, and note which files are gone."""

        def begin(db: Database) -> tuple[list[Document], list[Document], list[Collection]]:
            documents = Documents(db)
            if not db.is_read_only:
                documents.requeue_unfinished()
            every = documents.entries() + documents.entries(trashed=True)
            return every, documents.waiting(), DocumentCollections(db).entries()

        def begun(found: tuple[list[Document], list[Document], list[Collection]]) -> None:
            every, waiting, collections = found
            self.collections_changed.emit(collections)
            self._documents = {document.id: document for document in sorted(every, key=lambda d: d.id)}
            self.documents_changed.emit(self.documents)
            for document in waiting:
                self._queue.add(document)
            self._vectors.go_on()
            self.check_files()

        self._tasks.write(begin, begun)

    def add(self, paths: Iterable[Path]) -> None:
        """Add files and the documents inside folders; returns at once."""
        chosen = list(paths)
        known = {
            document.path: (document.size_bytes, document.modified_at_ns)
            for document in self.documents
            if document.status == "ready" and not document.is_missing
        }
        task = self._tasks.work(
            "files",
            lambda task: look_at(task, chosen, known),
            self._added,
            None,
            self._take_file,
        )
        self._adding = [*self._adding, task][-100:]

    def cancel_adding(self) -> None:
        """End the search through dropped folders; what was found so far stays."""
        for task in self._adding:
            task.cancel()
        self._adding.clear()

    def cancel(self, document_id: int) -> None:
        """End the reading of a document, or keep it from beginning; `retry` reads it again."""
        self._queue.cancel(document_id)

    def retry(self, document_id: int, *, password: str | None = None) -> None:
        """Read a document again that failed or is locked; `password` opens an encrypted one, and is not kept."""
        document = self._documents.get(document_id)
        if document is None or document.status not in ("failed", "locked"):
            return

        def again(db: Database) -> Document:
            added, _ = Documents(db).add(
                document.path,
                name=document.name,
                sha256=document.sha256,
                size_bytes=document.size_bytes,
                modified_at_ns=document.modified_at_ns,
            )
            return added

        self._tasks.write(again, lambda added: self._read_again(added, password))

    def choose_encoding(self, document_id: int, encoding: str) -> None:
        """Read a text again in the encoding that the user chose, "" for the one that is found; it is kept."""
        self._queue.take_out(document_id)
        self._tasks.write(lambda db: Documents(db).choose_encoding(document_id, encoding), self._read_again)

    def put_into_collection(self, name: str, document_ids: Sequence[int]) -> None:
        """Put documents into a collection, a new one if there is none of that name."""
        self._change_collections(lambda collections: collections.put(name, document_ids))

    def take_out_of_collection(self, name: str, document_ids: Sequence[int]) -> None:
        """Take documents out of a collection."""
        self._change_collections(lambda collections: collections.take_out(name, document_ids))

    def remove(self, document_id: int) -> None:
        """Move a document to the trash; `restore` takes it back."""
        self._queue.take_out(document_id)
        self._change(document_id, lambda documents: documents.trash(document_id))

    def restore(self, document_id: int) -> None:
        """Take a document out of the trash."""
        self._change(document_id, lambda documents: documents.restore(document_id))

    def forget(self, document_id: int) -> None:
        """Delete a document for good, with its text, its vectors and the quotes under old answers."""
        self._queue.take_out(document_id)

        def forgotten(_is_complete: bool) -> None:
            self.forgotten.emit(document_id)
            if self._documents.pop(document_id, None) is not None:
                self.documents_changed.emit(self.documents)

        self._tasks.write(lambda db: forget_documents(db, [document_id]), forgotten)

    def check_files(self) -> None:
        """Look which files are still where they were, and mark those that are not."""
        every = [(document.id, document.path, document.is_missing) for document in self.documents]

        def look(_task: Task) -> list[tuple[int, bool]]:
            found = ((id_, not Path(path).is_file(), was) for id_, path, was in every)
            return [(id_, is_missing) for id_, is_missing, was in found if is_missing != was]

        def looked(changed: Sequence[tuple[int, bool]]) -> None:
            for document_id, is_missing in changed:
                self.mark_missing(document_id, is_missing)

        self._tasks.work("files", look, looked)

    def close(self) -> None:
        """End the parser; what is not finished goes on at the next start."""
        self.cancel_adding()
        self._queue.close()

    def _take_completed(self, name: str) -> None:
        """Every passage has a vector of this encoder: it alone is searched with, and one being built beside it is kept."""
        kept = {name, self.swap.name}
        self._tasks.write(lambda db: Vectors(db).drop_others(*kept))

    def _take_file(self, found: NotedFile | Refusal) -> None:
        if isinstance(found, Refusal):
            self.refused.emit(found)
            return

        def added(result: tuple[Document, bool]) -> None:
            document, is_to_be_read = result
            is_new = document.id not in self._documents
            self._update(document)
            is_queued = is_to_be_read and self._queue.add(document)
            if not is_queued and not is_new:
                words = self.tr("{0} is in the list already.")
                if document.path != found.path:
                    words = self.tr("{1} has the same content as {0}, which is in the list already.")
                self.notice.emit(words.format(document.name, found.name))
                self.repeated.emit([document.id])

        self._tasks.write(
            lambda db: Documents(db).add(
                found.path,
                name=found.name,
                sha256=found.sha256,
                size_bytes=found.size_bytes,
                modified_at_ns=found.modified_at_ns,
            ),
            added,
            lambda error: self.refused.emit(Refusal(found.path, found.name, str(error))),
        )

    def _added(self, look: Look) -> None:
        found = look.found
        summary = found.summary()
        unchanged = set(map(str, look.unchanged))
        self.repeated.emit([document.id for document in self.documents if document.path in unchanged])
        if len(look.unchanged) == 1:
            self.notice.emit(self.tr("{0} is in the list already.").format(look.unchanged[0].name))
        elif look.unchanged:
            words = self.tr("{0} files are in the list already and have not changed.")
            self.notice.emit(words.format(figures.count(len(look.unchanged))))
        if summary:
            self.notice.emit(summary)
        elif not found.files:
            self.notice.emit(
                self.tr("There is nothing to read in there. Documents can be {0}.").format(READABLE_FORMATS)
            )

    def mark_missing(self, document_id: int, is_missing: bool) -> None:
        """Note whether a document's file is where it was; its text stays searchable."""
        self._change(document_id, lambda documents: documents.set_missing(document_id, is_missing))

    def _read_again(self, document: Document, password: str | None = None) -> None:
        self._update(document)
        self._queue.add(document, password)

    def _change_collections(self, change: Callable[[DocumentCollections], None]) -> None:
        def work(db: Database) -> list[Collection]:
            collections = DocumentCollections(db)
            change(collections)
            return collections.entries()

        self._tasks.write(work, self.collections_changed.emit, lambda error: self.notice.emit(str(error)))

    def _change(self, document_id: int, change: Callable[[Documents], None]) -> None:
        def work(db: Database) -> Document:
            documents = Documents(db)
            with db.atomic():
                change(documents)
                return documents.get(document_id)

        self._tasks.write(work, self._update)

    def _update(self, document: Document) -> None:
        """Take a document as it is now, and tell it."""
        old = self._documents.get(document.id)
        self._documents[document.id] = document
        if old is None or (old.trashed_at_ms is None) != (document.trashed_at_ms is None):
            self.documents_changed.emit(self.documents)
        elif old != document:
            self.document_changed.emit(document)
