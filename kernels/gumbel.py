"""Gumbel noise from a counter-based generator, so that a draw depends on its key and on nothing else.

The arg-max of (logit / temperature + noise) is a draw from the softmax (Gumbel-max). The noise of a token is a
function of (seed, choice, position, token id) alone: not of the batch, of preemption, of chunking or of speculation.

    base  = mix(mix(mix(seed) + choice) + position)
    bits  = mix(base + (token + 1) * G)        G = 0x9E3779B97F4A7C15
    u     = (top 53 bits + 0.5) / 2^53         in (0, 1)
    noise = -log(-log(u))

`mix` is the finaliser of SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number generators",
2014), all arithmetic modulo 2^64.
"""

from __future__ import annotations

import torch

_MASK = (1 << 64) - 1
_GAMMA = 0x9E3779B97F4A7C15
_FIRST = 0xBF58476D1CE4E5B9
_SECOND = 0x94D049BB133111EB


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
