"""`Draw`: how a row's token is to be chosen, where nothing else of its logits is wanted, so that a card may choose it.

Penalties, biases and log-probabilities need the row on the host. What a card chooses is what `sampler.py` would.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import torch

from inglenook.engine.request import SamplingParams


@dataclass(frozen=True, slots=True)
class Draw:
    """The key of one draw: see `sampler.sample`."""

    params: SamplingParams
    seed: int
    choice: int
    position: int

    @property
    def has_filters(self) -> bool:
        """Whether top-k, top-p or min-p is on; greedy draws have none, since their best token passes all."""
        params = self.params
        is_on = bool(params.top_k) or params.top_p < 1.0 or params.min_p > 0.0
        return is_on and params.temperature >= 1e-5


class Drawer(Protocol):
    """Chooses tokens where the logits lie."""

    def takes(self, draw: Draw) -> bool:
        """Whether it chooses so, and not slower than the host."""

    def draw(self, logits: torch.Tensor, draws: Sequence[Draw]) -> list[int]:
        """Choose a token of each row of logits [R, V]; -1 where they are not numbers."""
