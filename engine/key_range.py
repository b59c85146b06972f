"""The range of a model's keys, by which they are brought to one size before they are stored as int8.

The biases of some models' keys (Qwen2's) make a few pairs of a head twenty times larger than all others. An int8 cache
has one scale for a head of a token, so those pairs would leave the others five or six levels. Two things take the
biases' size away and leave what attention computes as it was:

- Softmax does not see one number added to all scores of a query, so it does not see a constant vector taken from all
  keys: the bias after rotation, averaged over positions. It is the whole bias in slowly turning pairs, little in fast.
- A score is a sum over pairs, so a pair of the keys may be divided by a number that the queries' pair is multiplied
  by (Lin et al., "QServe", 2024, smooth keys so). Here it is about the largest that the pair will hold: what the
  average left of the bias, and four deviations of the product. A power of two, so that it rounds nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch

from inglenook.engine.backend import WeightSource
from inglenook.engine.models.rope import rope_frequencies
from inglenook.engine.models.spec import ModelSpec
from inglenook.kernels.dequantize import dequantize

# Positions that the bias is averaged over, every fourth. Slow pairs go on turning after them: with 16,384 a model of
# 32,768 positions is as true at the end as at the beginning, with 4,096 half as true.
_POSITIONS = 16384
_STRIDE = 4
_DEVIATIONS = 4.0
_SMALLEST = 2.0**-10  # of a head's largest pair

_Doubles = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class KeyRange:
    """One layer's: float32 [H_kv, D] each. Stored are (key - offset) / unit, and queries are multiplied by unit."""

    offset: npt.NDArray[np.float32]
    unit: npt.NDArray[np.float32]


def key_range(spec: ModelSpec, source: WeightSource, layer: int) -> KeyRange | None:
    """The range of a layer's keys after rotation, from its weights; None without a bias or with a norm after it.

    Raises:
        ModelFileError: a tensor is missing.
    """
    if not spec.qkv_bias or spec.qk_norm != "none":
        return None
    shape = (spec.num_kv_heads, spec.head_size)
    weight = _values(source, f"layers.{layer}.k")
    if spec.pre_norms:
        weight = weight * _values(source, f"layers.{layer}.attention_norm")
    bias = _values(source, f"layers.{layer}.k_bias").reshape(shape)
    turns = _turns(spec, layer)
    half = turns.shape[1]
    # Scores that are capped are not what softmax gets, so there only the second way is open.
    mean = turns.mean(0) * (0 if spec.attention_softcap else 1)
    with np.errstate(all="ignore"):
        deviation = np.sqrt((weight * weight).sum(1)).reshape(shape)
        first, second = bias[:, :half], bias[:, half : 2 * half]
        moved = (first + 1j * second) * mean
        rest = bias[:, 2 * half :] * (0 if spec.attention_softcap else 1)
        offset = np.concatenate((moved.real, moved.imag, rest), 1)
        left = np.hypot(first, second) * np.abs(turns - mean).max(0)
        spread = np.hypot(deviation[:, :half], deviation[:, half : 2 * half]) * np.abs(turns[0])
        pair = left + _DEVIATIONS * spread
        alone = np.abs(bias[:, 2 * half :] - rest) + _DEVIATIONS * deviation[:, 2 * half :]
        unit = _powers_of_two(np.concatenate((pair, pair, alone), 1))
    return KeyRange(offset.astype(np.float32), unit.astype(np.float32))


def _values(source: WeightSource, name: str) -> _Doubles:
    tensor = dequantize(source.tensor(name), torch.float32).numpy().astype(np.float64)
    return tensor if len(source.tensor(name).shape) == 2 else tensor.reshape(-1)


def _turns(spec: ModelSpec, layer: int) -> npt.NDArray[np.complex128]:
    """What each position multiplies a pair by, as complex numbers [positions, pairs]."""
    if layer in spec.unrotated_layers:
        return np.ones((1, 0), dtype=np.complex128)
    rope = spec.local_rope if spec.local_rope and spec.sliding_windows[layer] else spec.rope
    positions = np.arange(0, min(_POSITIONS, spec.context_length), _STRIDE, dtype=np.float64)
    angles = np.outer(positions, rope_frequencies(rope, spec.context_length))
    turns: npt.NDArray[np.complex128] = np.exp(1j * angles) * rope.attention_factor
    return turns


def _powers_of_two(sizes: _Doubles) -> _Doubles:
    """The nearest power of two of each size [H, D], about 1 in the middle of a head; 1 for what is no number."""
    largest = sizes.max(1, keepdims=True)
    exponents = np.rint(np.log2(np.maximum(sizes, largest * _SMALLEST)))
    exponents -= np.rint(exponents.mean(1, keepdims=True))
    return np.where(np.isfinite(exponents), 2.0 ** np.nan_to_num(exponents), 1.0)
