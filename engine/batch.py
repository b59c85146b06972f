"""`Batch`: one step's work as flat tensors, the same for every back end.

B sequences contribute T tokens in all, concatenated; sequence b owns rows query_starts[b] .. query_starts[b + 1].
Prefill chunks and decode rows are not told apart: a decode row is a chunk of one token.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

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
