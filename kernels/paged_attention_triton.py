"""Attention of decode rows on a GPU: one query a sequence, the context split over programs.

A program takes one sequence, one KV head and one part of the context: all query heads of that KV head are the rows
of one tensor-core tile. Parts are merged in order by a second kernel. Where a part begins depends on the sequence's
own context and on the number of parts, so a row does not see its batch mates. A context of 0 gives zeros, which is
what padded rows of a captured graph have.

Dao et al., "Flash-Decoding for long-context inference", 2023.
"""

# mypy: disable-error-code="import-untyped,import-not-found,untyped-decorator,no-untyped-def,no-untyped-call,attr-defined"
# ruff: noqa: N803 - compile-time arguments are in capitals, as in all Triton code

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
import triton
import triton.language as tl

from inglenook.kernels.compilation import BF16, F32, FP8, I8, I32, Compilation

MAX_PARTS = 32
# padded head size -> (positions of a tile, warps, stages)
_TILES = {16: (64, 4, 3), 32: (64, 4, 3), 64: (64, 4, 3), 128: (64, 4, 3), 256: (32, 4, 2)}


@triton.jit
def load_tile(
    k_cache, v_cache, k_scales, v_scales, table, position, there, kv_head,
    KV_HEADS: tl.constexpr, D: tl.constexpr, PAGE: tl.constexpr, BLOCK: tl.constexpr, IS_QUANTISED: tl.constexpr,
):  # fmt: skip
    """Keys and values [N, BLOCK] at positions [N] of the sequence whose block table is `table`, and their scales [N]."""
    d = tl.arange(0, BLOCK)
    page = tl.load(table + position // PAGE, mask=there, other=0)
    at = (page.to(tl.int64) * KV_HEADS + kv_head) * PAGE + position % PAGE
    inside = there[:, None] & (d < D)[None, :]
    k = tl.load(k_cache + at[:, None] * D + d[None, :], mask=inside, other=0.0)
    v = tl.load(v_cache + at[:, None] * D + d[None, :], mask=inside, other=0.0)
    k_scale = at
    v_scale = at
    if IS_QUANTISED:
        k_scale = tl.load(k_scales + at, mask=there, other=0)
        v_scale = tl.load(v_scales + at, mask=there, other=0)
    return k, v, k_scale, v_scale


@triton.jit
def scores_of_tile(
    q, k, k_scale, visible, qk_scale, softcap, IS_QUANTISED: tl.constexpr, HAS_SOFTCAP: tl.constexpr
):
    """Scores times log2(e), float32 [M, N], -inf where not visible.  q: [M, D], k: [N, D]."""
    scores = tl.dot(q, tl.trans(k.to(q.dtype)), input_precision="ieee")
    if IS_QUANTISED:
        scores *= k_scale[None, :]
    scores *= qk_scale
    if HAS_SOFTCAP:
        # tanh(z) = 1 - 2 / (exp(2 z) + 1)
        scores = softcap * (1 - 2 / (tl.exp(2 * (scores / softcap)) + 1))
    return tl.where(visible, scores * 1.4426950408889634, float("-inf"))


@triton.jit
def accumulate(scores, v, v_scale, largest, total, acc, dtype: tl.constexpr, IS_QUANTISED: tl.constexpr):
    """One turn of the running softmax: new maximum [M], sum [M] and weighted values [M, D]."""
    new = tl.maximum(largest, tl.max(scores, 1))
    # a row that has seen nothing yet has -inf here; subtracting it from itself would give NaN
    base = tl.where(new == float("-inf"), 0.0, new)
    shrink = tl.exp2(largest - base)
    p = tl.exp2(scores - base[:, None])
    total = total * shrink + tl.sum(p, 1)
    if IS_QUANTISED:
        p = p * v_scale[None, :]
    acc = acc * shrink[:, None] + tl.dot(p.to(dtype), v.to(dtype), input_precision="ieee")
    return new, total, acc


@triton.jit(do_not_specialize=["table_width"])  # it changes as sequences grow, and must compile nothing then
def _decode_kernel(
    q, out, maxima, sums, k_cache, v_cache, k_scales, v_scales, tables, lengths, table_width, qk_scale, softcap,
    HEADS: tl.constexpr, KV_HEADS: tl.constexpr, D: tl.constexpr, WINDOW: tl.constexpr,
    HAS_SOFTCAP: tl.constexpr, IS_QUANTISED: tl.constexpr, PAGE: tl.constexpr, PARTS: tl.constexpr,
    M: tl.constexpr, N: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    sequence, kv_head, part = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    group: tl.constexpr = HEADS // KV_HEADS
    m, d = tl.arange(0, M), tl.arange(0, BLOCK)
    row = sequence.to(tl.int64) * HEADS + kv_head * group + m
    valid = (m < group)[:, None] & (d < D)[None, :]
    length = tl.load(lengths + sequence)
    queries = tl.load(q + row[:, None] * D + d[None, :], mask=valid, other=0)
    first = 0
    if WINDOW > 0:
        first = tl.maximum(length - WINDOW, 0)
    first_tile = first // N
    last_tile = tl.cdiv(length, N)
    per_part = tl.cdiv(last_tile - first_tile, PARTS)
    begin = first_tile + part * per_part
    end = tl.minimum(begin + per_part, last_tile)
    largest = tl.full((M,), float("-inf"), dtype=tl.float32)
    total = tl.zeros((M,), dtype=tl.float32)
    acc = tl.zeros((M, BLOCK), dtype=tl.float32)
    for tile in tl.range(begin, end):
        position = tile * N + tl.arange(0, N)
        visible = (position >= first) & (position < length)
        k, v, k_scale, v_scale = load_tile(
            k_cache, v_cache, k_scales, v_scales, tables + sequence.to(tl.int64) * table_width, position, visible,
            kv_head, KV_HEADS, D, PAGE, BLOCK, IS_QUANTISED,
        )  # fmt: skip
        scores = scores_of_tile(
            queries, k, k_scale, visible[None, :], qk_scale, softcap, IS_QUANTISED, HAS_SOFTCAP
        )
        largest, total, acc = accumulate(scores, v, v_scale, largest, total, acc, queries.dtype, IS_QUANTISED)
    y = acc / tl.where(total > 0, total, 1.0)[:, None]
    target = row * PARTS + part
    tl.store(out + target[:, None] * D + d[None, :], y.to(out.dtype.element_ty), mask=valid)
    if PARTS > 1:
        tl.store(maxima + target, largest, mask=m < group)
        tl.store(sums + target, total, mask=m < group)


@triton.jit
def _merge_kernel(parts, maxima, sums, out, D: tl.constexpr, PARTS: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    p, d = tl.arange(0, PARTS), tl.arange(0, BLOCK)
    largest = tl.load(maxima + row * PARTS + p)
    total = tl.load(sums + row * PARTS + p)
    top = tl.max(largest, 0)
    weight = total * tl.exp2(largest - tl.where(top == float("-inf"), 0.0, top))
    weight /= tl.maximum(tl.sum(weight, 0), 1e-38)
    y = tl.load(parts + (row * PARTS + p)[:, None] * D + d[None, :], mask=(d < D)[None, :], other=0)
    y = tl.sum(y * weight[:, None], 0)
    tl.store(out + row * D + d, y.to(out.dtype.element_ty), mask=d < D)


def part_count(sequences: int, kv_heads: int, max_context: int, num_sms: int) -> int:
    """Into how many parts contexts are cut: a power of two that fills the card about twice, 256 tokens each."""
    wanted = min(2 * num_sms // max(1, sequences * kv_heads), max_context // 256, MAX_PARTS)
    return 1 << max(0, wanted.bit_length() - 1) if wanted > 1 else 1


def decode_attention(
    q: torch.Tensor,
    k_cache: torch.Tensor,
    v_cache: torch.Tensor,
    block_tables: torch.Tensor,
    context_lengths: torch.Tensor,
    out: torch.Tensor,
    *,
    scale: float,
    window: int = 0,
    softcap: float = 0.0,
    k_scales: torch.Tensor | None = None,
    v_scales: torch.Tensor | None = None,
    parts: int = 1,
    workspace: torch.Tensor | None = None,
) -> None:
    """Attend with one query row a sequence; keys and values of this step are already stored.

    q, out: [B, H, D] of one float dtype, contiguous.  k_cache, v_cache: [blocks, H_kv, page, D], int8 with
    k_scales, v_scales float32 [blocks, H_kv, page].  block_tables: int32 [B, width].  context_lengths: int32 [B].
    parts: from `part_count`; above 1 with a float32 `workspace` of at least B * H * parts * (D + 2) numbers.
    """
    sequences, heads, size = q.shape
    kv_heads, page = k_cache.shape[1], k_cache.shape[2]
    check_shapes(q, out, k_cache, k_scales, block_tables)
    if not sequences:
        return
    target, maxima, sums = out, None, None
    if parts > 1:
        rows = sequences * heads * parts
        if workspace is None or workspace.numel() < rows * (size + 2):
            raise ValueError(f"{parts} parts need a workspace of {rows * (size + 2)} numbers")
        target, maxima, sums = workspace, workspace[rows * size :], workspace[rows * (size + 1) :]
    block = max(16, triton.next_power_of_2(size))
    tile, warps, stages = _tile(block, k_cache.element_size() == 1)
    _decode_kernel[(sequences, kv_heads, parts)](
        q, target, maxima, sums, k_cache, v_cache, k_scales, v_scales, block_tables, context_lengths,
        block_tables.stride(0), scale, softcap, HEADS=heads, KV_HEADS=kv_heads, D=size, WINDOW=window,
        HAS_SOFTCAP=softcap > 0, IS_QUANTISED=k_scales is not None, PAGE=page, PARTS=parts,
        M=max(16, triton.next_power_of_2(heads // kv_heads)), N=tile, BLOCK=block, num_warps=warps, num_stages=stages,
    )  # fmt: skip
    if parts > 1:
        _merge_kernel[(sequences * heads,)](
            target, maxima, sums, out, D=size, PARTS=parts, BLOCK=block, num_warps=1 if parts < 8 else 4
        )


def check_shapes(
    q: torch.Tensor,
    out: torch.Tensor,
    cache: torch.Tensor,
    scales: torch.Tensor | None,
    tables: torch.Tensor,
) -> None:
    """Refuse, with ValueError, what neither kernel of attention reads right."""
    if q.shape != out.shape or not q.is_contiguous() or not out.is_contiguous():
        raise ValueError(f"q and out must be contiguous and of one shape, got {q.shape}, {out.shape}")
    if q.shape[1] % cache.shape[1] or q.shape[2] != cache.shape[3]:
        raise ValueError(f"{q.shape[1]} heads of {q.shape[2]} do not fit a cache of {cache.shape}")
    if (cache.dtype == torch.int8) != (scales is not None):
        raise ValueError("an int8 cache needs scales, and no other has them")
    if tables.dtype != torch.int32 or tables.stride(1) != 1:
        raise ValueError("block tables must be int32 and contiguous along a row")


def _tile(block: int, is_narrow: bool) -> tuple[int, int, int]:
    """Positions of a tile, warps, stages; the widest heads would spill at the full tile from a cache of bytes."""
    tile, warps, stages = _TILES[block]
    return (tile // 2 if is_narrow and block == 256 else tile), warps, stages


@dataclass(frozen=True, slots=True)
class AttentionCase:
    """What both kernels of attention are compiled for: a head's size, how many, and the type of the cache."""

    size: int
    heads: int
    kv_heads: int
    cache: str

    @property
    def name(self) -> str:
        """For people."""
        return f"{self.size} {self.cache[1:]}"

    @property
    def block(self) -> int:
        """The padded head size."""
        return int(triton.next_power_of_2(self.size))

    @property
    def oldest(self) -> int:
        """The lowest compute capability with this cache."""
        return 89 if self.cache == FP8 else 80

    @property
    def arguments(self) -> dict[str, str | None]:
        """Types of the run-time arguments that both have."""
        scales = F32 if self.cache == I8 else None
        return {
            "k_cache": self.cache, "v_cache": self.cache, "k_scales": scales, "v_scales": scales, "tables": I32,
            "lengths": I32, "table_width": "i32", "qk_scale": "fp32", "softcap": "fp32",
        }  # fmt: skip

    def constants(self, window: int, has_softcap: bool) -> dict[str, Any]:
        """The compile-time arguments that both have."""
        return {
            "HEADS": self.heads, "KV_HEADS": self.kv_heads, "D": self.size, "WINDOW": window,
            "HAS_SOFTCAP": has_softcap, "IS_QUANTISED": self.cache == I8, "PAGE": 16, "BLOCK": self.block,
        }  # fmt: skip


def attention_cases() -> list[AttentionCase]:
    """Head sizes and caches that are shipped."""
    shapes = [(64, 9, 3), (96, 32, 32), (128, 32, 8), (256, 8, 4)]
    return [AttentionCase(*shape, cache) for shape in shapes for cache in (BF16, I8, FP8)]


def compilations() -> list[Compilation]:
    """Every configuration that is shipped: head sizes, caches, windows, soft caps, one part and many."""
    found = []
    for case in attention_cases():
        tile, warps, stages = _tile(case.block, case.cache in (I8, FP8))
        for window, has_softcap, parts in [(0, False, 1), (0, False, 16), (4096, True, 16)]:
            space = F32 if parts > 1 else None
            found.append(
                Compilation(
                    f"decode attention {case.name}, window {window}, {parts} parts",
                    _decode_kernel,
                    {"q": BF16, "out": space or BF16, "maxima": space, "sums": space, **case.arguments},
                    case.constants(window, has_softcap) | {"PARTS": parts, "M": 16, "N": tile},
                    num_warps=warps,
                    num_stages=stages,
                    oldest=case.oldest,
                )
            )
    for size in sorted({case.size for case in attention_cases()}):
        block = triton.next_power_of_2(size)
        for parts in (2, 32):
            found.append(
                Compilation(
                    f"merge of {parts} parts of {size}",
                    _merge_kernel,
                    {"parts": F32, "maxima": F32, "sums": F32, "out": BF16},
                    {"D": size, "PARTS": parts, "BLOCK": block},
                    num_warps=1 if parts < 8 else 4,
                )
            )
    return found
