"""`spec_from_gguf`: a GGUF's metadata, and the shapes of its tensors, become a `ModelSpec`.

Any key of the architecture's own that this file does not know is refused by name, because it may change the
arithmetic. Sizes are checked against each other here and against the tensors by `weights/loader.py`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from inglenook.engine.errors import ModelFileError
from inglenook.engine.models.gguf_rope import RopeFactors, local_rope_from_gguf, rope_from_gguf
from inglenook.engine.models.registry import Architecture, architecture_of_gguf
from inglenook.engine.models.spec import ExpertsSpec, ModelSpec
from inglenook.engine.models.spec_checks import (
    MAX_CONTEXT,
    MAX_EXPERTS,
    MAX_HEAD_SIZE,
    MAX_HEADS,
    MAX_LAYERS,
    MAX_SIZE,
    MAX_VOCAB,
    check_divides,
    check_even,
    unrotated_layers,
    unsupported,
    windows_of,
)
from inglenook.engine.weights.metadata import Metadata, describe

# keys of an architecture that we read, or whose value says nothing about the arithmetic
_KEYS = frozenset({
    "vocab_size", "context_length", "embedding_length", "block_count", "feed_forward_length",
    "attention.head_count", "attention.head_count_kv", "attention.key_length", "attention.value_length",
    "attention.layer_norm_rms_epsilon", "attention.causal", "attention.sliding_window", "expert_count",
    "expert_used_count", "rope.dimension_count", "rope.freq_base", "rope.scale_linear", "rope.scaling.type",
    "rope.scaling.factor", "rope.scaling.original_context_length", "rope.scaling.finetuned", "tensor_data_layout",
    "rope.scaling.yarn_beta_fast", "rope.scaling.yarn_beta_slow", "rope.scaling.yarn_log_multiplier",
})  # fmt: skip
_OWN_KEYS = {
    "gemma2": {
        "attn_logit_softcapping", "final_logit_softcapping", "attention.sliding_window_pattern", "attention.scale",
    },
    "gemma3": {
        "attn_logit_softcapping", "final_logit_softcapping", "attention.sliding_window_pattern",
        "rope.freq_base_swa",
    },
    "granite": {"attention.scale", "embedding_scale", "residual_scale", "logit_scale"},
    "phi3": {"rope.scaling.attn_factor"},
    "qwen3moe": {"expert_feed_forward_length", "expert_weights_norm", "expert_shared_feed_forward_length"},
}  # fmt: skip
# layers of the models whose queries are scaled by the width a head has in the residual stream
_SCALED_BY_WIDTH = {("gemma2", 46), ("gemma3", 62)}


def spec_from_gguf(
    metadata: Metadata, shapes: Mapping[str, tuple[int, ...]], factors: RopeFactors | None = None
) -> ModelSpec:
    """Read the spec of a GGUF file.

    Args:
        metadata: the header's keys.
        shapes: row-major shapes of all tensors by their names in the file.
        factors: the values of the rotary factor tensors, if there are any.

    Raises:
        UnsupportedModelError: an architecture or setting that we do not run; the message names it.
        ModelFileError: a key is missing, out of range or contradicts another.
    """
    name = metadata.text("general.architecture")
    kind = architecture_of_gguf(name, metadata.source)
    _refuse(metadata, kind)
    context = metadata.integer(f"{name}.context_length", 1, MAX_CONTEXT)
    hidden = metadata.integer(f"{name}.embedding_length", 1, MAX_SIZE)
    layers = metadata.integer(f"{name}.block_count", 1, MAX_LAYERS)
    heads = _same_in_all_layers(metadata, f"{name}.attention.head_count", layers)
    kv_heads = _same_in_all_layers(metadata, f"{name}.attention.head_count_kv", layers, default=heads)
    check_divides(metadata, f"{name}.attention.head_count_kv", kv_heads, heads)
    if not metadata.has(f"{name}.attention.key_length"):
        check_divides(metadata, f"{name}.attention.head_count", heads, hidden)
    head_size = metadata.integer(f"{name}.attention.key_length", 2, MAX_HEAD_SIZE, default=hidden // heads)
    check_even(metadata, f"{name}.attention.key_length", head_size)
    value_size = metadata.integer(f"{name}.attention.value_length", 2, MAX_HEAD_SIZE, default=head_size)
    if value_size != head_size:
        raise unsupported(
            metadata, f"{name}.attention.value_length", f"is {value_size}, unlike the keys' {head_size}"
        )
    rope, context = rope_from_gguf(metadata, kind, head_size, context, factors or RopeFactors())
    windows = _windows(metadata, kind, layers, context)
    local = local_rope_from_gguf(metadata, kind, head_size) if any(windows) else None
    experts = _experts(metadata, kind)
    size_key = "expert_feed_forward_length" if kind.experts == "always" else "feed_forward_length"
    return ModelSpec(
        architecture=name,
        vocab_size=_vocab_size(metadata, f"{name}.vocab_size", shapes),
        hidden_size=hidden,
        num_layers=layers,
        num_heads=heads,
        num_kv_heads=kv_heads,
        head_size=head_size,
        intermediate_size=_same_in_all_layers(metadata, f"{name}.{size_key}", layers, MAX_SIZE),
        context_length=context,
        norm_eps=metadata.number(f"{name}.attention.layer_norm_rms_epsilon", 1e-12, 0.1),
        rope=rope,
        activation=kind.activation,
        qkv_bias=kind.biases == "qkv" or (kind.biases == "may" and "blk.0.attn_q.bias" in shapes),
        o_bias=kind.biases == "may" and "blk.0.attn_output.bias" in shapes,
        mlp_bias=kind.biases == "may" and "blk.0.ffn_gate.bias" in shapes,
        qk_norm=kind.qk_norm,
        pre_norms=kind.pre_norms,
        post_norms=kind.post_norms,
        tied_head="output.weight" not in shapes,
        attention_scale=_attention_scale(metadata, kind, layers, hidden // heads, head_size),
        attention_softcap=_softcap(metadata, kind, "attn_logit_softcapping", 50.0),
        logit_softcap=_softcap(metadata, kind, "final_logit_softcapping", 30.0),
        embedding_scale=hidden**0.5 if kind.scales_embedding else _scale(metadata, kind, "embedding_scale"),
        residual_scale=_scale(metadata, kind, "residual_scale"),
        logit_scale=1 / _scale(metadata, kind, "logit_scale"),
        sliding_windows=windows,
        unrotated_layers=unrotated_layers(layers, kind.unrotated_period),
        local_rope=None if local == rope else local,
        experts=experts,
    )


def check_vocabulary(metadata: Metadata, vocab_size: int) -> None:
    """Check that a GGUF's vocabulary fits its embedding, list by list.

    Raises:
        ModelFileError: a list has another length or element type, or a byte token names no byte.
    """
    tokens = metadata.texts("tokenizer.ggml.tokens", length=vocab_size)
    if metadata.has("tokenizer.ggml.scores"):
        metadata.array("tokenizer.ggml.scores", kind=np.floating, length=vocab_size)
    if metadata.has("tokenizer.ggml.token_type"):
        kinds = metadata.array("tokenizer.ggml.token_type", kind=np.integer, length=vocab_size)
        for i in np.flatnonzero(kinds == _BYTE_TOKEN):
            token = tokens[i]
            if not (
                len(token) == 6 and token.startswith("<0x") and token.endswith(">") and _is_hex(token[3:5])
            ):
                raise metadata.error(
                    "tokenizer.ggml.tokens", f"has the byte token {token!r}, which names no byte"
                )


_BYTE_TOKEN = 6


def _is_hex(text: str) -> bool:
    return all(c in "0123456789abcdefABCDEF" for c in text)


def _refuse(metadata: Metadata, kind: Architecture) -> None:
    """Refuse keys that we do not know, and settings that no field has."""
    name = kind.name
    known = _KEYS | _OWN_KEYS.get(name, set())
    for key in metadata:
        if key.startswith(f"{name}.") and key.removeprefix(f"{name}.") not in known:
            raise unsupported(metadata, key, "is a setting of this model that is not supported")
    if metadata.integer("split.count", default=1) > 1:
        raise unsupported(
            metadata, "split.count", "says that this is one part of a split model; join the parts"
        )
    if not metadata.flag(f"{name}.attention.causal", default=True):
        raise unsupported(metadata, f"{name}.attention.causal", "is false: this is no text generator")
    if metadata.integer(f"{name}.expert_shared_feed_forward_length", default=0):
        raise unsupported(metadata, f"{name}.expert_shared_feed_forward_length", "asks for a shared expert")


def _vocab_size(metadata: Metadata, key: str, shapes: Mapping[str, tuple[int, ...]]) -> int:
    """The embedding's rows, which the optional key must agree with."""
    shape = shapes.get("token_embd.weight")
    if shape is None:
        raise ModelFileError(f"{metadata.source}: the tensor token_embd.weight is missing.")
    size = metadata.integer(key, 1, MAX_VOCAB, default=shape[0])
    if len(shape) != 2 or shape[0] != size:
        raise metadata.error(key, f"is {size:,}, but token_embd.weight has the shape {shape}")
    return size


