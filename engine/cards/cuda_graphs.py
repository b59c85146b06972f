"""Decode steps as CUDA graphs: captured once for some numbers of rows, replayed with new numbers in old places.

A step of B rows runs in the smallest graph of at least B. Its spare rows store nothing (slot -1) and see no context
(length 0). Inputs are written into pinned memory and copied in three or four transfers; the host waits for nothing.
Without a card the same code runs the step plainly, which is how padding is tested.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from inglenook.engine.batch import Batch
from inglenook.engine.cards.device_decoder import DeviceDecoder, StepBuffers, StepInputs
from inglenook.engine.cards.device_operations import Rows
from inglenook.engine.kv_cache import KVTensors, num_blocks_for

DECODE_SIZES = (1, 2, 4, 8, 16, 32, 64)


class DecodeGraphs:
    """The decode steps of one model over one set of KV tensors.

    captures: whether steps are captured; needs a CUDA device.
    takes_hidden: steps begin with hidden states of layers elsewhere.
    """

    def __init__(
        self,
        decoder: DeviceDecoder,
        kv: tuple[KVTensors, ...],
        buffers: StepBuffers,
        *,
        captures: bool,
        takes_hidden: bool = False,
        sizes: tuple[int, ...] = DECODE_SIZES,
    ) -> None:
        self.sizes = sizes
        self._decoder, self._kv, self._buffers = decoder, kv, buffers
        device = buffers.x.device
        largest, groups = sizes[-1], len(kv)
        width = num_blocks_for(decoder.spec.context_length)
        hidden = decoder.spec.hidden_size if takes_hidden else 0
        is_card = device.type == "cuda"
        self._host = _Numbers(largest, groups, width, hidden, torch.device("cpu"), is_pinned=is_card)
        self._device = _Numbers(largest, groups, width, hidden, device)
        # The copies of one step have left the pinned memory before the next step's numbers go there.
        self._copied = torch.cuda.Event() if is_card else None  # type: ignore[no-untyped-call]  # untyped in torch
        self._logits = torch.zeros((largest, decoder.spec.vocab_size), dtype=torch.float32, device=device)
        self._replays: dict[int, Callable[[], None]] = {}
        pool = None
        for size in reversed(sizes):
            if not captures:
                self._replays[size] = self._step(size)
                continue
            graph = self._capture(size, pool)
            pool = graph.pool()
            self._replays[size] = graph.replay

    def run(self, batch: Batch, hidden: torch.Tensor | None = None) -> torch.Tensor | None:
        """Run a step whose sequences have one row each; None when there are more than the largest graph has.

        hidden: float32 [T, hidden_size] on the CPU, with `takes_hidden`.
        Returns float32 [R, vocab_size] on the device.
        """
        rows = len(batch.token_ids)
        size = next((s for s in self.sizes if s >= rows), None)
        if size is None:
            return None
        if self._copied is not None:
            self._copied.synchronize()
        self._host.fill(batch, size, hidden)
        self._device.copy_from(self._host, size)
        if self._copied is not None:
            self._copied.record()
        self._replays[size]()
        logits = self._logits[:rows]
        if len(batch.logits_rows) == rows:
            return logits.clone()
        return logits[batch.logits_rows.to(logits.device)]

    def _step(self, size: int) -> Callable[[], None]:
        numbers = self._device
        inputs = StepInputs(
            numbers.wide[0, :size],
            numbers.wide[1, :size],
            tuple(slots[:size] for slots in numbers.wide[2:]),
            tuple(
                Rows(size, table[:size], numbers.starts[: size + 1], numbers.lengths[:size])
                for table in numbers.tables
            ),
            (),
            None,
            None if numbers.hidden is None else numbers.hidden[:size],
        )
        return lambda: self._decoder.step(inputs, self._kv, self._buffers, self._logits[:size])

    def _capture(self, size: int, pool: Any) -> torch.cuda.CUDAGraph:
        step = self._step(size)
        stream = torch.cuda.Stream()  # type: ignore[no-untyped-call]  # untyped in torch
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            step()  # compiles and loads its kernels: neither may happen while capturing
        torch.cuda.current_stream().wait_stream(stream)
        graph = torch.cuda.CUDAGraph()
        # Another thread may use the card meanwhile, for a model in another slot: only our own calls are held to the rules.
        with torch.cuda.graph(graph, pool=pool, capture_error_mode="thread_local"):
            step()
        return graph


class _Numbers:
    """A decode step's integers, on the host or on the device, for up to `rows` rows.

    wide: int64 [2 + groups, rows]: token ids, positions, slots.  lengths: int32 [rows].  starts: 0, 1, 2, ...
    tables: int32 [groups, rows, width].  hidden: float32 [rows, hidden], or None where that is 0.
    """

    def __init__(
        self,
        rows: int,
        groups: int,
        width: int,
        hidden: int,
        device: torch.device,
        *,
        is_pinned: bool = False,
    ) -> None:
        self.wide = torch.zeros((2 + groups, rows), dtype=torch.int64, device=device)
        self.wide[2:] = -1
        self.lengths = torch.zeros(rows, dtype=torch.int32, device=device)
        self.starts = torch.arange(rows + 1, dtype=torch.int32, device=device)
        self.tables = torch.zeros((groups, rows, width), dtype=torch.int32, device=device)
        self.hidden = torch.zeros((rows, hidden), device=device) if hidden else None
        if is_pinned:
            self.wide, self.lengths = self.wide.pin_memory(), self.lengths.pin_memory()
            self.tables = self.tables.pin_memory()
            self.hidden = None if self.hidden is None else self.hidden.pin_memory()

    def fill(self, batch: Batch, size: int, hidden: torch.Tensor | None) -> None:
        """Write a batch of at most `size` rows, and rows that do nothing after it."""
        rows = len(batch.token_ids)
        self.wide[0, :rows], self.wide[1, :rows] = batch.token_ids, batch.positions
        self.wide[:2, rows:size] = 0
        self.wide[2:, rows:size] = -1
        self.lengths[:rows] = batch.context_lengths
        self.lengths[rows:size] = 0
        if self.hidden is not None:
            assert hidden is not None, "hidden states are wanted"
            self.hidden[:rows] = hidden
        for group, tables in enumerate(batch.groups):
            self.wide[2 + group, :rows] = tables.slots
            self.tables[group, :rows, : tables.block_tables.shape[1]] = tables.block_tables

    def copy_from(self, host: _Numbers, size: int) -> None:
        """Copy what a step of `size` rows reads."""
        self.wide.copy_(host.wide, non_blocking=True)
        self.lengths.copy_(host.lengths, non_blocking=True)
        if self.hidden is not None and host.hidden is not None:
            self.hidden[:size].copy_(host.hidden[:size], non_blocking=True)
        for own, theirs in zip(self.tables, host.tables, strict=True):
            own[:size].copy_(theirs[:size], non_blocking=True)
