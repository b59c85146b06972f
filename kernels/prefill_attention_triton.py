"""Attention of prompt chunks on a GPU: any number of queries a sequence, over the paged cache.

One launch for all sequences of a step. A program takes a run of positions of one sequence with all query heads of
one KV head, which together are the rows of its tile; it finds its sequence by binary search in `query_starts`.
Tiles after the last position and before the sliding window are skipped. Tiles are anchored at position 0, so a
row's result does not depend on how its prompt was cut.

Kwon et al., 2023 (paging); Dao, "FlashAttention-2", 2023 (tiling).
"""

# mypy: disable-error-code="import-untyped,import-not-found,untyped-decorator,no-untyped-def,no-untyped-call,attr-defined"
# ruff: noqa: N803 - compile-time arguments are in capitals, as in all Triton code

from __future__ import annotations

import torch
import triton
import triton.language as tl

from inglenook.kernels.compilation import BF16, I8, I32, Compilation
from inglenook.kernels.paged_attention_triton import (
    accumulate,
    attention_cases,
    check_shapes,
    load_tile,
    scores_of_tile,
)

# padded head size -> (rows, positions, warps, stages) of a tile
_TILES = {
    16: (64, 64, 4, 2),
    32: (64, 64, 4, 2),
    64: (128, 64, 8, 3),
    128: (128, 32, 8, 3),
    256: (64, 32, 8, 2),
}


