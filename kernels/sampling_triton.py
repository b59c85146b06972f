"""Choosing tokens on a GPU without a sort: the same draws as `engine/sampler.py` makes.

Without filters (`draw_rows`) many programs share a row, and a second kernel takes the best of theirs. With filters
(`sample_rows`) one program has a row, and filters are thresholds: the value at which top-k or top-p cuts is found by
bisection over the 32 bits of a float32 (an order-preserving integer map), each step one pass over the row, which lies in
the card's cache. What is left gets the keyed Gumbel noise of `gumbel.py` in float64; the arg-max, the lowest id of
equals, is the draw.
"""

# mypy: disable-error-code="import-untyped,import-not-found,untyped-decorator,no-untyped-def,no-untyped-call,attr-defined"
# ruff: noqa: N803 - compile-time arguments are in capitals, as in all Triton code

from __future__ import annotations

import torch
import triton
import triton.language as tl

from inglenook.kernels.compilation import F32, F64, I32, I64, Compilation

_BLOCK = 2048
_DRAW_BLOCK = 1024


@triton.jit
def _ordered(x):
    """int64 that orders as float32 does: 0 .. 2^32 - 1."""
    bits = tl.where(x == 0, 0.0, x).to(tl.int32, bitcast=True)  # -0 is 0
    return tl.where(bits < 0, ~bits, bits ^ -2147483648).to(tl.uint32, bitcast=True).to(tl.int64)


@triton.jit
def _mix(x):
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9
    x = (x ^ (x >> 27)) * 0x94D049BB133111EB
    return x ^ (x >> 31)


@triton.jit
def _noise(base, token):
    bits = _mix((token.to(tl.uint64) + 1) * 0x9E3779B97F4A7C15 + base)
    uniform = ((bits >> 11).to(tl.float64) + 0.5) * 1.1102230246251565e-16
    return -tl.log(-tl.log(uniform))


@triton.jit
def _draw_kernel(logits, bases, temperatures, scores, ids, size, stride, BLOCK: tl.constexpr):
    index, part, parts = tl.program_id(0), tl.program_id(1), tl.num_programs(1)
    token = part * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(logits + index.to(tl.int64) * stride + token, mask=token < size, other=float("-inf"))
    temperature = tl.load(temperatures + index)
    is_greedy = temperature < 1e-5
    base = tl.load(bases + index).to(tl.uint64, bitcast=True)
    score = x.to(tl.float64) / tl.where(is_greedy, 1.0, temperature)
    score += tl.where(is_greedy, 0.0, _noise(base, token))
    score = tl.where(x > float("-inf"), score, float("-inf"))
    here = tl.max(score, 0)
    first = tl.min(tl.where(score == here, token, size), 0)
    is_bad = tl.max(((x != x) | (x == float("inf"))).to(tl.int32), 0) > 0
    at = index.to(tl.int64) * parts + part
    tl.store(scores + at, tl.where(is_bad, float("nan"), here))
    tl.store(ids + at, first)


