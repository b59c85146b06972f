"""Changes to the logits that depend on what was said before: repetition, presence and frequency, and fixed biases.

    repetition   s > 0: s / r, else s * r, for every token of the prompt and reply (Keskar et al., "CTRL", 2019)
    frequency    s - f * count of the token in the reply
    presence     s - p if the token is in the reply
    bias         s + bias of the token

in this order, on float32 logits before the temperature.
"""

from __future__ import annotations

from collections import Counter

import torch

from inglenook.engine.request import SamplingParams


class TokenCounts:
    """Which tokens a prompt holds and how often a reply has used each."""

    def __init__(self, prompt_token_ids: list[int]) -> None:
        self.prompt = frozenset(prompt_token_ids)
        self.reply: Counter[int] = Counter()

    def add(self, token_id: int) -> None:
        """Count a token of the reply."""
        self.reply[token_id] += 1


def penalised(logits: torch.Tensor, params: SamplingParams, counts: TokenCounts) -> torch.Tensor:
    """Return the logits [V] after penalties and biases: a new tensor, or the same one when there are none."""
    if not params.changes_logits:
        return logits
    logits = logits.clone()
    if params.repetition_penalty != 1.0:
        seen = torch.tensor(sorted(counts.prompt | counts.reply.keys()), dtype=torch.int64)
        scores = logits[seen]
        logits[seen] = torch.where(
            scores > 0, scores / params.repetition_penalty, scores * params.repetition_penalty
        )
    if counts.reply and (params.frequency_penalty or params.presence_penalty):
        used = torch.tensor(list(counts.reply), dtype=torch.int64)
        times = torch.tensor(list(counts.reply.values()), dtype=torch.float32)
        logits[used] -= params.frequency_penalty * times + params.presence_penalty
    for token_id, bias in params.logit_bias.items():
        logits[token_id] += bias
    return logits