# Counts change from step to step, and prompts may begin at any entry of the three lists: neither must compile anything.
@triton.jit(
    do_not_specialize=["table_width", "sequences"],
    do_not_specialize_on_alignment=["tables", "starts", "lengths"],
)
def _prefill_kernel(
    q, out, k_cache, v_cache, k_scales, v_scales, tables, starts, lengths, sequences, table_width, qk_scale,
    softcap,
    HEADS: tl.constexpr, KV_HEADS: tl.constexpr, D: tl.constexpr, WINDOW: tl.constexpr,
    HAS_SOFTCAP: tl.constexpr, IS_QUANTISED: tl.constexpr, PAGE: tl.constexpr, M: tl.constexpr,
    N: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    group: tl.constexpr = HEADS // KV_HEADS
    per_block: tl.constexpr = M // group
    block, kv_head = tl.program_id(0), tl.program_id(1)
    # sequence b's blocks begin at (starts[b] - starts[0]) // per_block + b, which leaves room for its last, short one
    origin = tl.load(starts)
    low, high = 0, sequences
    while high - low > 1:
        middle = (low + high) // 2
        is_after = (tl.load(starts + middle) - origin) // per_block + middle <= block
        low = tl.where(is_after, middle, low)
        high = tl.where(is_after, high, middle)
    sequence = low
    begin = tl.load(starts + sequence)
    count = tl.load(starts + sequence + 1) - begin
    local = (block - (begin - origin) // per_block - sequence) * per_block
    if local < count:
        length = tl.load(lengths + sequence)
        m, d = tl.arange(0, M), tl.arange(0, BLOCK)
        query = local + m // group
        is_row = (m < per_block * group) & (query < count)
        row = (begin + query).to(tl.int64) * HEADS + kv_head * group + m % group
        valid = is_row[:, None] & (d < D)[None, :]
        queries = tl.load(q + row[:, None] * D + d[None, :], mask=valid, other=0)
        before = length - count
        place = before + query
        first = 0
        if WINDOW > 0:
            first = tl.maximum(before + local - WINDOW + 1, 0)
        seen = before + tl.minimum(local + per_block, count)
        largest = tl.full((M,), float("-inf"), dtype=tl.float32)
        total = tl.zeros((M,), dtype=tl.float32)
        acc = tl.zeros((M, BLOCK), dtype=tl.float32)
        for tile in tl.range(first // N, tl.cdiv(seen, N)):
            position = tile * N + tl.arange(0, N)
            there = (position >= first) & (position < seen)
            k, v, k_scale, v_scale = load_tile(
                k_cache, v_cache, k_scales, v_scales, tables + sequence.to(tl.int64) * table_width, position, there,
                kv_head, KV_HEADS, D, PAGE, BLOCK, IS_QUANTISED,
            )  # fmt: skip
            visible = there[None, :] & (position[None, :] <= place[:, None])
            if WINDOW > 0:
                visible &= place[:, None] - position[None, :] < WINDOW
            scores = scores_of_tile(
                queries, k, k_scale, visible, qk_scale, softcap, IS_QUANTISED, HAS_SOFTCAP
            )
            largest, total, acc = accumulate(
                scores, v, v_scale, largest, total, acc, queries.dtype, IS_QUANTISED
            )
        y = acc / tl.where(total > 0, total, 1.0)[:, None]
        tl.store(out + row[:, None] * D + d[None, :], y.to(out.dtype.element_ty), mask=valid)


def prefill_attention(
    q: torch.Tensor,
    k_cache: torch.Tensor,
    v_cache: torch.Tensor,
    block_tables: torch.Tensor,
    query_starts: torch.Tensor,
    context_lengths: torch.Tensor,
    out: torch.Tensor,
    *,
    scale: float,
    window: int = 0,
    softcap: float = 0.0,
    k_scales: torch.Tensor | None = None,
    v_scales: torch.Tensor | None = None,
) -> None:
    """Attend; keys and values of this step are already stored.

    q, out: [T, H, D] of one float dtype, contiguous; rows before query_starts[0] are not touched.
    k_cache, v_cache: [blocks, H_kv, page, D], int8 with k_scales, v_scales float32 [blocks, H_kv, page].
    block_tables: int32 [B, width].  query_starts: int32 [B + 1].  context_lengths: int32 [B].
    """
    tokens, heads, size = q.shape
    kv_heads, page = k_cache.shape[1], k_cache.shape[2]
    check_shapes(q, out, k_cache, k_scales, block_tables)
    sequences = context_lengths.shape[0]
    if not tokens or not sequences:
        return
    block = max(16, triton.next_power_of_2(size))
    m, n, warps, stages = _tile(block, k_scales is not None)
    m = max(m, triton.next_power_of_2(heads // kv_heads))
    per_block = m // (heads // kv_heads)
    _prefill_kernel[(tokens // per_block + sequences, kv_heads)](
        q, out, k_cache, v_cache, k_scales, v_scales, block_tables, query_starts, context_lengths, sequences,
        block_tables.stride(0), scale, softcap, HEADS=heads, KV_HEADS=kv_heads, D=size, WINDOW=window,
        HAS_SOFTCAP=softcap > 0, IS_QUANTISED=k_scales is not None, PAGE=page, M=m, N=n, BLOCK=block,
        num_warps=warps, num_stages=stages,
    )  # fmt: skip


def _tile(block: int, is_quantised: bool) -> tuple[int, int, int, int]:
    """Rows and positions of a tile, warps, stages; with scales beside it, the full tile would spill."""
    m, n, warps, stages = _TILES[block]
    return m, (n // 2 if is_quantised else n), warps, stages


def compilations() -> list[Compilation]:
    """Every configuration that is shipped: head sizes, caches, with and without window and soft cap."""
    found = []
    for case in attention_cases():
        m, n, warps, stages = _tile(case.block, case.cache == I8)
        for window, has_softcap in [(0, False), (4096, True)]:
            found.append(
                Compilation(
                    f"prefill attention {case.name}, window {window}",
                    _prefill_kernel,
                    {"q": BF16, "out": BF16, "starts": I32, "sequences": "i32", **case.arguments},
                    case.constants(window, has_softcap) | {"M": m, "N": n},
                    num_warps=warps,
                    num_stages=stages,
                    oldest=case.oldest,
                )
            )
    return found
