"""`CudaModel`: a model on a card, one step at a time; decode steps as graphs, all others launch by launch.

Its kernels are compiled by `prepare`, on steps that store nothing and of every kind there is, so that no answer waits for
a compiler. On the CPU the same code runs the operations' formulas.
"""

from __future__ import annotations

import logging

import torch

from inglenook.engine.backend import Progress
from inglenook.engine.batch import Batch, GroupTables
from inglenook.engine.cards.cuda_graphs import DECODE_SIZES, DecodeGraphs
from inglenook.engine.cards.device_decoder import DeviceDecoder, StepBuffers, StepInputs
from inglenook.engine.cards.device_operations import Rows
from inglenook.engine.cards.draw import Draw, Drawer
from inglenook.engine.cards.plain_drawer import PlainDrawer
from inglenook.engine.kv_cache import BLOCK_SIZE, KVGroup, KVTensors
from inglenook.engine.request import SamplingParams

logger = logging.getLogger(__name__)


class CudaModel:
    """A model on the card: weights, KV tensors, buffers, graphs, and what draws tokens from logits there."""

    def __init__(
        self,
        decoder: DeviceDecoder,
        groups: tuple[KVGroup, ...],
        buffers: StepBuffers,
        weight_bytes: int,
        *,
        uses_graphs: bool,
        takes_hidden: bool = False,
        drawer: Drawer | None = None,
    ) -> None:
        self.drawer = drawer or PlainDrawer()
        self.spec = decoder.spec
        self.kv: tuple[KVTensors, ...] = ()
        self.weight_bytes = weight_bytes
        self._decoder: DeviceDecoder | None = decoder
        self._groups = groups
        self._buffers = buffers
        self._uses_graphs = uses_graphs
        self._takes_hidden = takes_hidden
        self._graphs: DecodeGraphs | None = None

    @property
    def device(self) -> torch.device:
        """Where it runs."""
        return self._buffers.x.device

    def allocate_kv(self, num_blocks: tuple[int, ...]) -> None:
        """Allocate KV tensors, in place of any earlier ones, and capture the decode steps over them."""
        assert self._decoder is not None, "the model is closed"
        self._graphs, self.kv = None, ()
        self.kv = tuple(
            _allocate(group, count, self.device)
            for group, count in zip(self._groups, num_blocks, strict=True)
        )
        if self._uses_graphs:
            is_card = self.device.type == "cuda"
            self._graphs = DecodeGraphs(
                self._decoder, self.kv, self._buffers, captures=is_card, takes_hidden=self._takes_hidden
            )

    def prepare(self, progress: Progress) -> None:
        """Run steps of every kind that store nothing, so that their kernels are compiled; before any cache is there.

        progress: called with steps done and in all; may raise to give up, and the model is as it was then.
        """
        uses_graphs, self._uses_graphs = self._uses_graphs, False
        # 128 and 256 rows of logits and of decode are no graph's, and products with them are split otherwise
        large = [count for count in (128, 256) if count <= self._buffers.capacity]
        steps = [(count, True) for count in (*DECODE_SIZES, *large)]
        steps += [(count, False) for count in (16, self._buffers.capacity)]
        try:
            self.allocate_kv((1,) * len(self._groups))
            for done, (count, is_decode) in enumerate(steps):
                progress(done, len(steps))
                logger.info("compiling kernels for steps of %d rows", count)
                self._warm(count, is_decode=is_decode)
            self._warm_drawer()
            if self.device.type == "cuda":
                torch.cuda.synchronize()
        finally:
            self.kv, self._uses_graphs = (), uses_graphs
        progress(len(steps), len(steps))

    def _warm(self, rows: int, *, is_decode: bool) -> None:
        hidden = torch.zeros(rows, self.spec.hidden_size) if self._takes_hidden else None
        self.forward(_empty_batch(rows, len(self.kv), is_decode=is_decode), hidden)

    def _warm_drawer(self) -> None:
        logits = torch.zeros((1, self.spec.vocab_size), dtype=torch.float32, device=self.device)
        for params in (SamplingParams(temperature=1.0), SamplingParams(temperature=1.0, top_k=1, top_p=0.5)):
            draw = Draw(params, 0, 0, 0)
            if self.drawer.takes(draw):
                self.drawer.draw(logits, [draw])

    def forward(self, batch: Batch, hidden: torch.Tensor | None = None) -> torch.Tensor:
        """Run one step; see `BackendModel`. The logits are on the device.

        hidden: float32 [T, hidden_size] on the CPU, what layers elsewhere made of the step, for a model that takes it.
        """
        assert self._decoder is not None, "the model is closed"
        rows, sequences = len(batch.token_ids), len(batch.context_lengths)
        if rows == sequences and self._graphs is not None:
            logits = self._graphs.run(batch, hidden)
            if logits is not None:
                return logits
        if rows > self._buffers.capacity:
            self._buffers = StepBuffers(self.spec, rows, self._buffers.q.dtype, self.device)
        logits = torch.empty(
            (len(batch.logits_rows), self.spec.vocab_size), dtype=torch.float32, device=self.device
        )
        self._decoder.step(self._inputs(batch, hidden), self.kv, self._buffers, logits)
        return logits

    def _inputs(self, batch: Batch, hidden: torch.Tensor | None) -> StepInputs:
        """A step that no graph runs: leading sequences of one row decode, the others are prompts."""
        counts = batch.query_starts[1:] - batch.query_starts[:-1]
        is_longer = torch.nonzero(counts != 1)
        num_decodes = int(is_longer[0]) if len(is_longer) else len(counts)

        def move(x: torch.Tensor) -> torch.Tensor:
            return x.to(self.device, non_blocking=True)

        starts, lengths = move(batch.query_starts), move(batch.context_lengths)
        tables = [move(group.block_tables) for group in batch.groups]
        decodes = [Rows(num_decodes, t[:num_decodes], starts, lengths[:num_decodes]) for t in tables]
        rest = len(counts) - num_decodes
        prefills = [Rows(rest, t[num_decodes:], starts[num_decodes:], lengths[num_decodes:]) for t in tables]
        return StepInputs(
            move(batch.token_ids),
            move(batch.positions),
            tuple(move(group.slots) for group in batch.groups),
            tuple(decodes) if num_decodes else (),
            tuple(prefills) if rest else (),
            move(batch.logits_rows),
            None if hidden is None else move(hidden),
        )

    def close(self) -> None:
        """Drop graphs, weights and KV tensors."""
        self._graphs, self._decoder, self.kv = None, None, ()
        if self.device.type == "cuda":
            torch.cuda.empty_cache()


