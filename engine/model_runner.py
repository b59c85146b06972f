"""`ModelRunner`: runs a step plan on one loaded model."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import torch

from inglenook.engine.backend import BackendModel
from inglenook.engine.batch import build_batch
from inglenook.engine.cards.draw import Draw, Drawer
from inglenook.engine.kv_blocks import BlockCopy
from inglenook.engine.sequence import StepPlan

Row = npt.NDArray[np.float32] | int
"""A token id that was drawn, or float32 logits [V]."""


class ModelRunner:
    """Turns plans into batches, and batches into logits or tokens. Called from the engine thread only."""

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

    @property
    def drawer(self) -> Drawer | None:
        """What draws tokens on the model's device; None where logits are on the host anyway."""
        return getattr(self._model, "drawer", None)

    def run(self, plan: StepPlan, draws: Sequence[Draw | None] = ()) -> list[Row]:
        """Compute a plan's keys and values, and its rows: `num_logits` for each chunk, in the plan's order.

        draws: of each row, or none at all; one that is not None is drawn where the logits lie, by `drawer`.
        Returns a token id for a row that was drawn (-1: its logits are no numbers), else its logits, float32 [V].

        Raises:
            StepCancelledError: `cancel` was called meanwhile. Nothing counts as computed.
        """
        logits = self._model.forward(build_batch(plan))
        drawer = self.drawer
        wanted = [row for row, draw in enumerate(draws) if draw is not None]
        if drawer is None or not wanted:
            return list(logits.cpu().numpy())
        rows: list[Row] = [-1] * len(draws)
        kept = [row for row, draw in enumerate(draws) if draw is None]
        own = logits if not kept else logits[torch.tensor(wanted, device=logits.device)]
        tokens = drawer.draw(own, [draw for draw in draws if draw is not None])
        for row, token in zip(wanted, tokens, strict=True):
            rows[row] = token
        if kept:
            for row, numbers in zip(
                kept, logits[torch.tensor(kept, device=logits.device)].cpu().numpy(), strict=True
            ):
                rows[row] = numbers
        return rows

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
