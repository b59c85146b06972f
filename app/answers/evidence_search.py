"""`EvidenceSearch`: the question's vector, then what the documents hold for it, found on the reader's thread.

GUI thread only; answers come by callback.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from inglenook.app.answers.open_turn import OpenTurn
from inglenook.app.answers.retrieval import Evidence, gather
from inglenook.app.documents.embedder import Embedder
from inglenook.app.tasks import Tasks
from inglenook.storage.database import Database
from inglenook.storage.search import Search

_QUESTION_VECTOR_S = 3.0


class EvidenceSearch:
    """Searches the ticked documents of turns."""

    def __init__(self, tasks: Tasks, embedder: Embedder) -> None:
        self._tasks = tasks
        self._embedder = embedder
        # Made and used on the reader's thread alone; kept, since it holds vectors in memory.
        self._search: Search | None = None

    def find(
        self,
        turn: OpenTurn,
        whole_bytes: Callable[[], int],
        on_found: Callable[[Evidence], object],
        on_error: Callable[[Exception], object],
    ) -> None:
        """Find what to answer a turn from; documents go in whole up to `whole_bytes`, asked when the vector is there.

        Nothing is called for a turn that was stopped meanwhile.
        """
        name = self._embedder.name

        def gather_with(vectors: NDArray[np.float32] | None) -> None:
            if not turn.is_stopping and not turn.is_ending:
                room = whole_bytes()
                self._tasks.read(lambda db: self._gather(db, turn, room, vectors, name), on_found, on_error)

        self._embedder.embed(
            [turn.saved.question.text], gather_with, purpose="query", timeout_s=_QUESTION_VECTOR_S
        )

    def _gather(
        self,
        db: Database,
        turn: OpenTurn,
        whole_bytes: int,
        vectors: NDArray[np.float32] | None,
        embedder: str,
    ) -> Evidence:
        if self._search is None:
            self._search = Search(db)
        previous = [message.text for message in turn.saved.history if message.role == "user"]
        return gather(
            db,
            self._search,
            turn.saved.question.text,
            turn.document_ids,
            whole_bytes=whole_bytes,
            previous_question=previous[-1] if previous else "",
            vector=None if vectors is None else vectors[0],
            embedder=embedder,
            may_refuse=turn.may_refuse,
        )
