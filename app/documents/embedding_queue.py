"""Vectors for the passages that have none yet, a batch at a time, in the background. GUI thread only.

The engine takes each batch below the chat's requests. What is missing is asked of the database before each batch, so
nothing is lost by a crash, a deleted document or another encoder.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QObject, Signal

from inglenook.app.documents.embedder import Embedder
from inglenook.app.tasks import Tasks
from inglenook.storage.database import Database
from inglenook.storage.records import PendingVector
from inglenook.storage.vectors import Vectors

BATCH = 32


class EmbeddingQueue(QObject):
    """Fills in vectors until none is missing.

    Signals: `changed(done, total)` passages of all documents; `document_changed(id, done, total)` those of one, before
    each batch that it has a part in, and with the last when none is missing; `completed(name)`: every passage has a
    vector of the encoder of that name; `rested()`: it stopped before that, until `go_on`.
    """

    changed = Signal(int, int)
    document_changed = Signal(int, int, int)
    completed = Signal(str)
    rested = Signal()

    def __init__(self, tasks: Tasks, embedder: Embedder, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._tasks = tasks
        self._embedder = embedder
        self._is_running = False
        self._unfinished: dict[int, int] = {}

    def go_on(self) -> None:
        """Make what is missing; fine if it is being made, or if there is no encoder."""
        if not self._is_running and self._embedder.is_usable:
            self._is_running = True
            self._next()

    def _next(self) -> None:
        name = self._embedder.name

        def look(db: Database) -> tuple[list[PendingVector], int, int, dict[int, tuple[int, int]]]:
            row = db.row("SELECT count(*) FROM chunks")
            vectors = Vectors(db)
            pending = vectors.chunks_without_vectors(name, BATCH)
            parts = {id_: _progress(db, name, id_) for id_ in {vector.document_id for vector in pending}}
            return pending, vectors.count(name), int(row[0]) if row else 0, parts

        self._tasks.read(look, lambda found: self._embed(name, *found), self._rest)

    def _embed(
        self,
        name: str,
        pending: Sequence[PendingVector],
        done: int,
        total: int,
        parts: Mapping[int, tuple[int, int]],
    ) -> None:
        for document_id in self._unfinished.keys() - parts.keys():
            num_chunks = self._unfinished.pop(document_id)
            self.document_changed.emit(document_id, num_chunks, num_chunks)
        for document_id, (num_embedded, num_chunks) in parts.items():
            self._unfinished[document_id] = num_chunks
            self.document_changed.emit(document_id, num_embedded, num_chunks)
        # Passages in the trash need none.
        self.changed.emit(done, total if pending else done)
        if not pending or name != self._embedder.name:
            self._is_running = False
            if name != self._embedder.name:
                self.go_on()
            else:
                self.completed.emit(name)
            return
        self._embedder.embed(
            [vector.text for vector in pending], lambda vectors: self._save(name, pending, vectors)
        )

    def _save(self, name: str, pending: Sequence[PendingVector], vectors: NDArray[np.float32] | None) -> None:
        if vectors is None:
            self._rest()
            return
        ids = [vector.chunk_id for vector in pending]
        self._tasks.write(lambda db: Vectors(db).add(name, ids, vectors), lambda _: self._next(), self._rest)

    def _rest(self, _error: Exception | None = None) -> None:
        """Stop until `go_on` is called again: after the next document, another encoder, or the next start."""
        self._is_running = False
        self.rested.emit()


def _progress(db: Database, embedder: str, document_id: int) -> tuple[int, int]:
    """Return how many passages of a document have a vector, and how many there are."""
    row = db.row(
        "SELECT count(cv.chunk_id), count(*) FROM chunks c JOIN document_versions v ON v.id = c.version_id "
        "LEFT JOIN chunk_vectors cv ON cv.chunk_id = c.id AND cv.embedder_id = "
        "(SELECT id FROM embedders WHERE name = ?) WHERE v.document_id = ?",
        (embedder, document_id),
    )
    return (int(row[0]), int(row[1])) if row else (0, 0)