@triton.jit
def _pick_kernel(scores, ids, out, parts, PARTS: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    p = tl.arange(0, PARTS)
    score = tl.load(scores + row * parts + p, mask=p < parts, other=float("-inf"))
    token = tl.load(ids + row * parts + p, mask=p < parts, other=2147483647)
    is_bad = tl.max((score != score).to(tl.int32), 0) > 0
    score = tl.where(score != score, float("-inf"), score)
    best = tl.max(score, 0)
    chosen = tl.min(tl.where(score == best, token, 2147483647), 0)
    tl.store(out + row, tl.where((best > float("-inf")) & (is_bad == 0), chosen, -1).to(tl.int64))


@triton.jit
def _mass_above(row, size, threshold, top, temperature, floor, BLOCK: tl.constexpr):
    """Number and probability mass (relative to the best) of values above `threshold` and not below `floor`."""
    count = tl.zeros((BLOCK,), dtype=tl.int32)
    mass = tl.zeros((BLOCK,), dtype=tl.float64)
    for start in range(0, size, BLOCK):
        token = start + tl.arange(0, BLOCK)
        x = tl.load(row + token, mask=token < size, other=float("-inf"))
        key = _ordered(x)
        inside = (token < size) & (key > threshold) & (key >= floor)
        count += inside.to(tl.int32)
        mass += tl.where(inside, tl.exp((x.to(tl.float64) - top.to(tl.float64)) / temperature), 0.0)
    return tl.sum(count, 0), tl.sum(mass, 0)


@triton.jit
def _equal_before(row, size, key, limit, BLOCK: tl.constexpr):
    """The id below which lie the first `limit` tokens of value `key`."""
    found = 0
    end = size
    for start in range(0, size, BLOCK):
        token = start + tl.arange(0, BLOCK)
        x = tl.load(row + token, mask=token < size, other=float("-inf"))
        same = ((token < size) & (_ordered(x) == key)).to(tl.int32)
        order = tl.cumsum(same, 0) + found
        past = tl.where((same > 0) & (order > limit), token, size)
        end = tl.minimum(end, tl.min(past, 0))
        found += tl.sum(same, 0)
    return end


@triton.jit
def _kernel(logits, bases, temperatures, top_ks, top_ps, min_ps, out, size, stride, BLOCK: tl.constexpr):
    index = tl.program_id(0)
    row = logits + index.to(tl.int64) * stride
    best = tl.full((BLOCK,), float("-inf"), dtype=tl.float32)
    is_nan = tl.zeros((BLOCK,), dtype=tl.int32)
    for start in range(0, size, BLOCK):
        token = start + tl.arange(0, BLOCK)
        x = tl.load(row + token, mask=token < size, other=float("-inf"))
        is_nan |= (x != x).to(tl.int32)
        best = tl.maximum(best, x)
    top = tl.max(best, 0)
    temperature = tl.load(temperatures + index).to(tl.float64)
    is_greedy = temperature < 1e-5
    temperature = tl.where(is_greedy, 1.0, temperature)
    top_k, top_p = tl.load(top_ks + index), tl.load(top_ps + index).to(tl.float64)
    min_p = tl.load(min_ps + index).to(tl.float64)
    floor = tl.full((), 0, dtype=tl.int64)
    edge = tl.full((), size, dtype=tl.int32)  # tokens of value `floor` count below this id only
    if (top_k > 0) & (top_k < size):
        low = tl.full((), -1, dtype=tl.int64)
        high = tl.full((), 4294967295, dtype=tl.int64)
        while high - low > 1:
            middle = (low + high) // 2
            count, _ = _mass_above(row, size, middle, top, temperature, floor, BLOCK)
            low = tl.where(count >= top_k, middle, low)
            high = tl.where(count >= top_k, high, middle)
        count, _ = _mass_above(row, size, high, top, temperature, floor, BLOCK)
        floor = high
        edge = _equal_before(row, size, floor, top_k - count, BLOCK)
    if top_p < 1:
        _, above = _mass_above(row, size, floor, top, temperature, floor, BLOCK)
        at_floor = tl.full((), 0.0, dtype=tl.float64)
        if floor > 0:
            at_floor = _mass_of(row, size, floor, edge, top, temperature, BLOCK)
        target = top_p * (above + at_floor)
        low = floor - 1
        high = tl.full((), 4294967295, dtype=tl.int64)
        while high - low > 1:
            middle = (low + high) // 2
            _, mass = _mass_above(row, size, middle, top, temperature, floor, BLOCK)
            low = tl.where(mass >= target, middle, low)
            high = tl.where(mass >= target, high, middle)
        # `high` is the lowest value whose better ones hold less than top_p: it is kept as often as it takes
        _, mass = _mass_above(row, size, high, top, temperature, floor, BLOCK)
        one = tl.exp((_value(high).to(tl.float64) - top.to(tl.float64)) / temperature)
        times = tl.ceil((target - mass) / tl.maximum(one, 1e-300))
        limit = tl.maximum(tl.minimum(times, 2147483000.0), 1.0).to(tl.int32)
        end = _equal_before(row, size, high, limit, BLOCK)
        edge = tl.where(high == floor, tl.minimum(edge, end), end)
        floor = high
    least = tl.full((), float("-inf"), dtype=tl.float64)
    if min_p > 0:
        least = tl.log(min_p)
    base = tl.load(bases + index).to(tl.uint64, bitcast=True)
    best_score = tl.full((), float("-inf"), dtype=tl.float64)
    chosen = tl.full((), 0, dtype=tl.int32)
    for start in range(0, size, BLOCK):
        token = start + tl.arange(0, BLOCK)
        x = tl.load(row + token, mask=token < size, other=float("-inf"))
        key = _ordered(x)
        score = (x.to(tl.float64) - top.to(tl.float64)) / temperature
        kept = (token < size) & (key >= floor) & ((key > floor) | (token < edge))
        kept &= (score >= least) & (x > float("-inf"))
        score = tl.where(kept, score + tl.where(is_greedy, 0.0, _noise(base, token)), float("-inf"))
        here = tl.max(score, 0)
        first = tl.min(tl.where(score == here, token, size), 0)
        is_better = here > best_score
        best_score = tl.where(is_better, here, best_score)
        chosen = tl.where(is_better, first, chosen)
    is_number = (top > float("-inf")) & (top < float("inf")) & (tl.max(is_nan, 0) == 0)
    tl.store(out + index, tl.where(is_number, chosen, -1).to(tl.int64))


@triton.jit
def _value(key):
    """The float32 whose order `key` is."""
    bits = key.to(tl.uint32).to(tl.int32, bitcast=True)
    return tl.where(bits < 0, bits ^ -2147483648, ~bits).to(tl.float32, bitcast=True)


@triton.jit
def _mass_of(row, size, key, edge, top, temperature, BLOCK: tl.constexpr):
    mass = tl.zeros((BLOCK,), dtype=tl.float64)
    for start in range(0, size, BLOCK):
        token = start + tl.arange(0, BLOCK)
        x = tl.load(row + token, mask=token < size, other=float("-inf"))
        inside = (token < size) & (_ordered(x) == key) & (token < edge)
        mass += tl.where(inside, tl.exp((x.to(tl.float64) - top.to(tl.float64)) / temperature), 0.0)
    return tl.sum(mass, 0)


def draw_parts(size: int) -> int:
    """How many programs share a row of `size` logits."""
    return int(triton.cdiv(size, _DRAW_BLOCK))


def draw_rows(
    logits: torch.Tensor,
    bases: torch.Tensor,
    temperatures: torch.Tensor,
    out: torch.Tensor,
    scores: torch.Tensor,
    ids: torch.Tensor,
) -> None:
    """Choose a token of each row, from all of them.

    logits: float32 [R, V], rows contiguous; -inf forbids a token.  bases: int64 [R], `noise_base` of `gumbel.py`.
    temperatures: float64 [R]; below 1e-5 means arg-max.  out: int64 [R]; -1 where the best value is not a finite number.
    scores, ids: float64 and int32 work space of at least R * draw_parts(V) numbers.
    """
    _check(logits, temperatures)
    rows, parts = logits.shape[0], draw_parts(logits.shape[1])
    if rows:
        _draw_kernel[(rows, parts)](
            logits, bases, temperatures, scores, ids, logits.shape[1], logits.stride(0), BLOCK=_DRAW_BLOCK, num_warps=4
        )  # fmt: skip
        _pick_kernel[(rows,)](scores, ids, out, parts, PARTS=triton.next_power_of_2(parts), num_warps=4)


def sample_rows(
    logits: torch.Tensor,
    bases: torch.Tensor,
    temperatures: torch.Tensor,
    top_ks: torch.Tensor,
    top_ps: torch.Tensor,
    min_ps: torch.Tensor,
    out: torch.Tensor,
) -> None:
    """Choose a token of each row, from those that its filters keep.

    logits: float32 [R, V], rows contiguous; -inf forbids a token.  bases: int64 [R], `noise_base` of `gumbel.py`.
    temperatures, top_ps, min_ps: float64 [R]; below 1e-5 a temperature means arg-max; 1.0 and 0.0 filter nothing.
    top_ks: int32 [R], 0 for all.  out: int64 [R]; -1 where the best value is not a finite number.
    """
    _check(logits, temperatures)
    if logits.shape[0]:
        _kernel[(logits.shape[0],)](
            logits, bases, temperatures, top_ks, top_ps, min_ps, out, logits.shape[1], logits.stride(0),
            BLOCK=_BLOCK, num_warps=8,
        )  # fmt: skip


def _check(logits: torch.Tensor, temperatures: torch.Tensor) -> None:
    if logits.dtype != torch.float32 or logits.stride(1) != 1 or temperatures.dtype != torch.float64:
        raise ValueError("logits must be float32 with contiguous rows, temperatures float64")


def compilations() -> list[Compilation]:
    """Every configuration that is shipped."""
    rows: dict[str, str | None] = {
        "logits": F32, "bases": I64, "temperatures": F64, "size": "i32", "stride": "i32",
    }  # fmt: skip
    filters = {"top_ks": I32, "top_ps": F64, "min_ps": F64, "out": I64}
    space = {"scores": F64, "ids": I32}
    picks: dict[str, str | None] = {**space, "out": I64, "parts": "i32"}
    return [
        Compilation("sampling with filters", _kernel, {**rows, **filters}, {"BLOCK": _BLOCK}, num_warps=8),
        Compilation("sampling", _draw_kernel, {**rows, **space}, {"BLOCK": _DRAW_BLOCK}),
        *(Compilation(f"best of {n} parts", _pick_kernel, picks, {"PARTS": n}) for n in (32, 256)),
    ]
