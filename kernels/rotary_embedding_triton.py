"""Rotary embedding and storing of keys and values on a GPU, one kernel a layer: one program a token and head.

Queries and keys are normalised (if the model does), rotated as `rotary_embedding.py` says, and queries written out;
keys and values go into their slot of the paged cache, quantised where it is:

    int8            value = round(x / scale), scale = absmax / 127 of the token's head, kept beside it in float32
    float8_e4m3fn   x itself, held within +-448

Keys of a model with a key bias are brought into a range before they are stored as int8, (key - offset) / unit, and
queries multiplied by the unit, a power of two. Slot -1 stores nothing.
"""

# mypy: disable-error-code="import-untyped,import-not-found,untyped-decorator,no-untyped-def,no-untyped-call,attr-defined"
# ruff: noqa: N803 - compile-time arguments are in capitals, as in all Triton code

from __future__ import annotations

import torch
import triton
import triton.language as tl

from inglenook.kernels.compilation import BF16, F32, FP8, I8, I64, Compilation


@triton.jit
def _store(cache, scales, slot, head, x, d, D: tl.constexpr, KV_HEADS: tl.constexpr, PAGE: tl.constexpr):
    row = (slot // PAGE * KV_HEADS + head) * PAGE + slot % PAGE
    kind = cache.dtype.element_ty
    if kind == tl.int8:
        largest = tl.max(tl.abs(x), 0)
        tl.store(scales + row, largest / 127.0)
        x = x * tl.where(largest > 0, 127.0 / largest, 0.0)
        # adding and taking away 1.5 * 2^23 rounds to the nearest integer, halves to even
        x = (x + 12582912.0) - 12582912.0
    elif kind == tl.float8e4nv:
        x = tl.minimum(tl.maximum(x, -448.0), 448.0)
    tl.store(cache + row * D + d, x.to(kind), mask=d < D)


@triton.jit
def _kernel(
    qkv, cos, sin, positions, slots, q_weight, k_weight, offsets, units, q_out, k_cache, v_cache, k_scales, v_scales, eps,
    HEADS: tl.constexpr, KV_HEADS: tl.constexpr, D: tl.constexpr, PAIRS: tl.constexpr, HAS_NORM: tl.constexpr,
    HAS_RANGE: tl.constexpr, PAGE: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    token, head = tl.program_id(0).to(tl.int64), tl.program_id(1)
    d = tl.arange(0, BLOCK)
    inside = d < D
    at = qkv + (token * (HEADS + 2 * KV_HEADS) + head) * D
    x = tl.load(at + d, mask=inside, other=0).to(tl.float32)
    slot = tl.load(slots + token)
    if head < HEADS + KV_HEADS:
        partner = tl.where(d < PAIRS, d + PAIRS, d - PAIRS)
        rotates = d < 2 * PAIRS
        y = tl.load(at + partner, mask=rotates, other=0).to(tl.float32)
        if HAS_NORM:
            scale = tl.rsqrt(tl.sum(x * x, 0) / D + eps)
            weight = q_weight if head < HEADS else k_weight
            x *= scale * tl.load(weight + d, mask=inside, other=0)
            y *= scale * tl.load(weight + partner, mask=rotates, other=0)
        if PAIRS > 0:
            angle = tl.load(positions + token) * PAIRS + tl.where(d < PAIRS, d, d - PAIRS)
            c = tl.load(cos + angle, mask=rotates, other=1.0)
            s = tl.load(sin + angle, mask=rotates, other=0.0)
            x = x * c + tl.where(d < PAIRS, -y, y) * s
        if HAS_RANGE:
            kv_head = tl.where(head < HEADS, head // (HEADS // KV_HEADS), head - HEADS)
            unit = tl.load(units + kv_head * D + d, mask=inside, other=1.0)
            if head < HEADS:
                x *= unit
            else:
                x = (x - tl.load(offsets + kv_head * D + d, mask=inside, other=0.0)) / unit
        if head < HEADS:
            tl.store(q_out + (token * HEADS + head) * D + d, x.to(q_out.dtype.element_ty), mask=inside)
        elif slot >= 0:
            _store(k_cache, k_scales, slot, head - HEADS, x, d, D, KV_HEADS, PAGE)
    elif slot >= 0:
        _store(v_cache, v_scales, slot, head - HEADS - KV_HEADS, x, d, D, KV_HEADS, PAGE)


def rotate_and_store(
    qkv: torch.Tensor,
    tables: tuple[torch.Tensor, torch.Tensor] | None,
    positions: torch.Tensor,
    slots: torch.Tensor,
    q_out: torch.Tensor,
    k_cache: torch.Tensor,
    v_cache: torch.Tensor,
    *,
    k_scales: torch.Tensor | None = None,
    v_scales: torch.Tensor | None = None,
    norms: tuple[torch.Tensor, torch.Tensor] | None = None,
    eps: float = 0.0,
    keys: tuple[torch.Tensor, torch.Tensor] | None = None,
) -> None:
    """Rotate queries and keys, write the queries, store keys and values.

    qkv: [T, (H + 2 H_kv) D], contiguous.  tables: cosines and sines float32 [context, P]; None rotates nothing.
    positions, slots: int64 [T].  q_out: [T, H, D].  k_cache, v_cache: [blocks, H_kv, page, D] in float32, float16,
    bfloat16, float8_e4m3fn, or int8 with scales float32 [blocks, H_kv, page].
    norms: weights float32 [D] of the norms of each query and key head, or None.
    keys: offset and unit of the keys, float32 [H_kv, D] and contiguous, or None.
    """
    tokens, heads, size = q_out.shape
    kv_heads, page = k_cache.shape[1], k_cache.shape[2]
    if qkv.shape != (tokens, (heads + 2 * kv_heads) * size) or not qkv.is_contiguous():
        raise ValueError(
            f"qkv must be contiguous [{tokens}, {(heads + 2 * kv_heads) * size}], got {qkv.shape}"
        )
    if (k_cache.dtype == torch.int8) != (k_scales is not None and v_scales is not None):
        raise ValueError("an int8 cache needs k_scales and v_scales, and no other has them")
    if tokens:
        cos, sin = tables or (None, None)
        q_weight, k_weight = norms or (None, None)
        offsets, units = keys or (None, None)
        _kernel[(tokens, heads + 2 * kv_heads)](
            qkv, cos, sin, positions, slots, q_weight, k_weight, offsets, units, q_out, k_cache, v_cache, k_scales,
            v_scales, eps, HEADS=heads, KV_HEADS=kv_heads, D=size, PAIRS=0 if tables is None else tables[0].shape[1],
            HAS_NORM=norms is not None, HAS_RANGE=keys is not None, PAGE=page,
            BLOCK=triton.next_power_of_2(size), num_warps=1,
        )  # fmt: skip


def compilations() -> list[Compilation]:
    """Every configuration that is shipped."""
    found = []
    for size, heads, kv_heads in [(64, 9, 3), (96, 32, 32), (128, 32, 8), (256, 8, 4)]:
        for cache in (BF16, I8, FP8):
            # a norm in bfloat16, a range in 8 bits: what models have
            for has_more in (False, True):
                scales = F32 if cache == I8 else None
                norm = F32 if has_more and cache == BF16 else None
                keys = F32 if has_more and cache != BF16 else None
                name = "" if not has_more else ", norms" if norm else ", range"
                found.append(
                    Compilation(
                        f"rotary and store, {size} {cache[1:]}{name}",
                        _kernel,
                        {
                            "qkv": BF16, "cos": F32, "sin": F32, "positions": I64, "slots": I64,
                            "q_weight": norm, "k_weight": norm, "offsets": keys, "units": keys, "q_out": BF16, "k_cache": cache,
                            "v_cache": cache, "k_scales": scales, "v_scales": scales, "eps": "fp32",
                        },
                        {
                            "HEADS": heads, "KV_HEADS": kv_heads, "D": size, "PAIRS": size // 2,
                            "HAS_NORM": norm is not None, "HAS_RANGE": keys is not None, "PAGE": 16, "BLOCK": triton.next_power_of_2(size),
                        },
                        num_warps=1,
                        oldest=89 if cache == FP8 else 80,
                    )
                )  # fmt: skip
    return found
