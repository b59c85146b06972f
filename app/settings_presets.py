"""The styles of replies: named sets of sampling values, and "own", whose values the user sets. Pure; knows no Qt."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from inglenook.engine.request import SamplingParams

OWN = "own"


@dataclass(frozen=True, slots=True)
class PresetValues:
    """The values of one style; the names and meanings are those of `SamplingParams`."""

    temperature: float = 0.7
    top_k: int = 0
    top_p: float = 0.95
    min_p: float = 0.05
    repetition_penalty: float = 1.0


PRESETS: dict[str, PresetValues] = {
    # Not greedy: small models fall into loops there.
    "precise": PresetValues(0.2, 40, 0.9, 0.05, 1.05),
    "balanced": PresetValues(),
    "creative": PresetValues(1.1, 0, 1.0, 0.05, 1.0),
}
"""The styles by name, from the plainest to the liveliest."""

DEFAULT_PRESET = "balanced"
FIELDS: tuple[str, ...] = tuple(asdict(PresetValues()))


def preset_values(name: str, own: Mapping[str, Any]) -> PresetValues:
    """Return the values of a style; of "own", and of one that is not known, those in `own`, else the usual ones."""
    if name in PRESETS:
        return PRESETS[name]
    return PresetValues(**{field: own[field] for field in FIELDS if field in own})


def sampling_of(
    values: PresetValues, *, max_tokens: int = 0, seed: int = 0, stop_repetition: bool = True
) -> SamplingParams:
    """Return what the engine is told; `max_tokens` and `seed` 0 leave these to it.

    Raises:
        InvalidRequestError: a value is out of range.
    """
    return SamplingParams(
        max_tokens=max_tokens or None, seed=seed or None, stop_repetition=stop_repetition, **asdict(values)
    )


def values_in_words(values: PresetValues) -> str:
    """Write the values in one line; what is off is left out."""
    parts = [f"temperature {values.temperature:g}"]
    if values.top_k:
        parts.append(f"top k {values.top_k}")
    if values.top_p < 1:
        parts.append(f"top p {values.top_p:g}")
    if values.min_p:
        parts.append(f"min p {values.min_p:g}")
    if values.repetition_penalty != 1:
        parts.append(f"repetition penalty {values.repetition_penalty:g}")
    return ", ".join(parts)