def _same_in_all_layers(
    metadata: Metadata, key: str, layers: int, high: int = MAX_HEADS, default: int | None = None
) -> int:
    """A number, or a list of one for each layer that all agree."""
    value = metadata.get(key)
    if not isinstance(value, np.ndarray):
        return metadata.integer(key, 1, high, default=default)
    numbers = metadata.array(key, kind=np.integer, length=layers)
    if len(set(numbers.tolist())) > 1:
        raise unsupported(metadata, key, "differs from layer to layer")
    return Metadata({key: int(numbers[0])}, metadata.source).integer(key, 1, high)


def _attention_scale(
    metadata: Metadata, kind: Architecture, layers: int, width: int, head_size: int
) -> float:
    key = f"{kind.name}.attention.scale"
    if metadata.has(key):
        return metadata.number(key, 1e-6, 100.0)
    return 1 / math.sqrt(width if (kind.name, layers) in _SCALED_BY_WIDTH else head_size)


def _softcap(metadata: Metadata, kind: Architecture, key: str, own: float) -> float:
    """The cap of a key; gemma2 has its own where the key is absent."""
    if not kind.scales_embedding:
        return 0.0
    own = own if kind.name == "gemma2" else 0.0
    return metadata.number(f"{kind.name}.{key}", 0.0, 1e6, default=own)


