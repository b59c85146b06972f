"""The architectures we run, and how a GGUF's metadata or a config.json becomes a `ModelSpec`.

Whatever would change the arithmetic and has no field in `ModelSpec` is refused by name: another architecture, rope
scaling or activation, biases where we have none, experts, sliding windows, and any key of the architecture's own
that this file does not know. Sizes are checked against each other here and against the tensors by
`weights/loader.py`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

import numpy as np

from inglenook.engine.errors import ModelFileError, UnsupportedModelError
from inglenook.engine.models.spec import ModelSpec, RopeSpec
from inglenook.engine.weights.metadata import Metadata, describe

# architecture -> whether queries, keys and values have biases
ARCHITECTURES = {"llama": False, "qwen2": True}

MAX_LAYERS = 512
MAX_SIZE = 1 << 20
MAX_HEADS = 1024
MAX_HEAD_SIZE = 1024
MAX_VOCAB = 1 << 21
MAX_CONTEXT = 1 << 24

# keys of an architecture that we read, or whose value says nothing about the arithmetic
_GGUF_KEYS = frozenset({
    "vocab_size", "context_length", "embedding_length", "block_count", "feed_forward_length",
    "attention.head_count", "attention.head_count_kv", "attention.key_length", "attention.value_length",
    "attention.layer_norm_rms_epsilon", "attention.causal", "attention.sliding_window", "expert_count",
    "expert_used_count", "rope.dimension_count", "rope.freq_base", "rope.scale_linear", "rope.scaling.type",
    "rope.scaling.factor", "rope.scaling.original_context_length", "rope.scaling.finetuned", "tensor_data_layout",
})  # fmt: skip


def spec_from_gguf(
    metadata: Metadata,
    shapes: Mapping[str, tuple[int, ...]],
    frequency_factors: tuple[float, ...] = (),
) -> ModelSpec:
    """Read the spec of a GGUF file.

    Args:
        metadata: the header's keys.
        shapes: row-major shapes of all tensors by their names in the file.
        frequency_factors: the values of the tensor rope_freqs.weight, if there is one.

    Raises:
        UnsupportedModelError: an architecture or setting that we do not run; the message names it.
        ModelFileError: a key is missing, out of range or contradicts another.
    """
    name = metadata.text("general.architecture")
    qkv_bias = _architecture(name, metadata.source)
    for key in metadata:
        if key.startswith(f"{name}.") and key.removeprefix(f"{name}.") not in _GGUF_KEYS:
            raise _unsupported(metadata, key, "is a setting of this model that is not supported")
    if metadata.integer("split.count", default=1) > 1:
        raise _unsupported(
            metadata, "split.count", "says that this is one part of a split model; join the parts"
        )
    if metadata.integer(f"{name}.expert_count", default=0) > 0:
        raise _unsupported(metadata, f"{name}.expert_count", "asks for a mixture of experts")
    if not metadata.flag(f"{name}.attention.causal", default=True):
        raise _unsupported(metadata, f"{name}.attention.causal", "is false: this is no text generator")

    context = metadata.integer(f"{name}.context_length", 1, MAX_CONTEXT)
    if 0 < metadata.integer(f"{name}.attention.sliding_window", default=0) < context:
        raise _unsupported(metadata, f"{name}.attention.sliding_window", "asks for sliding-window attention")
    hidden = metadata.integer(f"{name}.embedding_length", 1, MAX_SIZE)
    layers = metadata.integer(f"{name}.block_count", 1, MAX_LAYERS)
    heads = metadata.integer(f"{name}.attention.head_count", 1, MAX_HEADS)
    kv_heads = metadata.integer(f"{name}.attention.head_count_kv", 1, MAX_HEADS, default=heads)
    _divides(metadata, f"{name}.attention.head_count_kv", kv_heads, heads)
    if not metadata.has(f"{name}.attention.key_length"):
        _divides(metadata, f"{name}.attention.head_count", heads, hidden)
    head_size = metadata.integer(f"{name}.attention.key_length", 2, MAX_HEAD_SIZE, default=hidden // heads)
    if head_size % 2:
        raise metadata.error(f"{name}.attention.key_length", f"is {head_size}; it must be even")
    value_size = metadata.integer(f"{name}.attention.value_length", 2, MAX_HEAD_SIZE, default=head_size)
    if value_size != head_size:
        raise _unsupported(
            metadata, f"{name}.attention.value_length", f"is {value_size}, unlike the keys' {head_size}"
        )
    return ModelSpec(
        architecture=name,
        vocab_size=_gguf_vocab_size(metadata, f"{name}.vocab_size", shapes),
        hidden_size=hidden,
        num_layers=layers,
        num_heads=heads,
        num_kv_heads=kv_heads,
        head_size=head_size,
        intermediate_size=metadata.integer(f"{name}.feed_forward_length", 1, MAX_SIZE),
        context_length=context,
        norm_eps=metadata.number(f"{name}.attention.layer_norm_rms_epsilon", 1e-12, 0.1),
        rope=_gguf_rope(metadata, name, head_size, frequency_factors),
        qkv_bias=qkv_bias,
        tied_head="output.weight" not in shapes,
    )


def spec_from_config(config: Metadata, names: Collection[str]) -> ModelSpec:
    """Read the spec of a safetensors folder from its config.json and the names of its tensors.

    Keys that say nothing about the arithmetic, `auto_map` among them, are ignored.

    Raises:
        UnsupportedModelError: an architecture or setting that we do not run; the message names it.
        ModelFileError: a key is missing, out of range or contradicts another.
    """
    name = config.text("model_type")
    qkv_bias = _architecture(name, config.source)
    for key in ("attention_bias", "mlp_bias", "use_sliding_window"):
        # qwen2 has its query, key and value biases whatever attention_bias says
        if config.flag(key, default=False) and not (key == "attention_bias" and qkv_bias):
            raise _unsupported(config, key, "is true")
    if config.has("quantization_config"):
        section = config.section("quantization_config")
        method = describe(section and section.get("quant_method"))
        raise _unsupported(config, "quantization_config", f"is {method}; a GGUF version of this model may be")
    activation = config.text("hidden_act", default="silu")
    if activation not in ("silu", "swish"):
        raise _unsupported(config, "hidden_act", f"is {activation!r}; silu is supported")
    if config.has("layer_types") and set(config.texts("layer_types")) - {"full_attention"}:
        raise _unsupported(config, "layer_types", "asks for more than full attention")
    if config.number("partial_rotary_factor", 0, 1, default=1.0) != 1.0:
        raise _unsupported(config, "partial_rotary_factor", "is not 1")

    hidden = config.integer("hidden_size", 1, MAX_SIZE)
    heads = config.integer("num_attention_heads", 1, MAX_HEADS)
    kv_heads = config.integer("num_key_value_heads", 1, MAX_HEADS, default=heads)
    _divides(config, "num_key_value_heads", kv_heads, heads)
    if not config.has("head_dim"):
        _divides(config, "num_attention_heads", heads, hidden)
    head_size = config.integer("head_dim", 2, MAX_HEAD_SIZE, default=hidden // heads)
    if head_size % 2:
        raise config.error("head_dim", f"is {head_size}; it must be even")
    context = config.integer("max_position_embeddings", 1, MAX_CONTEXT)
    tied = config.flag("tie_word_embeddings", default=False) or (
        "lm_head.weight" not in names and not config.has("tie_word_embeddings")
    )
    return ModelSpec(
        architecture=name,
        vocab_size=config.integer("vocab_size", 1, MAX_VOCAB),
        hidden_size=hidden,
        num_layers=config.integer("num_hidden_layers", 1, MAX_LAYERS),
        num_heads=heads,
        num_kv_heads=kv_heads,
        head_size=head_size,
        intermediate_size=config.integer("intermediate_size", 1, MAX_SIZE),
        context_length=context,
        norm_eps=config.number("rms_norm_eps", 1e-12, 0.1, default=1e-6),
        rope=_config_rope(config, head_size, context),
        qkv_bias=qkv_bias,
        tied_head=tied,
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


def _architecture(name: str, source: str) -> bool:
    if name not in ARCHITECTURES:
        raise UnsupportedModelError(
            f"{source}: the architecture {name!r} is not supported; supported are {', '.join(ARCHITECTURES)}."
        )
    return ARCHITECTURES[name]


def _gguf_vocab_size(metadata: Metadata, key: str, shapes: Mapping[str, tuple[int, ...]]) -> int:
    """The embedding's rows, which the optional key must agree with."""
    shape = shapes.get("token_embd.weight")
    if shape is None:
        raise ModelFileError(f"{metadata.source}: the tensor token_embd.weight is missing.")
    size = metadata.integer(key, 1, MAX_VOCAB, default=shape[0])
    if len(shape) != 2 or shape[0] != size:
        raise metadata.error(key, f"is {size:,}, but token_embd.weight has the shape {shape}")
    return size


