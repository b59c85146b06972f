"""`Batch`: one step's work as flat tensors, the same for every back end.

B sequences contribute T tokens in all, concatenated; sequence b owns rows query_starts[b] .. query_starts[b + 1].
Prefill chunks and decode rows are not told apart: a decode row is a chunk of one token.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from inglenook.engine.kv_cache import BLOCK_SIZE
from inglenook.engine.scheduler import StepPlan

if TYPE_CHECKING:
    import torch


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
    """

    token_ids: torch.Tensor
    positions: torch.Tensor
    query_starts: torch.Tensor
    context_lengths: torch.Tensor
    logits_rows: torch.Tensor
    groups: tuple[GroupTables, ...]


def build_batch(plan: StepPlan, num_groups: int) -> Batch:
    """Flatten a plan. Every KV group uses the same block ids; logits are wanted for each chunk that is the last."""
    import torch

    token_ids: list[int] = []
    positions: list[int] = []
    slots: list[int] = []
    query_starts = [0]
    context_lengths: list[int] = []
    logits_rows: list[int] = []
    for chunk in plan.chunks:
        end = chunk.start + chunk.count
        table = chunk.sequence.block_table
        token_ids += chunk.sequence.token_ids[chunk.start : end]
        positions += range(chunk.start, end)
        slots += [table[p // BLOCK_SIZE] * BLOCK_SIZE + p % BLOCK_SIZE for p in range(chunk.start, end)]
        query_starts.append(len(token_ids))
        context_lengths.append(end)
        if chunk.is_last:
            logits_rows.append(len(token_ids) - 1)
    width = max(len(chunk.sequence.block_table) for chunk in plan.chunks)
    tables = [c.sequence.block_table + [-1] * (width - len(c.sequence.block_table)) for c in plan.chunks]
    group = GroupTables(torch.tensor(tables, dtype=torch.int32), torch.tensor(slots, dtype=torch.int64))
    return Batch(
        torch.tensor(token_ids, dtype=torch.int64),
        torch.tensor(positions, dtype=torch.int64),
        torch.tensor(query_starts, dtype=torch.int32),
        torch.tensor(context_lengths, dtype=torch.int32),
        torch.tensor(logits_rows, dtype=torch.int64),
        (group,) * num_groups,
    )
