"""`OpenTurn`: one turn between its question and its end, as answering.py carries it along. GUI thread only."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from inglenook.app.answers import citations
from inglenook.app.answers.prompts import Prompt
from inglenook.app.answers.retrieval import Evidence
from inglenook.app.answers.sentence_checks import SentenceChecks, is_baseless_answer, sentence_checks
from inglenook.app.answers.turns import Ending, Turn, end_turn
from inglenook.app.text.reasoning import part_reply
from inglenook.engine.request import Finished, SamplingParams
from inglenook.storage.database import Database
from inglenook.storage.messages import Messages
from inglenook.storage.records import NewSource, ReplyFigures

MAX_NEAREST = 3
"""How many passages a refusal, or an answer from whole documents, shows as the nearest."""
UNSUPPORTED = "Nothing in this answer was found in the ticked documents. Check it against their pages."


@dataclass(frozen=True, slots=True)
class ReplyOptions:
    """How replies are written: sampling, and what the model is told before every conversation ("" for nothing).

    `overflow` is the engine's policy for a conversation that is too long; `facts` is what else is kept with the reply,
    for instance the persona's name.
    """

    sampling: SamplingParams = field(default_factory=SamplingParams)
    system: str = ""
    overflow: Literal["refuse", "drop_oldest"] = "drop_oldest"
    facts: Mapping[str, Any] = field(default_factory=dict)

    def kept(self) -> dict[str, Any]:
        """Return what a reply keeps of how it was written."""
        return asdict(self.sampling) | {"system": self.system} | dict(self.facts)


@dataclass(slots=True, eq=False)
class OpenTurn:
    """A turn that goes on: what it was asked with, what has come of it, and how far it is."""

    saved: Turn
    document_ids: tuple[int, ...]
    options: ReplyOptions
    may_refuse: bool = True
    begun: str = ""
    begun_token_ids: tuple[int, ...] = ()
    evidence: Evidence = field(default_factory=Evidence)
    checks: SentenceChecks | None = None
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

    def settle_sources(self, sources: Sequence[NewSource]) -> list[NewSource]:
        """Return the cited sources, and of the others the passages that the model was given.

        Where it was given whole documents, or nothing, the nearest passages stand for them. When the model answered
        and nothing that it said was found in the documents, a notice says so.
        """
        passages = self.prompt.passages if self.prompt is not None else ()
        if self.evidence.is_refusal or (self.evidence.whole and not passages):
            passages = self.evidence.candidates[:MAX_NEAREST]
        ids = {hit.chunk.id for hit in passages}
        settled = [source for source in sources if source.is_cited or source.chunk_id in ids]
        reply = "".join(self.pieces)
        if self.prompt is not None and self.evidence.candidates and reply.strip():
            answer = part_reply(reply, end_tag=self.saved.reply.reasoning_end)
            checks = [c for c in sentence_checks(reply, sources) if answer.answer_range(c.start, c.end)]
            if is_baseless_answer(checks, self.saved.question.text):
                self.notices.append(UNSUPPORTED)
        return settled

    def ender(self, ending: Ending) -> Callable[[Database], None]:
        """Return what attaches the sources and saves the end at once, for the end of the program."""

        def end(db: Database) -> None:
            sources = citations.attach(ending.text, self.evidence.candidates, self.saved.question.text)
            end_turn(db, self.reply_id, ending, self.settle_sources(sources))

        return end


def figures_of(event: Finished) -> ReplyFigures:
    """Return what is kept of the engine's last event."""
    return ReplyFigures(
        prompt_tokens=event.prompt_tokens,
        cached_tokens=event.cached_tokens,
        ttft_s=event.ttft_s,
        tpot_s=event.tpot_s,
        seed=event.seed,
    )
