"""`ModelRunner`: runs a step plan on one loaded model."""

from __future__ import annotations

import torch

from inglenook.engine.backend import BackendModel
from inglenook.engine.batch import build_batch
from inglenook.engine.scheduler import StepPlan


class ModelRunner:
    """Turns plans into batches and batches into logits. Called from the engine thread only."""

    def __init__(self, model: BackendModel, num_groups: int) -> None:
        self._model = model
        self._num_groups = num_groups

    def run(self, plan: StepPlan) -> torch.Tensor:
        """Compute a plan's keys, values and logits.

        Returns float32 [R, V] on the CPU: one row for each chunk that `is_last`, in the plan's order.
        """
        return self._model.forward(build_batch(plan, self._num_groups)).cpu()

    def close(self) -> None:
        """Give the model's memory back."""
        self._model.close()
