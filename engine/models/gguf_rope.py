"""Rotary settings of a GGUF: its rope keys, and the tensors of frequency factors."""

from __future__ import annotations

from dataclasses import dataclass

from inglenook.engine.errors import ModelFileError
from inglenook.engine.models.registry import Architecture
from inglenook.engine.models.rope import longrope_attention_factor, yarn_attention_factor
from inglenook.engine.models.spec import RopeSpec
from inglenook.engine.models.spec_checks import MAX_CONTEXT, MAX_FACTOR, check_even, unsupported
from inglenook.engine.weights.metadata import Metadata


@dataclass(frozen=True, slots=True)
class RopeFactors:
    """The values of rope_freqs.weight, or of rope_factors_short.weight and rope_factors_long.weight."""

    all: tuple[float, ...] = ()
    short: tuple[float, ...] = ()
    long: tuple[float, ...] = ()


def rope_from_gguf(
    metadata: Metadata, kind: Architecture, head_size: int, context: int, factors: RopeFactors
) -> tuple[RopeSpec, int]:
    """Return the rotary embedding of the layers that see the whole context, and the context's length.

    Raises:
        UnsupportedModelError: a kind of scaling that we do not run.
        ModelFileError: a key is out of range, or a tensor does not fit.
    """
    name = kind.name
    key = f"{name}.rope.dimension_count"
    size = metadata.integer(key, 2, head_size, default=head_size)
    check_even(metadata, key, size)
    theta = metadata.number(f"{name}.rope.freq_base", 1.0, 1e12, default=10_000.0)
    scaling = metadata.text(f"{name}.rope.scaling.type", default="longrope" if factors.long else "linear")
    # rope.scale_linear is the older name; a factor of 0 means that there is none
    factor = metadata.number(f"{name}.rope.scale_linear", 0.0, MAX_FACTOR, default=1.0)
    factor = metadata.number(f"{name}.rope.scaling.factor", 0.0, MAX_FACTOR, default=factor) or 1.0
    for tensor, values in (
        ("rope_freqs", factors.all), ("rope_factors_short", factors.short), ("rope_factors_long", factors.long),
    ):  # fmt: skip
        _check_factors(metadata, f"{tensor}.weight", key, size, values)
    if scaling == "longrope" or factors.long or factors.short:
        return _longrope(metadata, name, theta, size, context, factors), context
    if scaling == "yarn":
        rope = _yarn(metadata, name, theta, size, context, factor, factors)
        return rope, max(context, min(int(rope.original_context_length * factor), MAX_CONTEXT))
    if scaling not in ("none", "linear"):
        raise unsupported(
            metadata,
            f"{name}.rope.scaling.type",
            f"is {scaling!r}; none, linear, yarn and longrope are supported",
        )
    if metadata.number(f"{name}.rope.scaling.attn_factor", 0.0, 100.0, default=1.0) not in (0.0, 1.0):
        raise unsupported(metadata, f"{name}.rope.scaling.attn_factor", "stands without its scaling")
    factor = 1.0 if scaling == "none" else factor
    rope = RopeSpec(
        theta=theta,
        size=size,
        scaling="none" if factor == 1.0 else "linear",
        factor=factor,
        frequency_factors=factors.all,
    )
    return rope, context


def local_rope_from_gguf(metadata: Metadata, kind: Architecture, head_size: int) -> RopeSpec | None:
    """The rotary embedding of layers with a window, in architectures where it is another one."""
    if kind.local_theta is None:
        return None
    key = f"{kind.name}.rope.freq_base_swa"
    return RopeSpec(theta=metadata.number(key, 1.0, 1e12, default=kind.local_theta), size=head_size)


def _yarn(
    metadata: Metadata,
    name: str,
    theta: float,
    size: int,
    context: int,
    factor: float,
    factors: RopeFactors,
) -> RopeSpec:
    # a multiplier of the attention factor's logarithm, which other families of models have
    if metadata.number(f"{name}.rope.scaling.yarn_log_multiplier", 0.0, 100.0, default=0.0) not in (0.0, 0.1):
        raise unsupported(metadata, f"{name}.rope.scaling.yarn_log_multiplier", "is not 0.1")
    fast = metadata.number(f"{name}.rope.scaling.yarn_beta_fast", 1e-3, MAX_FACTOR, default=32.0)
    slow = metadata.number(f"{name}.rope.scaling.yarn_beta_slow", 1e-3, MAX_FACTOR, default=1.0)
    if fast <= slow:
        raise metadata.error(
            f"{name}.rope.scaling.yarn_beta_fast", f"is {fast:g}; it must be above yarn_beta_slow, {slow:g}"
        )
    if theta <= 1:
        raise metadata.error(f"{name}.rope.freq_base", f"is {theta:g}; YaRN needs more than 1")
    return RopeSpec(
        theta=theta,
        size=size,
        scaling="yarn",
        factor=max(factor, 1.0),
        beta_fast=fast,
        beta_slow=slow,
        original_context_length=metadata.integer(
            f"{name}.rope.scaling.original_context_length", 1, MAX_CONTEXT, default=context
        ),
        attention_factor=yarn_attention_factor(factor),
        frequency_factors=factors.all,
    )


def _longrope(
    metadata: Metadata, name: str, theta: float, size: int, context: int, factors: RopeFactors
) -> RopeSpec:
    for tensor, values in (("rope_factors_short", factors.short), ("rope_factors_long", factors.long)):
        if not values:
            raise ModelFileError(f"{metadata.source}: the tensor {tensor}.weight is missing.")
    key = f"{name}.rope.scaling.original_context_length"
    original = metadata.integer(key, 2, MAX_CONTEXT, default=context)
    own = longrope_attention_factor(max(context / original, 1.0), original)
    attention_factor = metadata.number(f"{name}.rope.scaling.attn_factor", 0.0, 100.0, default=own)
    return RopeSpec(
        theta=theta,
        size=size,
        scaling="longrope",
        original_context_length=original,
        attention_factor=attention_factor or 1.0,
        frequency_factors=factors.short,
        long_frequency_factors=factors.long,
    )


def _check_factors(metadata: Metadata, tensor: str, key: str, size: int, values: tuple[float, ...]) -> None:
    if not values:
        return
    if len(values) != size // 2:
        raise ModelFileError(
            f"{metadata.source}: the tensor {tensor} has {len(values):,} numbers; {key} {size} needs {size // 2}."
        )
    if not all(0 < f < 1e6 for f in values):
        raise ModelFileError(
            f"{metadata.source}: the tensor {tensor} holds a number that is not from 0 to 1,000,000."
        )