def _allocate(group: KVGroup, num_blocks: int, device: torch.device) -> KVTensors:
    shape = (len(group.layers), num_blocks, group.num_kv_heads, BLOCK_SIZE, group.head_size)
    dtype = getattr(torch, group.dtype)
    scales: list[torch.Tensor | None] = [None, None]
    if group.dtype == "int8":
        scales = [torch.zeros(shape[:-1], dtype=torch.float32, device=device) for _ in range(2)]
    k, v = (torch.zeros(shape, dtype=dtype, device=device) for _ in range(2))
    return KVTensors(group, k, v, scales[0], scales[1])


def _empty_batch(rows: int, groups: int, *, is_decode: bool) -> Batch:
    """A step that stores nothing and sees one block of zeros."""
    sequences = rows if is_decode else 1
    count = rows // sequences
    positions = torch.arange(rows) % BLOCK_SIZE if not is_decode else torch.zeros(rows, dtype=torch.int64)
    blocks = -(-count // BLOCK_SIZE)
    tables = GroupTables(
        torch.zeros((sequences, blocks), dtype=torch.int32), torch.full((rows,), -1, dtype=torch.int64)
    )
    return Batch(
        torch.zeros(rows, dtype=torch.int64),
        positions,
        torch.arange(0, rows + 1, count, dtype=torch.int32),
        torch.full((sequences,), count, dtype=torch.int32),
        torch.arange(rows) if is_decode else torch.tensor([rows - 1]),
        (tables,) * groups,
    )
