"""`Batch`: one step's work as flat tensors, the same for every back end.

B sequences contribute T tokens in all, concatenated; sequence b owns rows query_starts[b] .. query_starts[b + 1].
Prefill chunks and decode rows are not told apart: a decode row is a chunk of one token.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from inglenook.engine.kv_cache import BLOCK_SIZE
from inglenook.engine.sequence import StepPlan

if TYPE_CHECKING:
    import torch

    from inglenook.engine.models.lora import Worn


@dataclass(frozen=True, slots=True)
class GroupTables:
    """Where one KV group's blocks are.

    block_tables: int32 [B, max blocks], contiguous, padded with -1; entries left of a sliding window may be -1.
    slots: int64 [T], where each token's key and value go; -1 stores nothing.
    """

    block_tables: torch.Tensor
    slots: torch.Tensor


@dataclass(frozen=True, slots=True)
class Batch:
    """One step.

    token_ids: int64 [T].     positions: int64 [T], from 0 in each sequence.
    query_starts: int32 [B + 1], from 0 to T.
    context_lengths: int32 [B], tokens of each sequence whose keys exist once this step has stored its own.
    logits_rows: int64 [R], ascending rows of T whose logits are wanted; R may be 0.
    groups: one `GroupTables` for each `KVGroup` of the model, in the same order.
    worn: which rows wear which adapter; None when none does. Only the PyTorch back ends know it.
    """

    token_ids: torch.Tensor
    positions: torch.Tensor
    query_starts: torch.Tensor
    context_lengths: torch.Tensor
    logits_rows: torch.Tensor
    groups: tuple[GroupTables, ...]
    worn: Worn | None = None


def build_batch(plan: StepPlan) -> Batch:
    """Flatten a plan; logits are wanted of the last token of each chunk that `is_last`, and of its drafts."""
    token_ids: list[int] = []
    positions: list[int] = []
    query_starts = [0]
    context_lengths: list[int] = []
    logits_rows: list[int] = []
    for chunk in plan.chunks:
        token_ids += chunk.sequence.token_ids[chunk.start : chunk.start + chunk.count]
        token_ids += chunk.drafts
        end = chunk.start + chunk.num_rows
        positions += range(chunk.start, end)
        query_starts.append(len(token_ids))
        context_lengths.append(end)
        logits_rows += range(len(token_ids) - chunk.num_logits, len(token_ids))
    num_groups = len(plan.chunks[0].sequence.tables.groups)
    return Batch(
        _tensor(token_ids, np.int64),
        _tensor(positions, np.int64),
        _tensor(query_starts, np.int32),
        _tensor(context_lengths, np.int32),
        _tensor(logits_rows, np.int64),
        tuple(_group_tables(plan, group) for group in range(num_groups)),
        _worn(plan),
    )


def _worn(plan: StepPlan) -> Worn | None:
    """Which rows wear which adapter."""
    adapters = {id(a): a for chunk in plan.chunks if (a := chunk.sequence.adapter) is not None}
    if not adapters:
        return None
    import torch

    from inglenook.engine.models.lora import Worn

    order = {key: number for number, key in enumerate(adapters)}
    numbers = [order.get(id(c.sequence.adapter), -1) for c in plan.chunks for _ in range(c.num_rows)]
    return Worn(tuple(adapters.values()), torch.tensor(numbers, dtype=torch.int64))


def _group_tables(plan: StepPlan, group: int) -> GroupTables:
    tables = [chunk.sequence.tables.groups[group] for chunk in plan.chunks]
    block_tables = np.full((len(tables), max(len(table) for table in tables)), -1, dtype=np.int32)
    slots: list[int] = []
    for row, (chunk, table) in enumerate(zip(plan.chunks, tables, strict=True)):
        block_tables[row, : len(table)] = table
        positions = range(chunk.start, chunk.start + chunk.num_rows)
        slots += [table[p // BLOCK_SIZE] * BLOCK_SIZE + p % BLOCK_SIZE for p in positions]
    return GroupTables(_tensor(block_tables, np.int32), _tensor(slots, np.int64))


def _tensor(numbers: npt.ArrayLike, dtype: type[np.int32 | np.int64]) -> torch.Tensor:
    """A tensor by way of NumPy, which takes a list a few times as fast as PyTorch does."""
    import torch

    return torch.from_numpy(np.asarray(numbers, dtype=dtype))
