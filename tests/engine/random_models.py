"""Models with random weights: a source of any spec and format, and steps to run on them. Needs torch and NumPy only."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from random_weights import random_weight

from inglenook.engine.batch import Batch, GroupTables
from inglenook.engine.kv_cache import BLOCK_SIZE, num_blocks_for
from inglenook.engine.models.spec import ModelSpec, RopeSpec
from inglenook.engine.weights.names import tensor_shapes
from inglenook.kernels.weight_tensor import FORMATS, WeightTensor


class RandomModel:
    """A `WeightSource`. Matrices of one format and shape are one tensor, so that large models are made in no time."""

    def __init__(self, spec: ModelSpec, format_of: Callable[[str], str]) -> None:
        self.spec = spec
        self._shapes = tensor_shapes(spec)
        self._format_of = format_of
        self._made: dict[tuple[str, tuple[int, ...], str], WeightTensor] = {}

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._shapes)

    @property
    def size_bytes(self) -> int:
        return sum(self.tensor(name).size_bytes for name in self._shapes)

    def tensor(self, name: str) -> WeightTensor:
        shape = self._shapes[name]
        form = self._format_of(name) if len(shape) == 2 else "F32"
        part = name.rpartition(".")[2] if len(shape) == 1 else ""
        key = (form, shape, part)
        if key not in self._made:
            self._made[key] = self._make(form, shape, part)
        return self._made[key]

    def _make(self, form: str, shape: tuple[int, ...], part: str) -> WeightTensor:
        seed = sum(shape) + len(part)
        if len(shape) == 2:
            return random_weight(form, rows=shape[0], columns=shape[1], seed=seed, std=shape[1] ** -0.5)
        values = np.random.default_rng(seed).standard_normal(shape[0]).astype(np.float32) * 0.1
        if part.endswith("norm"):
            values += 1
        return WeightTensor(FORMATS["F32"], shape, values.view(np.uint8).reshape(1, -1))

    def close(self) -> None:
        """Nothing is open."""


def small_spec(**changes: object) -> ModelSpec:
    """A model of three layers that takes no time."""
    fields: dict[str, object] = {
        "architecture": "llama", "vocab_size": 90, "hidden_size": 64, "num_layers": 3, "num_heads": 4,
        "num_kv_heads": 2, "head_size": 16, "intermediate_size": 96, "context_length": 200, "norm_eps": 1e-5,
        "rope": RopeSpec(theta=10000.0, size=16), "tied_head": True,
    }  # fmt: skip
    return ModelSpec(**(fields | changes))  # type: ignore[arg-type]


class Steps:
    """Sequences that lie in shuffled blocks, and batches of their next tokens.

    wants_all: logits of every row instead of the last of each sequence.
    """

    def __init__(self, spec: ModelSpec, num_groups: int, sequences: int, *, seed: int = 0) -> None:
        generator = torch.Generator().manual_seed(seed)
        self.width = num_blocks_for(spec.context_length)
        self.num_blocks = sequences * self.width
        blocks = torch.randperm(self.num_blocks, generator=generator).to(torch.int32)
        self.tables = blocks.view(sequences, self.width)
        # the same tokens for a sequence's number, however many others there are
        self.ids = torch.stack(
            [
                torch.randint(
                    0, spec.vocab_size, (spec.context_length,), generator=generator.manual_seed(seed + s)
                )
                for s in range(sequences)
            ]
        )
        self.lengths = [0] * sequences
        self._num_groups = num_groups

    def batch(self, counts: dict[int, int], *, wants_all: bool = False) -> Batch:
        """The next `counts[s]` tokens of sequences s, in the order given."""
        ids, positions, starts, lengths, rows, slots = [], [], [0], [], [], []
        width = max(num_blocks_for(self.lengths[s] + count) for s, count in counts.items())
        for s, count in counts.items():
            first = self.lengths[s]
            self.lengths[s] += count
            place = torch.arange(first, first + count)
            ids.append(self.ids[s, first : first + count])
            positions.append(place)
            slots.append(self.tables[s].long()[place // BLOCK_SIZE] * BLOCK_SIZE + place % BLOCK_SIZE)
            starts.append(starts[-1] + count)
            lengths.append(first + count)
            rows += range(starts[-2] if wants_all else starts[-1] - 1, starts[-1])
        table = self.tables[list(counts), :width].contiguous()
        return Batch(
            torch.cat(ids),
            torch.cat(positions),
            torch.tensor(starts, dtype=torch.int32),
            torch.tensor(lengths, dtype=torch.int32),
            torch.tensor(rows, dtype=torch.int64),
            (GroupTables(table, torch.cat(slots)),) * self._num_groups,
        )
