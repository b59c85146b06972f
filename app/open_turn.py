"""`OpenTurn`: one turn between its question and its end, as answering.py carries it along. GUI thread only."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from inglenook.app.prompts import Prompt
from inglenook.app.retrieval import Evidence
from inglenook.app.turns import Ending, Turn
from inglenook.engine.request import SamplingParams
from inglenook.storage.database import Database
from inglenook.storage.messages import Messages
from inglenook.storage.records import NewSource


@dataclass(frozen=True, slots=True)
class ReplyOptions:
    """How replies are written: sampling, and what the model is told before every conversation ("" for nothing)."""

    sampling: SamplingParams = field(default_factory=SamplingParams)
    system: str = ""


@dataclass(slots=True, eq=False)
class OpenTurn:
    """A turn that goes on: what it was asked with, what has come of it, and how far it is."""

    saved: Turn
    document_ids: tuple[int, ...]
    options: ReplyOptions
    evidence: Evidence = field(default_factory=Evidence)
    prompt: Prompt | None = None
    request_id: int | None = None
    num_attempts: int = 0
    pieces: list[str] = field(default_factory=list)
    token_ids: list[int] = field(default_factory=list)
    notices: list[str] = field(default_factory=list)
    is_saved: bool = True
    is_waiting: bool = False
    has_restarted: bool = False
    is_stopping: bool = False
    is_ending: bool = False
    is_ended: bool = False

    @property
    def reply_id(self) -> int:
        """The id of the reply's message."""
        return self.saved.reply.id

    def ending(self, finish_reason: str, error: str = "") -> Ending:
        """Return the reply as it is now, ended for this reason."""
        return Ending("".join(self.pieces), tuple(self.token_ids), finish_reason, error)

    def saver(self) -> Callable[[Database], None]:
        """Return what saves the text as it is now."""
        reply_id, text, token_ids = self.reply_id, "".join(self.pieces), tuple(self.token_ids)
        return lambda db: Messages(db).save_reply(reply_id, text, token_ids)

    def given(self, sources: Sequence[NewSource]) -> list[NewSource]:
        """Return the cited sources, and of the others those that the model was given."""
        passages = self.prompt.passages if self.prompt is not None else ()
        ids = {hit.chunk.id for hit in passages}
        return [source for source in sources if source.is_cited or source.chunk_id in ids]
