"""Vectors for the passages that have none yet, a batch at a time, in the background. GUI thread only.

The engine takes each batch below the chat's requests. What is missing is asked of the database before each batch, so
nothing is lost by a crash, a deleted document or another encoder.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QObject, Signal

from inglenook.app.embedder import Embedder
from inglenook.app.tasks import Tasks
from inglenook.storage.database import Database
from inglenook.storage.records import PendingVector
from inglenook.storage.vectors import Vectors

BATCH = 32


class EmbeddingQueue(QObject):
    """Fills in vectors until none is missing. Signals: `changed(done, total)` passages."""

    changed = Signal(int, int)

    def __init__(self, tasks: Tasks, embedder: Embedder, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._tasks = tasks
        self._embedder = embedder
        self._is_running = False

    def go_on(self) -> None:
        """Make what is missing; fine if it is being made, or if there is no encoder."""
        if not self._is_running and self._embedder.is_usable:
            self._is_running = True
            self._next()

    def _next(self) -> None:
        name = self._embedder.name

        def look(db: Database) -> tuple[list[PendingVector], int, int]:
            row = db.row("SELECT count(*) FROM chunks")
            vectors = Vectors(db)
            return vectors.chunks_without_vectors(name, BATCH), vectors.count(name), int(row[0]) if row else 0

        self._tasks.read(look, lambda found: self._embed(name, *found), self._rest)

    def _embed(self, name: str, pending: Sequence[PendingVector], done: int, total: int) -> None:
        # Passages in the trash need none.
        self.changed.emit(done, total if pending else done)
        if not pending or name != self._embedder.name:
            self._is_running = False
            if name != self._embedder.name:
                self.go_on()
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
