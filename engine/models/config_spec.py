"""`spec_from_config`: a safetensors folder's config.json, and the names of its tensors, become a `ModelSpec`.

Keys that say nothing about the arithmetic, `auto_map` among them, are ignored; those that do and that the
architecture does not have are refused by name. Defaults are those of the model's own published code.
"""

from __future__ import annotations

import math
from collections.abc import Collection

from inglenook.engine.models.config_rope import local_rope_from_config, rope_from_config
from inglenook.engine.models.registry import Architecture, architecture_of_config
from inglenook.engine.models.spec import Activation, ExpertsSpec, ModelSpec, RopeSpec
from inglenook.engine.models.spec_checks import (
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

_ACTIVATIONS: dict[str, Activation] = {
    "silu": "silu",
    "swish": "silu",
    "gelu": "gelu",
    "gelu_pytorch_tanh": "gelu_tanh",
    "gelu_new": "gelu_tanh",
}
# architectures with a window in all layers wherever sliding_window stands -> the window if the key is absent
_ALWAYS_WINDOWED = {"mistral": 4096, "mixtral": 0, "phi3": 0}
_DEFAULT_WINDOW = 4096  # of gemma2 and gemma3


def spec_from_config(config: Metadata, names: Collection[str]) -> ModelSpec:
    """Read the spec of a safetensors folder.

    Raises:
        UnsupportedModelError: an architecture or setting that we do not run; the message names it.
        ModelFileError: a key is missing, out of range or contradicts another.
    """
    kind = architecture_of_config(config.text("model_type"), config.source)
    _refuse(config, kind)
    hidden = config.integer("hidden_size", 1, MAX_SIZE)
    heads = config.integer("num_attention_heads", 1, MAX_HEADS)
    kv_heads = config.integer("num_key_value_heads", 1, MAX_HEADS, default=heads)
    check_divides(config, "num_key_value_heads", kv_heads, heads)
    # gemma's own code has 256 where the key is missing
    own_head_size = 256 if kind.scales_embedding else hidden // heads
    if not config.has("head_dim") and not kind.scales_embedding:
        check_divides(config, "num_attention_heads", heads, hidden)
    head_size = config.integer("head_dim", 2, MAX_HEAD_SIZE, default=own_head_size)
    check_even(config, "head_dim", head_size)
    layers = config.integer("num_hidden_layers", 1, MAX_LAYERS)
    rope, context = rope_from_config(config, kind, head_size)
    windows = _windows(config, kind, layers, context)
    tied = config.flag("tie_word_embeddings", default=False) or (
        "lm_head.weight" not in names and not config.has("tie_word_embeddings")
    )
    may_bias = kind.biases == "may" and config.flag("attention_bias", default=False)
    experts = _experts(config, kind)
    is_qwen_mixture = experts is not None and config.has("moe_intermediate_size")
    return ModelSpec(
        architecture=kind.name,
        vocab_size=config.integer("vocab_size", 1, MAX_VOCAB),
        hidden_size=hidden,
        num_layers=layers,
        num_heads=heads,
        num_kv_heads=kv_heads,
        head_size=head_size,
        intermediate_size=config.integer(
            "moe_intermediate_size" if is_qwen_mixture else "intermediate_size", 1, MAX_SIZE
        ),
        context_length=context,
        norm_eps=config.number("rms_norm_eps", 1e-12, 0.1, default=kind.norm_eps),
        rope=rope,
        activation=_activation(config, kind),
        qkv_bias=kind.biases == "qkv" or may_bias,
        o_bias=may_bias,
        mlp_bias=kind.biases == "may" and config.flag("mlp_bias", default=False),
        qk_norm=kind.qk_norm,
        pre_norms=kind.pre_norms,
        post_norms=kind.post_norms,
        tied_head=tied,
        attention_scale=_attention_scale(config, kind, head_size),
        attention_softcap=_softcap(config, kind, "attn_logit_softcapping", 50.0),
        logit_softcap=_softcap(config, kind, "final_logit_softcapping", 30.0),
        embedding_scale=hidden**0.5 if kind.scales_embedding else _multiplier(config, kind, "embedding_multiplier"),
        residual_scale=_multiplier(config, kind, "residual_multiplier"),
        logit_scale=1 / _multiplier(config, kind, "logits_scaling"),
        sliding_windows=windows,
        unrotated_layers=_unrotated(config, kind, layers),
        local_rope=_local_rope(config, kind, head_size, rope, windows),
        experts=experts,
    )  # fmt: skip


def _refuse(config: Metadata, kind: Architecture) -> None:
    """Refuse settings that change the arithmetic in a way that no field has."""
    if kind.biases != "may":
        for key in ("attention_bias", "mlp_bias"):
            # qwen2 has its query, key and value biases whatever attention_bias says
            if config.flag(key, default=False) and not (key == "attention_bias" and kind.biases == "qkv"):
                raise unsupported(config, key, "is true")
    if config.flag("use_bidirectional_attention", default=False):
        raise unsupported(config, "use_bidirectional_attention", "is true: this is no text generator")
    if config.has("quantization_config"):
        section = config.section("quantization_config")
        method = section and section.get("quant_method")
        # of a model that was quantised here; the weights' own file names their formats
        if method != "inglenook":
            raise unsupported(
                config, "quantization_config", f"is {describe(method)}; a GGUF version of this model may be"
            )
    if not kind.fuses and config.number("partial_rotary_factor", 0, 1, default=1.0) != 1.0:
        raise unsupported(config, "partial_rotary_factor", "is not 1")
    if config.integer("pretraining_tp", 0, default=1) > 1:
        raise unsupported(config, "pretraining_tp", "is above 1")


def _activation(config: Metadata, kind: Architecture) -> Activation:
    key, own = ("hidden_activation", "gelu_pytorch_tanh") if kind.scales_embedding else ("hidden_act", "silu")
    name = config.text(key, default=own)
    if name not in _ACTIVATIONS:
        raise unsupported(config, key, f"is {name!r}; {', '.join(_ACTIVATIONS)} are supported")
    return _ACTIVATIONS[name]


def _attention_scale(config: Metadata, kind: Architecture, head_size: int) -> float:
    if kind.name == "granite":
        return config.number("attention_multiplier", 1e-6, 100.0, default=1.0)
    if kind.scales_embedding:
        return 1 / math.sqrt(config.number("query_pre_attn_scalar", 1e-3, 1e6, default=256.0))
    return 1 / math.sqrt(head_size)


def _softcap(config: Metadata, kind: Architecture, key: str, own: float) -> float:
    """The cap of a key; null, or absent from all but gemma2, is none."""
    if not kind.scales_embedding:
        return 0.0
    if not config.has(key):
        return own if kind.name == "gemma2" and key not in config else 0.0
    return config.number(key, 1e-3, 1e6)


def _multiplier(config: Metadata, kind: Architecture, key: str) -> float:
    return config.number(key, 1e-6, 1e6, default=1.0) if kind.name == "granite" else 1.0


def _windows(config: Metadata, kind: Architecture, layers: int, context: int) -> tuple[int, ...]:
    key = "sliding_window"
    if config.has("layer_types"):
        return _windows_by_type(config, layers, context)
    if kind.name in _ALWAYS_WINDOWED:
        own = 0 if key in config else _ALWAYS_WINDOWED[kind.name]
        return windows_of(layers, config.integer(key, default=own), context, 0)
    if kind.full_period:
        period_key = "sliding_window_pattern"
        period = config.integer(period_key, 1, MAX_LAYERS, default=kind.full_period)
        return windows_of(layers, config.integer(key, 1, default=_DEFAULT_WINDOW), context, period)
    if config.flag("use_sliding_window", default=False):
        if kind.name not in ("qwen2", "qwen3"):
            raise unsupported(config, "use_sliding_window", "is true, without layer_types")
        first = config.integer("max_window_layers", 0, MAX_LAYERS, default=28)
        windows = windows_of(layers, config.integer(key, 1, default=_DEFAULT_WINDOW), context, 0)
        return tuple(w if i >= first else 0 for i, w in enumerate(windows))
    return (0,) * layers


def _windows_by_type(config: Metadata, layers: int, context: int) -> tuple[int, ...]:
    types = config.texts("layer_types", length=layers)
    for name in types:
        if name not in ("full_attention", "sliding_attention"):
            raise unsupported(
                config, "layer_types", f"asks for {describe(name)}; full_attention and sliding_attention are"
                " supported"
            )  # fmt: skip
    if "sliding_attention" not in types:
        return (0,) * layers
    window = config.integer("sliding_window", 1)
    window = 0 if window >= context else window
    return tuple(window if name == "sliding_attention" else 0 for name in types)


def _unrotated(config: Metadata, kind: Architecture, layers: int) -> tuple[int, ...]:
    if not kind.unrotated_period:
        return ()
    flags = config.get("no_rope_layers")
    if flags is None:
        period = config.integer("no_rope_layer_interval", 1, MAX_LAYERS, default=kind.unrotated_period)
        return unrotated_layers(layers, period)
    if not isinstance(flags, list) or len(flags) != layers or any(f not in (0, 1) for f in flags):
        raise config.error("no_rope_layers", f"is {describe(flags)}; it must be {layers} numbers 0 or 1")
    return tuple(i for i, rotated in enumerate(flags) if not rotated)


def _local_rope(
    config: Metadata, kind: Architecture, head_size: int, rope: RopeSpec, windows: tuple[int, ...]
) -> RopeSpec | None:
    if kind.local_theta is None or not any(windows):
        return None
    local = local_rope_from_config(config, kind.local_theta, head_size)
    return None if local == rope else local


def _experts(config: Metadata, kind: Architecture) -> ExpertsSpec | None:
    if kind.experts != "always":
        for key in ("num_experts", "num_local_experts"):
            if config.integer(key, default=0):
                raise unsupported(config, key, "asks for a mixture of experts")
        return None
    key = "num_experts" if config.has("num_experts") else "num_local_experts"
    count = config.integer(key, 1, MAX_EXPERTS)
    if config.integer("decoder_sparse_step", default=1) != 1:
        raise unsupported(config, "decoder_sparse_step", "is not 1")
    if config.get("mlp_only_layers"):
        raise unsupported(config, "mlp_only_layers", "names layers without experts")
    return ExpertsSpec(
        count=count,
        used=config.integer("num_experts_per_tok", 1, count),
        normalizes=kind.name == "mixtral" or config.flag("norm_topk_prob", default=False),
    )
