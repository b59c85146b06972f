"""Rotary settings of a config.json: `rope_scaling` beside `rope_theta`, or the later `rope_parameters`, in all forms."""

from __future__ import annotations

from inglenook.engine.models.registry import Architecture
from inglenook.engine.models.rope import longrope_attention_factor, yarn_attention_factor
from inglenook.engine.models.spec import RopeSpec
from inglenook.engine.models.spec_checks import MAX_CONTEXT, MAX_FACTOR, check_even, unsupported
from inglenook.engine.weights.metadata import Metadata, describe

# what Qwen and Phi models call longrope in their older files
_OTHER_NAMES = {"su": "longrope"}


def rope_from_config(config: Metadata, kind: Architecture, head_size: int) -> tuple[RopeSpec, int]:
    """Return the rotary embedding of the layers that see the whole context, and the context's length.

    Raises:
        UnsupportedModelError: a kind of scaling that we do not run.
        ModelFileError: a key is missing, out of range or contradicts another.
    """
    context = config.integer("max_position_embeddings", 1, MAX_CONTEXT)
    section = config.section("rope_parameters") or config.section("rope_scaling")
    if section is not None and section.has("full_attention"):
        section = section.section("full_attention")
    theta_home = section if section and section.has("rope_theta") else config
    theta = theta_home.number("rope_theta", 1.0, 1e12, default=kind.theta)
    part_home = section if section and section.has("partial_rotary_factor") else config
    part = part_home.number("partial_rotary_factor", 0, 1, default=1.0)
    if part != 1.0 and not kind.fuses:
        raise unsupported(part_home, "partial_rotary_factor", "is not 1")
    size = int(head_size * part)
    if size < 2:
        raise part_home.error("partial_rotary_factor", f"is {part:g}; it leaves nothing to rotate")
    check_even(part_home, "partial_rotary_factor", size)
    if section is None:
        return RopeSpec(theta=theta, size=size), context
    scaling = _kind(section)
    if scaling == "default":
        return RopeSpec(theta=theta, size=size), context
    if scaling == "linear":
        factor = section.number("factor", 1.0, MAX_FACTOR)
        return RopeSpec(theta=theta, size=size, scaling="linear", factor=factor), context
    if scaling == "llama3":
        return _llama3(section, theta, size, context), context
    if scaling == "yarn":
        rope = _yarn(section, theta, size, context)
        return rope, max(context, min(int(rope.original_context_length * rope.factor), MAX_CONTEXT))
    if scaling == "longrope":
        return _longrope(config, section, theta, size, context), context
    raise unsupported(
        section, "rope_type", f"is {scaling!r}; default, linear, llama3, yarn and longrope are supported"
    )


def local_rope_from_config(config: Metadata, theta: float, head_size: int) -> RopeSpec:
    """The rotary embedding of layers with a window, in models where it is another one."""
    theta = config.number("rope_local_base_freq", 1.0, 1e12, default=theta)
    section = config.section("rope_parameters")
    section = section.section("sliding_attention") if section is not None else None
    if section is not None:
        if (scaling := _kind(section)) != "default":
            raise unsupported(section, "rope_type", f"is {scaling!r}; only default is supported here")
        theta = section.number("rope_theta", 1.0, 1e12, default=theta)
    return RopeSpec(theta=theta, size=head_size)


def _kind(section: Metadata) -> str:
    # "type" is the older name of "rope_type"; both may be there
    kinds = {section.text(key) for key in ("rope_type", "type") if section.has(key)} or {"default"}
    kinds = {_OTHER_NAMES.get(name, name) for name in kinds}
    if len(kinds) > 1:
        raise section.error("rope_type", f"and type contradict each other: {' and '.join(sorted(kinds))}")
    return kinds.pop()


def _llama3(section: Metadata, theta: float, size: int, context: int) -> RopeSpec:
    low = section.number("low_freq_factor", 1e-3, MAX_FACTOR)
    high = section.number("high_freq_factor", 1e-3, MAX_FACTOR)
    if high <= low:
        raise section.error("high_freq_factor", f"is {high:g}; it must be above low_freq_factor, {low:g}")
    return RopeSpec(
        theta=theta,
        size=size,
        scaling="llama3",
        factor=section.number("factor", 1.0, MAX_FACTOR),
        low_freq_factor=low,
        high_freq_factor=high,
        original_context_length=section.integer(
            "original_max_position_embeddings", 1, MAX_CONTEXT, default=context
        ),
    )


def _yarn(section: Metadata, theta: float, size: int, context: int) -> RopeSpec:
    factor = section.number("factor", 1.0, MAX_FACTOR)
    own = yarn_attention_factor(factor)
    if section.number("mscale", 0, 100, default=0.0) and section.number(
        "mscale_all_dim", 0, 100, default=0.0
    ):
        raise unsupported(section, "mscale", "is a YaRN setting of another family of models")
    fast = section.number("beta_fast", 1e-3, MAX_FACTOR, default=32.0)
    slow = section.number("beta_slow", 1e-3, MAX_FACTOR, default=1.0)
    if fast <= slow:
        raise section.error("beta_fast", f"is {fast:g}; it must be above beta_slow, {slow:g}")
    if theta <= 1:
        raise section.error("rope_theta", f"is {theta:g}; YaRN needs more than 1")
    return RopeSpec(
        theta=theta,
        size=size,
        scaling="yarn",
        factor=factor,
        beta_fast=fast,
        beta_slow=slow,
        rounds_ramp=section.flag("truncate", default=True),
        original_context_length=section.integer(
            "original_max_position_embeddings", 1, MAX_CONTEXT, default=context
        ),
        attention_factor=section.number("attention_factor", 1e-3, 100.0, default=own),
    )


def _longrope(config: Metadata, section: Metadata, theta: float, size: int, context: int) -> RopeSpec:
    key = "original_max_position_embeddings"
    # phi3 keeps this number beside the section
    home = section if section.has(key) else config
    original = home.integer(key, 2, MAX_CONTEXT, default=context)
    factor = section.number("factor", 1.0, MAX_FACTOR, default=max(context / original, 1.0))
    own = longrope_attention_factor(factor, original)
    return RopeSpec(
        theta=theta,
        size=size,
        scaling="longrope",
        original_context_length=original,
        attention_factor=section.number("attention_factor", 1e-3, 100.0, default=own),
        frequency_factors=_factors(section, "short_factor", size),
        long_frequency_factors=_factors(section, "long_factor", size),
    )


def _factors(section: Metadata, key: str, size: int) -> tuple[float, ...]:
    values = section.get(key)
    if (
        not isinstance(values, list)
        or len(values) != size // 2
        or not all(type(v) in (int, float) and 0 < v < 1e6 for v in values)
    ):
        raise section.error(key, f"is {describe(values)}; it must be {size // 2} numbers above 0")
    return tuple(float(v) for v in values)
