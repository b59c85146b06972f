"""`FakeClient`: an engine client that a test plays by hand. Events are delivered by the test, on the test's own thread.

What was asked is in `loads`, `requests` and `embeddings`, oldest first; each has a handle to `deliver` to.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from inglenook.engine.errors import EngineStoppedError
from inglenook.engine.handle import Handle
from inglenook.engine.homes.messages import Notice
from inglenook.engine.request import (
    Embedded,
    Event,
    Failed,
    Finished,
    Forgotten,
    Loaded,
    LoadOptions,
    Request,
    TokenText,
)
from inglenook.engine.tokenizer.reasoning import ReasoningTags


@dataclass
class Asked:
    """One command: `what` was given, and whether it was cancelled."""

    what: Any
    handle: Handle[Any]
    slot: str = "chat"
    is_cancelled: bool = False

    def say(self, text: str, *token_ids: int) -> None:
        self.handle.deliver(TokenText(text, token_ids))

    def finish(self, reason: Any = "stop", *, prompt_tokens: int = 5, **more: Any) -> None:
        self.handle.deliver(
            Finished(
                finish_reason=reason,
                prompt_tokens=prompt_tokens,
                cached_tokens=1,
                completion_tokens=2,
                ttft_s=0.25,
                tpot_s=0.05,
                seed=7,
                **more,
            )
        )

    def fail(self, kind: str, message: str) -> None:
        self.handle.deliver(Failed(kind, message))


@dataclass
class FakeClient:
    """`answers`, when set, plays each request at once; `loads_at_once` and `embeds_at_once` the other commands."""

    answers: Callable[[Asked], None] | None = None
    loads_at_once: bool = True
    embeds_at_once: bool = True
    context_length: int = 2048
    dimension: int = 8
    reasoning: ReasoningTags | None = None
    loads: list[Asked] = field(default_factory=list)
    unloads: list[str] = field(default_factory=list)
    requests: list[Asked] = field(default_factory=list)
    embeddings: list[Asked] = field(default_factory=list)
    purposes: list[str] = field(default_factory=list)
    forgotten: list[str] = field(default_factory=list)
    idle_after_s: float | None = None
    on_death: Callable[[str], None] | None = None
    on_notice: Callable[[Notice], None] | None = None
    on_sleep: Callable[[], None] | None = None
    is_closed: bool = False
    num_ended: int = 0
    _ids: Any = field(default_factory=lambda: itertools.count(1))

    def load(
        self, path: Any, slot: str = "chat", options: LoadOptions | None = None, on_event: Any = None
    ) -> Handle[Any]:
        asked = self._asked(str(path), on_event, slot)
        self.loads.append(asked)
        if self.loads_at_once:
            self.loaded(asked)
        return asked.handle

    def loaded(self, asked: Asked) -> None:
        asked.handle.deliver(
            Loaded(
                slot=asked.slot,
                name="fake",
                architecture="fake",
                backend="fake",
                backend_reason="asked for",
                context_length=self.context_length,
                weight_bytes=1,
                kv_bytes=1,
                load_s=0.0,
                reasoning=self.reasoning,
            )
        )

    def unload(self, slot: str = "chat", on_event: Any = None) -> None:
        self.unloads.append(slot)

    def forget(self, owner: str, on_event: Any = None) -> Handle[Any]:
        self.forgotten.append(owner)
        asked = self._asked(owner, on_event, "")
        asked.handle.deliver(Forgotten(0, 0))
        return asked.handle

    def end_engine(self) -> None:
        self.num_ended += 1

    def unload_when_idle(self, after_s: float | None) -> None:
        self.idle_after_s = after_s

    def submit(self, request: Request, on_event: Any = None) -> Handle[Any]:
        asked = self._asked(request, on_event, request.slot)
        self.requests.append(asked)
        if self.answers is not None:
            self.answers(asked)
        return asked.handle

    def embed(
        self, texts: Sequence[str], slot: str = "embedder", on_event: Any = None, *, purpose: str = "plain"
    ) -> Handle[Any]:
        asked = self._asked(tuple(texts), on_event, slot)
        self.purposes.append(purpose)
        self.embeddings.append(asked)
        if self.embeds_at_once:
            self.embedded(asked)
        return asked.handle

    def embedded(self, asked: Asked) -> None:
        """Deliver vectors that are the counts of letters, so that like texts are near each other."""
        rows = np.zeros((len(asked.what), self.dimension), "<f4")
        for row, text in zip(rows, asked.what, strict=True):
            for letter in text:
                row[ord(letter) % self.dimension] += 1
            row /= max(1e-9, float(np.linalg.norm(row)))
        asked.handle.deliver(Embedded(rows.tobytes(), self.dimension, ()))

    def die(self, reason: str, *open_: Asked) -> None:
        """End the engine: tell it, and fail what is open."""
        if self.on_death is not None:
            self.on_death(reason)
        for asked in open_:
            asked.fail("EngineStoppedError", reason)

    def sleep(self) -> None:
        """Tell that all models were unloaded, since nothing was asked."""
        if self.on_sleep is not None:
            self.on_sleep()

    def close(self) -> None:
        self.is_closed = True

    def _asked(self, what: Any, on_event: Callable[[Event], None], slot: str) -> Asked:
        if self.is_closed:
            raise EngineStoppedError("This engine client is closed.")
        asked: Asked

        def cancel(_id: int) -> None:
            asked.is_cancelled = True

        asked = Asked(what, Handle(next(self._ids), cancel, on_event), slot)
        return asked
