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

    @property
    def block_bytes(self) -> tuple[int, ...]:
        """Bytes of one block of each KV group."""
        return tuple(kv.group.block_bytes for kv in self._model.kv)

    @property
    def lazy_block_bytes(self) -> tuple[int, ...]:
        """The same of groups whose memory the system finds when a block is first written; 0 for the others."""
        return tuple(kv.group.block_bytes if kv.memory else 0 for kv in self._model.kv)

    def copy_blocks(self, copies: list[BlockCopy]) -> None:
        """Do the block copies in their order."""
        for copy in copies:
            self._model.kv[copy.group].copy_blocks([(copy.source, copy.destination)])

    def run(self, plan: StepPlan) -> torch.Tensor:
        """Compute a plan's keys, values and logits.

        Returns float32 [R, V] on the CPU: `num_logits` rows for each chunk, in the plan's order.

        Raises:
            StepCancelledError: `cancel` was called meanwhile. Nothing counts as computed.
        """
        return self._model.forward(build_batch(plan)).cpu()

    def cancel(self) -> None:
        """Make the step in flight end early where the back end can; from any thread."""
        cancel = getattr(self._model, "cancel", None)
        if cancel is not None:
            cancel()

    def blank(self, blocks: list[tuple[int, int]]) -> None:
        """Overwrite the contents of (KV group, block) pairs and give their memory back."""
        for group, kv in enumerate(self._model.kv):
            kv.blank([block for g, block in blocks if g == group])

    def close(self) -> None:
        """Give the model's memory back."""
        self._model.close()
