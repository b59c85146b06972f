"""Several cards that share one model: a process for each card but the first, which is this process.

Every step goes to all cards, which compute their shares (`shares.py`) and add up (`ranks.py`); logits end on the first.
A card's process that dies (`cards.py`) fails the step in flight with `CardLostError`, and so every later one, until the
model is loaded again. Nothing here waits without a limit.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import numpy as np
import torch

from inglenook.engine.backend import Progress, WeightSource
from inglenook.engine.cards.card_processes import Cards
from inglenook.engine.cards.cuda_backend import NAME, CudaBackend
from inglenook.engine.cards.cuda_model import CudaModel
from inglenook.engine.cards.device_decoder import Ranks
from inglenook.engine.cards.draw import Drawer
from inglenook.engine.cards.rank_frames import RankMessage, step_message
from inglenook.engine.cards.shares import Share, ShareSource, plan_shares, replication
from inglenook.engine.errors import UnsupportedModelError
from inglenook.engine.kv_cache import KVDtype, KVGroup, KVTensors
from inglenook.engine.models.spec import ModelSpec
from inglenook.engine.weights.loader import ModelFile

if TYPE_CHECKING:
    from inglenook.engine.batch import Batch

_SUM_S = 30.0  # a step's sums, and meeting at first


class TensorParallelBackend:
    """`count` cards that share a model; `is_card` False lets processes on the CPU stand in for them (in float32)."""

    name = NAME
    rows_are_exact = False

    def __init__(
        self,
        count: int,
        *,
        is_card: bool,
        kv_dtype: KVDtype | None = None,
        is_deterministic: bool = False,
        reason: str = "several cards were asked for",
    ) -> None:
        self.device = "cuda" if is_card else "cpu"
        self.reason = reason
        self.notice = f"{reason[0].upper()}{reason[1:]}."  # for people
        self._count, self._is_card = count, is_card
        self._kv_dtype, self._is_deterministic = kv_dtype, is_deterministic
        self._one = self._backend()

    def kv_groups(self, spec: ModelSpec) -> tuple[KVGroup, ...]:
        """The KV groups of the first card, which has at least as many KV heads as any other."""
        kv_heads = max(1, -(-spec.num_kv_heads // self._count))
        return tuple(_with_heads(group, kv_heads) for group in self._one.kv_groups(spec))

    def estimate_weight_bytes(self, spec: ModelSpec, source_bytes: int) -> int:
        """Of one card: its share, and the whole embedding, which every card has."""
        whole = self._one.estimate_weight_bytes(spec, source_bytes)
        embedding = whole * spec.vocab_size * spec.hidden_size // max(1, spec.num_parameters)
        return whole // self._count + embedding

    def free_bytes(self) -> int:
        """Free memory of the fullest card."""
        if not self._is_card:
            return self._one.free_bytes()
        return min(torch.cuda.mem_get_info(card)[0] for card in range(self._count))

    def step_tokens(self, spec: ModelSpec) -> int:
        """As one card would take, whatever its share."""
        return self._one.step_tokens(spec)

    def load(self, spec: ModelSpec, source: WeightSource, progress: Progress) -> TensorParallelModel:
        """Start the other cards' processes and load all shares at once; see `Backend`."""
        if not isinstance(source, ModelFile):
            raise UnsupportedModelError(
                "Several cards read a model's file each, and this one lies in no file. Use one card."
            )
        shares = plan_shares(spec, source, self._count)
        kept = replication(spec, self._count)
        if kept:
            self.reason += f"; {kept}"
        cards = Cards(self._count, is_card=self._is_card)
        try:
            return self._load(spec, source, shares, cards, progress)
        except BaseException:
            cards.close()
            raise

    def _load(
        self,
        spec: ModelSpec,
        source: ModelFile,
        shares: tuple[Share, ...],
        cards: Cards,
        progress: Progress,
    ) -> TensorParallelModel:
        tokens = self.step_tokens(spec) if self._is_card else 64
        for rank in range(1, self._count):
            facts = {
                "path": str(source.path.absolute()), "rank": rank, "count": self._count, "is_card": self._is_card,
                "context_length": spec.context_length, "kv_dtype": self._kv_dtype, "step_tokens": tokens,
                "is_deterministic": self._is_deterministic, "rendezvous": str(cards.rendezvous),
                "timeout_s": _SUM_S, "num_threads": max(1, torch.get_num_threads() // self._count),
            }  # fmt: skip
            cards.send(rank, RankMessage("load", facts=facts))
        share = shares[0]

        def wait() -> None:
            progress(0, source.size_bytes)

        cards.meet(wait, timeout_s=_SUM_S)
        backend = self._backend(cards.ranks, tokens)
        try:
            model = backend.load(share.spec(spec), ShareSource(source, spec, share), progress)
            cards.wait_for("ready", wait)
            return TensorParallelModel(spec, model, cards)
        except RuntimeError as error:
            raise cards.lost(error) from error

    def _backend(self, ranks: Ranks | None = None, step_tokens: int | None = None) -> CudaBackend:
        if not self._is_card:
            return CudaBackend.on_cpu(kv_dtype=self._kv_dtype, ranks=ranks, step_tokens=step_tokens)
        return CudaBackend(
            kv_dtype=self._kv_dtype,
            is_deterministic=self._is_deterministic,
            ranks=ranks,
            step_tokens=step_tokens,
        )


class TensorParallelModel:
    """The first card's share, and the way to the others', which are `cards`. Used from one thread at a time."""

    def __init__(self, spec: ModelSpec, model: CudaModel, cards: Cards) -> None:
        self.spec = spec
        self.kv: tuple[KVTensors, ...] = ()
        self.cards = cards
        self._model = model

    @property
    def weight_bytes(self) -> int:
        """Bytes of all cards' weights."""
        return self._model.weight_bytes + self.cards.weight_bytes

    @property
    def drawer(self) -> Drawer:
        """What draws tokens where the logits end."""
        return self._model.drawer

    def prepare(self, progress: Progress) -> None:
        """Compile the kernels; see `CudaModel.prepare`."""
        self.cards.tell(RankMessage("prepare"))
        try:
            self._model.prepare(progress)
        except RuntimeError as error:
            raise self.cards.lost(error) from error

    def allocate_kv(self, num_blocks: tuple[int, ...]) -> None:
        """Allocate KV tensors on every card, and capture the decode steps over them."""
        self.cards.tell(RankMessage("allocate", (np.array(num_blocks),)))
        try:
            self._model.allocate_kv(num_blocks)
        except RuntimeError as error:
            raise self.cards.lost(error) from error
        self.kv = tuple(SharedKV(own, number, self.cards) for number, own in enumerate(self._model.kv))

    def forward(self, batch: Batch) -> torch.Tensor:
        """Run one step on all cards; see `BackendModel`.

        Raises:
            CardLostError: a card's process has ended, or does not answer.
        """
        self.cards.tell(step_message(batch))
        try:
            logits = self._model.forward(batch)
            self.cards.wait_for_device(logits.device, _SUM_S)
        except RuntimeError as error:
            raise self.cards.lost(error) from error
        return logits

    def close(self) -> None:
        """End the other cards' processes and give all memory back. Closing twice is fine."""
        self.cards.close()
        self._model.close()
        self.kv = ()


class SharedKV(KVTensors):
    """The first card's KV tensors of a group; what is done to blocks is done on every card."""

    def __init__(self, own: KVTensors, number: int, cards: Cards) -> None:
        super().__init__(own.group, own.k, own.v, own.k_scale, own.v_scale, own.memory)
        self._number, self._cards = np.array([number]), cards

    def copy_blocks(self, pairs: list[tuple[int, int]]) -> None:
        """Copy whole blocks (source, destination) in every layer of the group."""
        if pairs:
            self._cards.tell(RankMessage("copy", (self._number, np.array(pairs))))
        super().copy_blocks(pairs)

    def blank(self, blocks: list[int]) -> None:
        """Overwrite blocks with zeros in every layer of the group; of cards that are gone, the first one's alone."""
        if blocks and not self._cards.is_lost:
            self._cards.tell(RankMessage("blank", (self._number, np.array(blocks))))
        super().blank(blocks)


def _with_heads(group: KVGroup, kv_heads: int) -> KVGroup:
    return dataclasses.replace(group, num_kv_heads=kv_heads)