def _scale(metadata: Metadata, kind: Architecture, key: str) -> float:
    """A factor of granite's; 0 means that there is none."""
    if kind.name != "granite":
        return 1.0
    return metadata.number(f"{kind.name}.{key}", 0.0, 1e6, default=1.0) or 1.0


def _windows(metadata: Metadata, kind: Architecture, layers: int, context: int) -> tuple[int, ...]:
    key, pattern_key = (
        f"{kind.name}.attention.sliding_window",
        f"{kind.name}.attention.sliding_window_pattern",
    )
    window = metadata.integer(key, default=4096 if kind.name == "gemma2" else 0)
    if not 0 < window < context:
        return (0,) * layers
    if kind.name == "olmo2":
        raise unsupported(metadata, key, "asks for the sliding windows of OLMo 3")
    pattern = metadata.get(pattern_key)
    if pattern is None or type(pattern) is int:
        period = metadata.integer(pattern_key, 1, 512, default=kind.full_period) if kind.full_period else 0
        return windows_of(layers, window, context, period)
    flags = list(pattern) if isinstance(pattern, list | np.ndarray) else []
    if len(flags) != layers or any(flag not in (0, 1) for flag in flags):
        raise metadata.error(pattern_key, f"is {describe(pattern)}; it must be {layers} flags")
    return tuple(window if flag else 0 for flag in flags)


def _experts(metadata: Metadata, kind: Architecture) -> ExpertsSpec | None:
    key = f"{kind.name}.expert_count"
    count = metadata.integer(key, 0, MAX_EXPERTS, default=0)
    if kind.experts == "none" and count:
        raise unsupported(metadata, key, "asks for a mixture of experts")
    if kind.experts == "always" and not count:
        raise metadata.error(key, "is missing")
    if not count:
        return None
    if not metadata.flag(f"{kind.name}.expert_weights_norm", default=True):
        return ExpertsSpec(
            count=count,
            used=metadata.integer(f"{kind.name}.expert_used_count", 1, count),
            normalizes=False,
        )
    return ExpertsSpec(count=count, used=metadata.integer(f"{kind.name}.expert_used_count", 1, count))
