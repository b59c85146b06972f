"""`TurnEnding`: the sources of a reply are found and saved with its end, in one transaction. GUI thread only."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from inglenook.app.answers import citations
from inglenook.app.answers.open_turn import OpenTurn
from inglenook.app.answers.turns import Answer, Ending, end_turn
from inglenook.app.tasks import Tasks
from inglenook.storage.errors import NotFoundError
from inglenook.storage.records import NewSource


class TurnEnding:
    """Ends turns in the database."""

    def __init__(self, tasks: Tasks) -> None:
        self._tasks = tasks

    def end(self, turn: OpenTurn, ending: Ending, on_ended: Callable[[Answer | None], object]) -> None:
        """Attach the sources and save; `on_ended` is given the reply as it is shown, None where it is gone meanwhile."""
        candidates = turn.evidence.candidates
        if turn.evidence.is_refusal or not candidates or not ending.text.strip():
            nearest = [citations.as_source(hit) for hit in candidates if turn.evidence.is_refusal]
            self._write(turn, ending, turn.settle_sources(nearest), on_ended)
            return
        # Overlap with many passages takes long enough to be felt in the window.
        self._tasks.work(
            "citations",
            lambda _task: citations.attach(ending.text, candidates, turn.saved.question.text),
            lambda sources: self._write(turn, ending, turn.settle_sources(sources), on_ended),
            lambda _error: self._write(turn, ending, [], on_ended),
        )

    def _write(
        self,
        turn: OpenTurn,
        ending: Ending,
        sources: Sequence[NewSource],
        on_ended: Callable[[Answer | None], object],
    ) -> None:
        def ended(answer: Answer) -> None:
            on_ended(replace(answer, notices=tuple(dict.fromkeys(turn.notices))))

        def failed(error: Exception) -> None:
            if isinstance(error, NotFoundError):
                on_ended(None)
                return
            reply = replace(
                turn.saved.reply,
                text=ending.text,
                status="failed",
                finish_reason="error",
                error=str(error),
            )
            on_ended(Answer(reply, (), tuple(turn.notices)))

        turn.is_ended = True
        self._tasks.write(lambda db: end_turn(db, turn.reply_id, ending, sources), ended, failed)
