"""`Sequence`: one sequence on a bare back end model, its blocks in a row, for the model doctor's runs."""

from __future__ import annotations

import torch

from inglenook.engine.backend import BackendModel
from inglenook.engine.batch import Batch, GroupTables
from inglenook.engine.kv_cache import num_blocks_for
from inglenook.engine.models.spec import ModelSpec


class Sequence:
    """A new sequence of at most `num_tokens` tokens; the model's KV tensors are allocated for it."""

    def __init__(self, model: BackendModel, spec: ModelSpec, num_groups: int, num_tokens: int) -> None:
        self._model = model
        self._blocks = num_blocks_for(num_tokens)
        self._num_groups = num_groups
        self._position = 0
        self.spec = spec
        model.allocate_kv((self._blocks,) * num_groups)

    def step(self, ids: list[int], *, wants_all: bool) -> torch.Tensor:
        """Run the next tokens; returns float32 logits of all of them, or of the last."""
        start, end = self._position, self._position + len(ids)
        positions = torch.arange(start, end)
        tables = GroupTables(torch.arange(self._blocks, dtype=torch.int32)[None], positions.clone())
        rows = torch.arange(len(ids)) if wants_all else torch.tensor([len(ids) - 1])
        self._position = end
        return self._model.forward(
            Batch(
                torch.tensor(ids, dtype=torch.int64),
                positions,
                torch.tensor([0, len(ids)], dtype=torch.int32),
                torch.tensor([end], dtype=torch.int32),
                rows,
                (tables,) * self._num_groups,
            )
        ).float()