def _gguf_rope(
    metadata: Metadata, name: str, head_size: int, frequency_factors: tuple[float, ...]
) -> RopeSpec:
    key = f"{name}.rope.dimension_count"
    size = metadata.integer(key, 2, head_size, default=head_size)
    if size % 2:
        raise metadata.error(key, f"is {size}; it must be even")
    theta = metadata.number(f"{name}.rope.freq_base", 1.0, 1e12, default=10_000.0)
    kind = metadata.text(f"{name}.rope.scaling.type", default="linear")
    # rope.scale_linear is the older name; a factor of 0 means that there is none
    factor = metadata.number(f"{name}.rope.scale_linear", 0.0, 1e4, default=1.0)
    factor = metadata.number(f"{name}.rope.scaling.factor", 0.0, 1e4, default=factor) or 1.0
    if kind == "none":
        factor = 1.0
    elif kind != "linear":
        raise _unsupported(
            metadata, f"{name}.rope.scaling.type", f"is {kind!r}; none and linear are supported"
        )
    if frequency_factors:
        if len(frequency_factors) != size // 2:
            raise ModelFileError(
                f"{metadata.source}: the tensor rope_freqs.weight has {len(frequency_factors):,} numbers; "
                f"{key} {size} needs {size // 2}."
            )
        if not all(0 < f < 1e6 for f in frequency_factors):
            raise ModelFileError(
                f"{metadata.source}: the tensor rope_freqs.weight holds a number that is not from 0 to 1,000,000."
            )
    return RopeSpec(
        theta=theta,
        size=size,
        scaling="none" if factor == 1.0 else "linear",
        factor=factor,
        frequency_factors=frequency_factors,
    )


