"""Rotary frequencies and their cosine and sine tables, computed in float64 from a `RopeSpec`.

The scaling rules are those of the models' own papers and configurations: "linear" position interpolation (Chen et
al., 2023), the piecewise rule of Llama 3.1, YaRN (Peng et al., 2023) and LongRoPE (Ding et al., 2024).
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from inglenook.engine.models.spec import RopeSpec


def rope_frequencies(rope: RopeSpec, context_length: int = 0) -> npt.NDArray[np.float64]:
    """Return the angle of each pair per position: float64 [size / 2].

    Only "longrope" looks at the context length: keys stay in a cache, so a model has one table for all its prompts,
    and it is the one for long texts when the context may hold one.
    """
    frequencies = rope.theta ** (-np.arange(0, rope.size, 2, dtype=np.float64) / rope.size)
    factors = rope.frequency_factors
    if rope.scaling == "linear":
        frequencies = frequencies / rope.factor
    elif rope.scaling == "llama3":
        frequencies = _llama3(rope, frequencies)
    elif rope.scaling == "yarn":
        frequencies = _yarn(rope, frequencies)
    elif rope.scaling == "longrope" and context_length > rope.original_context_length:
        factors = rope.long_frequency_factors
    if factors:
        frequencies = frequencies / np.asarray(factors, dtype=np.float64)
    return frequencies


def _llama3(rope: RopeSpec, frequencies: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Keep short wavelengths, divide long ones by `factor`, and blend in between."""
    turns = rope.original_context_length * frequencies / (2 * math.pi)
    smooth = (turns - rope.low_freq_factor) / (rope.high_freq_factor - rope.low_freq_factor)
    smooth = np.clip(smooth, 0.0, 1.0)
    return (1 - smooth) * frequencies / rope.factor + smooth * frequencies


def _yarn(rope: RopeSpec, frequencies: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Keep pairs that turn more than `beta_fast` times in the original context, divide those below `beta_slow`."""

    def pair(turns: float) -> float:
        length = rope.original_context_length / (turns * 2 * math.pi)
        return rope.size * math.log(length) / (2 * math.log(rope.theta))

    first, last = pair(rope.beta_fast), pair(rope.beta_slow)
    if rope.rounds_ramp:
        first, last = math.floor(first), math.ceil(last)
    first, last = max(first, 0), min(last, rope.size - 1)
    span = last - first or 0.001
    divided = np.clip((np.arange(rope.size // 2, dtype=np.float64) - first) / span, 0.0, 1.0)
    return frequencies * (1 - divided) + frequencies / rope.factor * divided


def yarn_attention_factor(factor: float) -> float:
    """YaRN's factor of cosine and sine for an extension by `factor`, where a model names no other."""
    return 0.1 * math.log(factor) + 1.0 if factor > 1 else 1.0


def longrope_attention_factor(factor: float, original_context_length: int) -> float:
    """LongRoPE's factor of cosine and sine, where a model names no other."""
    return math.sqrt(1 + math.log(factor) / math.log(original_context_length)) if factor > 1 else 1.0


def rope_tables(rope: RopeSpec, length: int) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]:
    """Return cosine and sine of positions 0 .. length - 1: float32 [length, size / 2] each."""
    angles = np.outer(np.arange(length, dtype=np.float64), rope_frequencies(rope, length))
    return (
        (np.cos(angles) * rope.attention_factor).astype(np.float32),
        (np.sin(angles) * rope.attention_factor).astype(np.float32),
    )
