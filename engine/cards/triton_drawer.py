"""Draws on an NVIDIA card: the logits stay there, and 8 bytes a row come back.

Rows with filters take some forty passes in float64 by one program; cards for games do float64 at a 64th of their speed,
where the host is faster. So filters are taken by cards for computing only.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from inglenook.engine.cards.draw import Draw
from inglenook.kernels import sampling_triton
from inglenook.kernels.gumbel import noise_base

# compute capabilities with float64 at half of float32's speed: A100, H100 and H200, B200
FAST_FLOAT64 = ((8, 0), (9, 0), (10, 0))
_NUMBERS = 5  # base, temperature, top-p, min-p, top-k


class TritonDrawer:
    """See `Drawer`. Used from one thread at a time, one step after another."""

    def __init__(self, device: torch.device, *, takes_filters: bool) -> None:
        self._device = device
        self._takes_filters = takes_filters
        self._capacity = 0
        self._size = 0

    def takes(self, draw: Draw) -> bool:
        """Whether this card is fast at it."""
        return self._takes_filters or not draw.has_filters

    def draw(self, logits: torch.Tensor, draws: Sequence[Draw]) -> list[int]:
        """Choose a token of each row; waits for the card, once."""
        rows = len(draws)
        self._reserve(rows, logits.shape[1])
        for row, draw in enumerate(draws):
            params = draw.params
            self._wide[0, row] = noise_base(draw.seed, draw.choice, draw.position)
            self._real[1, row], self._real[2, row] = params.temperature, params.top_p
            self._real[3, row] = params.min_p
            self._wide[4, row] = min(params.top_k, 2**31 - 1)
        numbers = self._wide.to(self._device, non_blocking=True)
        bases, temperatures = numbers[0, :rows], numbers[1, :rows].view(torch.float64)
        out = self._out[:rows]
        if any(draw.has_filters for draw in draws):
            top_ps, min_ps = (numbers[i, :rows].view(torch.float64) for i in (2, 3))
            top_ks = numbers[4, :rows].int()
            sampling_triton.sample_rows(logits, bases, temperatures, top_ks, top_ps, min_ps, out)
        else:
            sampling_triton.draw_rows(logits, bases, temperatures, out, self._scores, self._ids)
        return [int(token) for token in out.tolist()]

    def _reserve(self, rows: int, size: int) -> None:
        """Make room for some more rows than asked, so that it is seldom made again."""
        if rows <= self._capacity and size == self._size:
            return
        capacity = max(64, 1 << (rows - 1).bit_length())
        is_card = self._device.type == "cuda"
        self._wide = torch.zeros((_NUMBERS, capacity), dtype=torch.int64, pin_memory=is_card)
        self._real = self._wide.view(torch.float64)
        self._out = torch.empty(capacity, dtype=torch.int64, device=self._device)
        parts = capacity * sampling_triton.draw_parts(size)
        self._scores = torch.empty(parts, dtype=torch.float64, device=self._device)
        self._ids = torch.empty(parts, dtype=torch.int32, device=self._device)
        self._capacity, self._size = capacity, size
