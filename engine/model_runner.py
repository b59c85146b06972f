"""`ModelRunner`: runs a step plan on one loaded model."""

from __future__ import annotations

import torch

from inglenook.engine.backend import BackendModel
from inglenook.engine.batch import build_batch
from inglenook.engine.kv_blocks import BlockCopy
from inglenook.engine.sequence import StepPlan


class ModelRunner:
    """Turns plans into batches and batches into logits. Called from the engine thread only."""

    def __init__(self, model: BackendModel) -> None:
        self._model = model

    def run(self, plan: StepPlan, copies: list[BlockCopy]) -> torch.Tensor:
        """Do the block copies in their order, then compute a plan's keys, values and logits.

        Returns float32 [R, V] on the CPU: `num_logits` rows for each chunk, in the plan's order.
        """
        for copy in copies:
            self._model.kv[copy.group].copy_blocks([(copy.source, copy.destination)])
        return self._model.forward(build_batch(plan)).cpu()

    def blank(self, blocks: list[tuple[int, int]]) -> None:
        """Overwrite the contents of (KV group, block) pairs, so that forgotten text is gone from memory."""
        for group, block in blocks:
            self._model.kv[group].blank(block)

    def close(self) -> None:
        """Give the model's memory back."""
        self._model.close()
