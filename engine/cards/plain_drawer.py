"""Draws by the engine's own sampler, in place of a card's on computers without one."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from inglenook.engine.cards.draw import Draw
from inglenook.engine.errors import ModelFileError
from inglenook.engine.sampler import sample


class PlainDrawer:
    """See `Drawer`. Takes draws without filters, as the least of cards does."""

    def takes(self, draw: Draw) -> bool:
        """Whether there is no filter."""
        return not draw.has_filters

    def draw(self, logits: torch.Tensor, draws: Sequence[Draw]) -> list[int]:
        """Sample row by row."""
        return [_sample(row, draw) for row, draw in zip(logits, draws, strict=True)]


def _sample(row: torch.Tensor, draw: Draw) -> int:
    try:
        return sample(row, draw.params, seed=draw.seed, choice=draw.choice, position=draw.position)
    except ModelFileError:
        return -1
