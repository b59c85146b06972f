"""`Generation`: one completion in the making, from its sequence's prompt to its last token.

It chooses tokens from logits, turns them into pieces of text (byte-exact, stop strings held back), and knows when the
completion ends. It does not know models, schedulers or blocks beyond its own `Sequence`.
"""

from __future__ import annotations

import time

import numpy as np
import numpy.typing as npt

from inglenook.engine.cards.draw import Draw
from inglenook.engine.logprobs import token_logprob
from inglenook.engine.penalties import TokenCounts, penalised
from inglenook.engine.repetition import RepetitionWatch
from inglenook.engine.request import FinishReason, SamplingParams, TokenLogprob, TokenText
from inglenook.engine.sampler import not_numbers, sample
from inglenook.engine.sequence import Sequence
from inglenook.engine.speculative.prompt_lookup import Cost, PromptLookup
from inglenook.engine.stopping import StopStrings
from inglenook.engine.tokenizer.detokenizer import Detokenizer


class Generation:
    """State of one completion. Used on the engine thread only.

    `finish_reason` is set by the token that ends it, or by whoever ends it early. `lookup` guesses tokens, or is
    None where speculation is off.
    """

    def __init__(
        self,
        sequence: Sequence,
        params: SamplingParams,
        *,
        seed: int,
        max_tokens: int,
        stop_token_ids: frozenset[int],
        detokenizer: Detokenizer,
        lookup: PromptLookup | None,
    ) -> None:
        self.sequence = sequence
        self.params = params
        self.max_tokens = max_tokens
        self.completion_tokens = 0
        self.finish_reason: FinishReason | None = None
        self.lookup = lookup
        self._seed = seed
        self._stop_token_ids = stop_token_ids
        self._detokenizer = detokenizer
        self._stops = StopStrings(params.stop)
        watches = params.stop_repetition and not params.ignore_eos
        self._watch = RepetitionWatch() if watches else None
        self._counts = TokenCounts(sequence.token_ids)
        self._unsent_ids: list[int] = []
        self._unsent_logprobs: list[TokenLogprob] = []

    def draft(self, cost: Cost) -> None:
        """Guess the next tokens for the coming step, never beyond the reply's end."""
        if self.lookup is not None:
            room = self.max_tokens - self.completion_tokens - 1
            self.sequence.drafts = self.lookup.propose(self.sequence.token_ids, cost)[: max(0, room)]

    def next_draw(self, ahead: int = 0) -> Draw | None:
        """How the next token is drawn, or the one `ahead` of it; None where more is wanted of its logits."""
        if self.params.changes_logits or self.params.logprobs is not None:
            return None
        position = len(self.sequence.token_ids) + ahead
        return Draw(self.params, self._seed, self.sequence.choice, position)

    def take(self, logits: npt.NDArray[np.float32] | int) -> tuple[int, TokenText | None]:
        """Choose the next token from its logits, float32 [V], or take the one that was drawn from them elsewhere.

        Returns it and the text that may be shown now.

        Raises:
            ModelFileError: the logits are not numbers.
        """
        token_id = logits if isinstance(logits, int) else self._sample(logits)
        if token_id < 0:
            raise not_numbers()
        self.sequence.token_ids.append(token_id)
        self.completion_tokens += 1
        self._counts.add(token_id)
        if token_id in self._stop_token_ids:
            self.finish_reason = "stop"
            return token_id, self.flush()
        self._unsent_ids.append(token_id)
        if self.params.logprobs is not None and not isinstance(logits, int):
            self._unsent_logprobs.append(token_logprob(logits, token_id, self.params.logprobs))
        text, stopped = self._stops.feed(self._detokenizer.feed(token_id))
        if stopped:
            self.finish_reason = "stop"
            return token_id, self._piece(text)
        if self.completion_tokens == self.max_tokens:
            self.finish_reason = "length"
            return token_id, self._piece(text + self._held_back())
        if self._watch is not None and self._watch.feed(token_id):
            self.finish_reason = "repetition"
            return token_id, self._piece(text + self._held_back())
        return token_id, (self._piece(text) if text else None)

    def _sample(self, logits: npt.NDArray[np.float32]) -> int:
        return sample(
            penalised(logits, self.params, self._counts),
            self.params,
            seed=self._seed,
            choice=self.sequence.choice,
            position=len(self.sequence.token_ids),
        )

    def flush(self) -> TokenText | None:
        """Give out what was held back: at the end, or when the request is cancelled."""
        text = self._held_back()
        return self._piece(text) if text or self._unsent_ids else None

    def _held_back(self) -> str:
        text, stopped = self._stops.feed(self._detokenizer.flush())
        return text if stopped else text + self._stops.flush()

    def _piece(self, text: str) -> TokenText:
        ids, self._unsent_ids = tuple(self._unsent_ids), []
        logprobs, self._unsent_logprobs = tuple(self._unsent_logprobs), []
        return TokenText(text, ids, self.sequence.choice, logprobs, time.monotonic())
