"""`Completion`: one request's generations (one a choice), its times, and the `Finished` that sums it up."""

from __future__ import annotations

import time
from collections.abc import Callable

from inglenook.engine.generation import Generation
from inglenook.engine.metrics import Phases
from inglenook.engine.request import Finished


class Completion:
    """One request at work. `generate` makes the generation of a choice from the prompt.

    `submitted` is the request's `time.perf_counter()`.
    """

    def __init__(
        self,
        request_id: int,
        generate: Callable[[int], Generation],
        *,
        num_choices: int,
        seed: int,
        submitted: float,
        notices: tuple[str, ...],
        left_out: tuple[int, ...],
    ) -> None:
        self.id = request_id
        self.choices = [generate(0)]
        self._generate = generate
        self._num_choices = num_choices
        self._seed = seed
        self._submitted = submitted
        self._notices = notices
        self._left_out = left_out
        self._began: float | None = None
        self._first: float | None = None
        self._last = submitted

    @property
    def is_finished(self) -> bool:
        """Whether every choice has ended."""
        return len(self.choices) == self._num_choices and all(
            g.finish_reason is not None for g in self.choices
        )

    @property
    def has_all_choices(self) -> bool:
        """Whether `add_choices` has nothing left to make."""
        return len(self.choices) == self._num_choices

    def phases(self) -> Phases:
        """Return how long it has waited, been prefilled and decoded until now."""
        began, first = self._began, self._first
        return Phases(
            latency_s=time.perf_counter() - self._submitted,
            queue_s=None if began is None else began - self._submitted,
            prefill_s=None if began is None or first is None else first - began,
            decode_s=None if first is None else self._last - first,
            longest_reply=max(g.completion_tokens for g in self.choices),
        )

    def note_begin(self, now: float) -> None:
        """Note that it is computed for the first time, or again; `now` is a `time.perf_counter()`."""
        if self._began is None:
            self._began = now

    def add_notice(self, sentence: str) -> None:
        """Add a sentence for the user to the end."""
        self._notices = (*self._notices, sentence)

    def add_choices(self) -> list[Generation]:
        """Make the other choices, once the prompt is computed; empty after the first time."""
        new = [self._generate(choice) for choice in range(len(self.choices), self._num_choices)]
        self.choices += new
        return new

    def count_token(self) -> None:
        """Note the time of a token."""
        self._last = time.perf_counter()
        if self._first is None:
            self._first = self._last

    def finished(self) -> Finished:
        """Sum the request up; choices that have not ended count as cancelled."""
        first = self.choices[0]
        reasons = tuple(g.finish_reason or "cancelled" for g in self.choices)
        lookups = [g.lookup for g in self.choices if g.lookup is not None]
        later = max(g.completion_tokens for g in self.choices) - 1
        return Finished(
            finish_reason=reasons[0],
            prompt_tokens=first.sequence.num_prompt_tokens,
            cached_tokens=first.sequence.cached_tokens or 0,
            completion_tokens=sum(g.completion_tokens for g in self.choices),
            ttft_s=None if self._first is None else self._first - self._submitted,
            tpot_s=None if self._first is None or later < 1 else (self._last - self._first) / later,
            seed=self._seed,
            finish_reasons=reasons,
            drafted_tokens=sum(lookup.num_drafted for lookup in lookups),
            accepted_tokens=sum(lookup.num_accepted for lookup in lookups),
            left_out=self._left_out,
            notices=self._notices,
        )
