"""`LoraAdapter`: what a low-rank adapter adds to a decoder's products, and `Worn`: which rows of a step wear which one.

Hu et al., "LoRA", 2021: an adapted product is W x + s B (A x). The adapter is never added into the weights, so every
request of a step may wear another one, and those without one are computed as if there were none. Float32.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch


@dataclass(frozen=True, slots=True)
class LoraPart:
    """A pair of matrices for the outputs from `first` on: down float32 [r, K], up float32 [N, r] with the scale in it."""

    first: int
    down: torch.Tensor
    up: torch.Tensor


@dataclass(frozen=True, slots=True, eq=False)
class LoraAdapter:
    """An adapter of one model. `content_hash` is 64 hexadecimal digits; the same files give the same.

    parts: by the decoder's products, "layers.3.qkv" say ("qkv", "o", "gate_up", "down", "router"; of an expert with
    its number, "gate_up.5").
    """

    name: str
    content_hash: str
    parts: Mapping[str, tuple[LoraPart, ...]]

    @property
    def size_bytes(self) -> int:
        """Bytes of all its matrices."""
        return sum(p.down.nbytes + p.up.nbytes for parts in self.parts.values() for p in parts)


@dataclass(frozen=True, slots=True)
class Worn:
    """The adapters of a step; numbers: int64 [T], the index in `adapters` of each row's, -1 without one."""

    adapters: tuple[LoraAdapter, ...]
    numbers: torch.Tensor

    def at(self, rows: torch.Tensor) -> Worn:
        """The same for some of the rows."""
        return Worn(self.adapters, self.numbers[rows])

    def add(self, product: str, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        """Add to a product's results y, float32 [T, N], what its inputs x, float32 [T, K], bring; returns y, changed."""
        for number, adapter in enumerate(self.adapters):
            parts = adapter.parts.get(product)
            if parts is None:
                continue
            rows = torch.where(self.numbers == number)[0]
            inputs = x[rows]
            for part in parts:
                added = torch.nn.functional.linear(torch.nn.functional.linear(inputs, part.down), part.up)
                y[rows, part.first : part.first + part.up.shape[0]] += added
        return y