def _config_rope(config: Metadata, head_size: int, context: int) -> RopeSpec:
    """Rope from `rope_scaling` and `rope_theta`, or from the later `rope_parameters`, which holds both."""
    section = config.section("rope_parameters") or config.section("rope_scaling")
    theta_home = section if section and section.has("rope_theta") else config
    theta = theta_home.number("rope_theta", 1.0, 1e12, default=10_000.0)
    if section is None:
        return RopeSpec(theta=theta, size=head_size)
    if section.number("partial_rotary_factor", 0, 1, default=1.0) != 1.0:
        raise _unsupported(section, "partial_rotary_factor", "is not 1")
    # "type" is the older name of "rope_type"; both may be there
    kinds = {section.text(key) for key in ("rope_type", "type") if section.has(key)} or {"default"}
    if len(kinds) > 1:
        raise section.error("rope_type", f"and type contradict each other: {' and '.join(sorted(kinds))}")
    (kind,) = kinds
    if kind == "default":
        return RopeSpec(theta=theta, size=head_size)
    if kind == "linear":
        return RopeSpec(
            theta=theta, size=head_size, scaling="linear", factor=section.number("factor", 1.0, 1e4)
        )
    if kind != "llama3":
        raise _unsupported(section, "rope_type", f"is {kind!r}; default, linear and llama3 are supported")
    low = section.number("low_freq_factor", 1e-3, 1e4)
    high = section.number("high_freq_factor", 1e-3, 1e4)
    if high <= low:
        raise section.error("high_freq_factor", f"is {high:g}; it must be above low_freq_factor, {low:g}")
    return RopeSpec(
        theta=theta,
        size=head_size,
        scaling="llama3",
        factor=section.number("factor", 1.0, 1e4),
        low_freq_factor=low,
        high_freq_factor=high,
        original_context_length=section.integer(
            "original_max_position_embeddings", 1, MAX_CONTEXT, default=context
        ),
    )


def _divides(metadata: Metadata, key: str, part: int, whole: int) -> None:
    if whole % part:
        raise metadata.error(key, f"is {part:,}, which does not divide {whole:,}")


def _unsupported(metadata: Metadata, key: str, problem: str) -> UnsupportedModelError:
    return UnsupportedModelError(f"{metadata.source}: {key} {problem}. Such models are not supported.")
