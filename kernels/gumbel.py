"""Gumbel noise from a counter-based generator, so that a draw depends on its key and on nothing else.

The arg-max of (logit / temperature + noise) is a draw from the softmax (Gumbel-max). The noise of a token is a
function of (seed, choice, position, token id) alone: not of the batch, of preemption, of chunking or of speculation.

    base  = mix(mix(mix(seed) + choice) + position)
    bits  = mix(base + (token + 1) * G)        G = 0x9E3779B97F4A7C15
    u     = (top 53 bits + 0.5) / 2^53         in (0, 1)
    noise = -log(-log(u))

`mix` is the finaliser of SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number generators",
2014), all arithmetic modulo 2^64.

`gumbel_noise` is the definition; `gumbel_argmax` finds the same winner with the noise of a few tokens only. It is
written in NumPy on purpose: PyTorch would share each of its passes among threads, which then spin for milliseconds on
the cores that the next step needs.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
import torch

_MASK = (1 << 64) - 1
_GAMMA = 0x9E3779B97F4A7C15
_FIRST = 0xBF58476D1CE4E5B9
_SECOND = 0x94D049BB133111EB

_BLOCK = 16384  # tokens looked at together: their numbers stay in a core's own cache
_FARTHEST = 60.0  # no noise bridges more: the largest is 54 * log(2), the least above -4
_SLACK = 1.0001  # float32 may err by so much in a race's time, and by far less


def _signed(value: int) -> int:
    """Return the int64 with the same bits as an unsigned 64-bit `value`."""
    value &= _MASK
    return value - (1 << 64) if value >> 63 else value


def mix(value: int) -> int:
    """Apply SplitMix64's finaliser to one unsigned 64-bit integer."""
    value &= _MASK
    value = (value ^ (value >> 30)) * _FIRST & _MASK
    value = (value ^ (value >> 27)) * _SECOND & _MASK
    return value ^ (value >> 31)


def noise_base(seed: int, choice: int, position: int) -> int:
    """Return `base` of a row's noise as the int64 of the same bits, which is how the GPU's kernels take it."""
    return _signed(mix(mix(mix(seed) + choice) + position))


def _shift(x: torch.Tensor, bits: int) -> torch.Tensor:
    """Logical right shift of int64."""
    return (x >> bits) & ((1 << (64 - bits)) - 1)


def _mix_tensor(x: torch.Tensor) -> torch.Tensor:
    x = (x ^ _shift(x, 30)) * _signed(_FIRST)
    x = (x ^ _shift(x, 27)) * _signed(_SECOND)
    return x ^ _shift(x, 31)


def gumbel_noise(seed: int, choice: int, position: int, token_ids: torch.Tensor) -> torch.Tensor:
    """Return the noise of each token id.

    seed: 0 .. 2^64 - 1.  choice: index of the completion among n.  position: of the token that is drawn.
    token_ids: int64 [N].  Returns float64 [N].
    """
    base = mix(mix(mix(seed) + choice) + position)
    bits = _mix_tensor((token_ids + 1) * _signed(_GAMMA) + _signed(base))
    uniform = (_shift(bits, 11).double() + 0.5) * 2.0**-53
    return -torch.log(-torch.log(uniform))


def gumbel_argmax(
    logits: npt.NDArray[np.float32],
    temperature: float,
    *,
    seed: int,
    choice: int,
    position: int,
    token_ids: npt.NDArray[np.int64] | None = None,
) -> int:
    """Return the index of the largest logit / temperature + noise, in float64; the first of equals.

    logits: float32 [N], the largest finite, -inf allowed.  temperature: above 0.
    token_ids: int64 [N], ascending, whose noise is meant; None for 0 .. N - 1.

    The arg-max is also the winner of a race: with u the token's uniform number and w = exp((logit - largest) /
    temperature), the least -log(u) / w. As 1 - u < -log(u), (1 - u) / w bounds a time from below, and 31 bits of u give
    that in float32 for all tokens. Only those whose bound does not exceed the best time so far need their noise.
    """
    base = mix(mix(mix(seed) + choice) + position)
    largest = logits.max()
    inverse = np.float32(1.0 / temperature)
    candidates: list[int] = []
    best = math.inf
    for start in range(0, len(logits), _BLOCK):
        part = logits[start : start + _BLOCK]
        ids = np.arange(start, start + len(part)) if token_ids is None else token_ids[start : start + _BLOCK]
        with np.errstate(over="ignore"):  # far enough either way
            bounds = largest - part
            bounds *= inverse
        np.minimum(bounds, np.float32(_FARTHEST), out=bounds)
        np.exp(bounds, out=bounds)
        bounds *= _complements(base, ids)
        while float(bounds[first := int(bounds.argmin())]) <= best * _SLACK:
            bounds[first] = np.inf
            candidates.append(start + first)
            time = -math.log(_uniform(base, int(ids[first])))
            best = min(best, time * math.exp(min(float(largest - part[first]) / temperature, 700.0)))
    if len(candidates) == 1:
        return candidates[0]
    order = np.array(sorted(candidates))
    scaled = (logits[order].astype(np.float64) - float(largest)) / temperature
    asked = order if token_ids is None else token_ids[order]
    noise = gumbel_noise(seed, choice, position, torch.from_numpy(asked)).numpy()
    return int(order[(scaled + noise).argmax()])


def _uniform(base: int, token_id: int) -> float:
    """The uniform number of one token, in Python's integers."""
    return ((mix(base + (token_id + 1) * _GAMMA) >> 11) + 0.5) * 2.0**-53


def _complements(base: int, token_ids: npt.NDArray[np.int64]) -> npt.NDArray[np.float32]:
    """1 - u of each token id, rounded down to a multiple of 2^-31; the last step of `mix` does not reach these bits."""
    x = token_ids.astype(np.uint64)
    shifted = np.empty_like(x)
    x *= np.uint64(_GAMMA)
    x += np.uint64((base + _GAMMA) & _MASK)
    x ^= np.right_shift(x, np.uint64(30), out=shifted)
    x *= np.uint64(_FIRST)
    x ^= np.right_shift(x, np.uint64(27), out=shifted)
    x *= np.uint64(_SECOND)
    np.invert(x, out=x)
    x >>= np.uint64(33)
    complements = x.view(np.int64).astype(np.float32)
    complements *= np.float32(2.0**-31)
    return complements
