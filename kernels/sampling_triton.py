"""Choosing tokens on a GPU without a sort: one program a row, the same draw as `engine/sampler.py` makes.

Filters are thresholds: the value at which top-k or top-p cuts is found by bisection over the 32 bits of a float32
(an order-preserving integer map), each step one pass over the row, which lies in the card's cache. What is left
gets the keyed Gumbel noise of `gumbel.py` in float64; the arg-max, the lowest id of equals, is the draw.
"""

# mypy: disable-error-code="import-untyped,import-not-found,untyped-decorator,no-untyped-def,no-untyped-call,attr-defined"
# ruff: noqa: N803 - compile-time arguments are in capitals, as in all Triton code

from __future__ import annotations

import torch
import triton
import triton.language as tl

from inglenook.kernels.compilation import F32, I64, Compilation
from inglenook.kernels.gumbel import mix

_BLOCK = 2048


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
        mass += tl.where(inside, tl.exp((x - top).to(tl.float64) / temperature), 0.0)
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
        one = tl.exp((_value(high) - top).to(tl.float64) / temperature)
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
        score = (x - top).to(tl.float64) / temperature
        kept = (token < size) & (key >= floor) & ((key > floor) | (token < edge))
        kept &= (score >= least) & (x > float("-inf"))
        bits = _mix((token.to(tl.uint64) + 1) * 0x9E3779B97F4A7C15 + base)
        uniform = ((bits >> 11).to(tl.float64) + 0.5) * 1.1102230246251565e-16
        noise = -tl.log(-tl.log(uniform))
        score = tl.where(kept, score + tl.where(is_greedy, 0.0, noise), float("-inf"))
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
        mass += tl.where(inside, tl.exp((x - top).to(tl.float64) / temperature), 0.0)
    return tl.sum(mass, 0)


def noise_base(seed: int, choice: int, position: int) -> int:
    """The key of a row's noise as an int64: `base` of `gumbel.py`."""
    value = mix(mix(mix(seed) + choice) + position)
    return value - (1 << 64) if value >> 63 else value


def sample_rows(
    logits: torch.Tensor,
    bases: torch.Tensor,
    temperatures: torch.Tensor,
    top_ks: torch.Tensor,
    top_ps: torch.Tensor,
    min_ps: torch.Tensor,
    out: torch.Tensor,
) -> None:
    """Choose a token of each row.

    logits: float32 [R, V], rows contiguous; -inf forbids a token.  bases: int64 [R] from `noise_base`.
    temperatures, top_ps, min_ps: float32 [R]; below 1e-5 a temperature means arg-max; 1.0 and 0.0 filter nothing.
    top_ks: int32 [R], 0 for all.  out: int64 [R]; -1 where the best value is not a finite number.
    """
    if logits.dtype != torch.float32 or logits.stride(1) != 1:
        raise ValueError("logits must be float32 with contiguous rows")
    if logits.shape[0]:
        _kernel[(logits.shape[0],)](
            logits, bases, temperatures, top_ks, top_ps, min_ps, out, logits.shape[1], logits.stride(0),
            BLOCK=_BLOCK, num_warps=8,
        )  # fmt: skip


def compilations() -> list[Compilation]:
    """Every configuration that is shipped."""
    arguments: dict[str, str | None] = {
        "logits": F32, "bases": I64, "temperatures": F32, "top_ks": "*i32", "top_ps": F32, "min_ps": F32,
        "out": I64, "size": "i32", "stride": "i32",
    }  # fmt: skip
    return [Compilation("sampling", _kernel, arguments, {"BLOCK": _BLOCK}, num_warps=8)]
