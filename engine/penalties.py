"""Changes to the logits that depend on what was said before: repetition, presence and frequency, and fixed biases.

    repetition   s > 0: s / r, else s * r, for every token of the prompt and reply (Keskar et al., "CTRL", 2019)
    frequency    s - f * count of the token in the reply
    presence     s - p if the token is in the reply
    bias         s + bias of the token

in this order, on float32 logits before the temperature.
"""

from __future__ import annotations

import functools
from collections import Counter

import numpy as np
import numpy.typing as npt

from inglenook.engine.request import SamplingParams

Logits = npt.NDArray[np.float32]
Ids = npt.NDArray[np.int64]


class TokenCounts:
    """Which tokens a prompt holds and how often a reply has used each; the prompt is looked at when first asked for."""

    def __init__(self, prompt_token_ids: list[int]) -> None:
        self.reply: Counter[int] = Counter()
        self._prompt = prompt_token_ids
        self._num_prompt = len(prompt_token_ids)  # the list goes on to grow by the reply

    def add(self, token_id: int) -> None:
        """Count a token of the reply."""
        self.reply[token_id] += 1

    def seen(self) -> Ids:
        """Return the ids of prompt and reply, each once, in no order."""
        new = [token_id for token_id in self.reply if token_id not in self._in_prompt]
        return np.concatenate([self._prompt_ids, np.array(new, dtype=np.int64)])

    @functools.cached_property
    def _in_prompt(self) -> frozenset[int]:
        return frozenset(self._prompt[: self._num_prompt])

    @functools.cached_property
    def _prompt_ids(self) -> Ids:
        return np.fromiter(self._in_prompt, np.int64)


def penalised(logits: Logits, params: SamplingParams, counts: TokenCounts) -> Logits:
    """Return the logits [V] after penalties and biases: a new array, or the same one when there are none."""
    if not params.changes_logits:
        return logits
    logits = logits.copy()
    if params.repetition_penalty != 1.0:
        seen, r = counts.seen(), np.float32(params.repetition_penalty)
        scores = logits[seen]
        with np.errstate(over="ignore"):  # by a penalty near 0; the largest float stands for it
            changed = np.where(scores > 0, scores / r, scores * r)
        logits[seen] = np.minimum(changed, np.finfo(np.float32).max)
    if counts.reply and (params.frequency_penalty or params.presence_penalty):
        used = np.fromiter(counts.reply, np.int64)
        times = np.fromiter(counts.reply.values(), np.float32)
        logits[used] -= np.float32(params.frequency_penalty) * times + np.float32(params.presence_penalty)
    if params.logit_bias:
        biased = np.fromiter(params.logit_bias, np.int64)
        logits[biased] += np.fromiter(params.logit_bias.values(), np.float32)
    return logits
