"""`Generation`: one request on its way through the engine, from its token ids to its `Finished`.

It turns chosen token ids into pieces of text (byte-exact, stop strings held back), knows when the completion ends,
and keeps the times. It does not know models, schedulers or blocks beyond its own `Sequence`.
"""

from __future__ import annotations

import time

from inglenook.engine.request import Finished, FinishReason, SamplingParams, TokenText
from inglenook.engine.sequence import Sequence
from inglenook.engine.stopping import StopStrings
from inglenook.engine.tokenizer.detokenizer import Detokenizer


class Generation:
    """State of one completion. Used on the engine thread only."""

    def __init__(
        self,
        sequence: Sequence,
        params: SamplingParams,
        *,
        seed: int,
        max_tokens: int,
        stop_token_ids: frozenset[int],
        detokenizer: Detokenizer,
        submitted: float,
        notices: tuple[str, ...] = (),
    ) -> None:
        self.sequence = sequence
        self.params = params
        self.seed = seed
        self.max_tokens = max_tokens
        self.completion_tokens = 0
        self._stop_token_ids = stop_token_ids
        self._detokenizer = detokenizer
        self._stops = StopStrings(params.stop)
        self._submitted = submitted
        self._notices = notices
        self._first: float | None = None
        self._last = submitted
        self._unsent_ids: list[int] = []

    def accept(self, token_id: int) -> tuple[TokenText | None, FinishReason | None]:
        """Take the next chosen token; returns the text that may be shown now, and whether this is the end."""
        self._last = time.perf_counter()
        if self._first is None:
            self._first = self._last
        self.sequence.token_ids.append(token_id)
        self.completion_tokens += 1
        if token_id in self._stop_token_ids:
            return self.flush(), "stop"
        self._unsent_ids.append(token_id)
        text, stopped = self._stops.feed(self._detokenizer.feed(token_id))
        if stopped:
            return self._piece(text), "stop"
        if self.completion_tokens == self.max_tokens:
            return self._piece(text + self._held_back()), "length"
        return (self._piece(text) if text else None), None

    def flush(self) -> TokenText | None:
        """Give out what was held back: at the end, or when the request is cancelled."""
        text = self._held_back()
        return self._piece(text) if text or self._unsent_ids else None

    def finished(self, reason: FinishReason) -> Finished:
        """Sum the completion up."""
        later = self.completion_tokens - 1
        return Finished(
            finish_reason=reason,
            prompt_tokens=self.sequence.num_prompt_tokens,
            cached_tokens=self.sequence.cached_tokens or 0,
            completion_tokens=self.completion_tokens,
            ttft_s=None if self._first is None else self._first - self._submitted,
            tpot_s=None if self._first is None or later < 1 else (self._last - self._first) / later,
            seed=self.seed,
            notices=self._notices,
        )

    def _held_back(self) -> str:
        text, stopped = self._stops.feed(self._detokenizer.flush())
        return text if stopped else text + self._stops.flush()

    def _piece(self, text: str) -> TokenText:
        ids, self._unsent_ids = tuple(self._unsent_ids), []
        return TokenText(text, ids)
