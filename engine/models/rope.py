"""Rotary frequencies and their cosine and sine tables, computed in float64 from a `RopeSpec`.

The scaling rules are those of the models' own papers and configurations: "linear" position interpolation (Chen et
al., 2023) and the piecewise rule of Llama 3.1.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from inglenook.engine.models.spec import RopeSpec


def rope_frequencies(rope: RopeSpec) -> npt.NDArray[np.float64]:
    """Return the angle of each pair per position: float64 [size / 2]."""
    frequencies = rope.theta ** (-np.arange(0, rope.size, 2, dtype=np.float64) / rope.size)
    if rope.scaling == "linear":
        frequencies = frequencies / rope.factor
    elif rope.scaling == "llama3":
        frequencies = _llama3(rope, frequencies)
    if rope.frequency_factors:
        frequencies = frequencies / np.asarray(rope.frequency_factors, dtype=np.float64)
    return frequencies


def _llama3(rope: RopeSpec, frequencies: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Keep short wavelengths, divide long ones by `factor`, and blend in between."""
    turns = rope.original_context_length * frequencies / (2 * math.pi)
    smooth = (turns - rope.low_freq_factor) / (rope.high_freq_factor - rope.low_freq_factor)
    smooth = np.clip(smooth, 0.0, 1.0)
    return (1 - smooth) * frequencies / rope.factor + smooth * frequencies


def rope_tables(rope: RopeSpec, length: int) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]:
    """Return cosine and sine of positions 0 .. length - 1: float32 [length, size / 2] each."""
    angles = np.outer(np.arange(length, dtype=np.float64), rope_frequencies(rope))
    return np.cos(angles).astype(np.float32), np.sin(angles).astype(np.float32)
