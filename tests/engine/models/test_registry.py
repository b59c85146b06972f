"""Metadata to `ModelSpec`: what each key means, and every setting that we do not run refused by its name."""

from __future__ import annotations

from typing import Any

import pytest

from inglenook.engine.errors import ModelFileError, UnsupportedModelError
from inglenook.engine.models.registry import spec_from_config, spec_from_gguf
from inglenook.engine.models.spec import ModelSpec, RopeSpec
from inglenook.engine.weights.metadata import Metadata

SHAPES = {"token_embd.weight": (1000, 64)}


def gguf_spec(
    architecture: str = "llama", *, without: str = "", factors: tuple[float, ...] = (), **changes: Any
) -> ModelSpec:
    """Dots of a key are written as two underscores; keys of the architecture stand without its name."""
    values: dict[str, Any] = {
        "general.architecture": architecture,
        f"{architecture}.block_count": 2,
        f"{architecture}.context_length": 2048,
        f"{architecture}.embedding_length": 64,
        f"{architecture}.feed_forward_length": 128,
        f"{architecture}.attention.head_count": 4,
        f"{architecture}.attention.head_count_kv": 2,
        f"{architecture}.attention.layer_norm_rms_epsilon": 1e-5,
    }
    for key, value in changes.items():
        name = key.replace("__", ".")
        values[name if name.startswith(("general.", "split.")) else f"{architecture}.{name}"] = value
    values.pop(f"{architecture}.{without}", None)
    return spec_from_gguf(Metadata(values, "m.gguf"), SHAPES, factors)


def config_spec(
    model_type: str = "llama", names: tuple[str, ...] = (), *, without: str = "", **changes: Any
) -> ModelSpec:
    values: dict[str, Any] = {
        "model_type": model_type,
        "hidden_size": 64,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "intermediate_size": 128,
        "vocab_size": 1000,
        "max_position_embeddings": 2048,
        "rms_norm_eps": 1e-5,
    } | changes
    values.pop(without, None)
    return spec_from_config(Metadata(values, "config.json"), names)


def test_a_gguf_and_a_config_of_one_model_give_one_spec() -> None:
    assert gguf_spec(rope__freq_base=5e5) == config_spec(rope_theta=5e5)
    assert gguf_spec("qwen2") == config_spec("qwen2")
    assert gguf_spec("qwen2").qkv_bias
    assert not gguf_spec().qkv_bias


def test_defaults_of_a_gguf_are_those_of_the_format() -> None:
    spec = gguf_spec(without="attention.head_count_kv")

    assert (spec.num_kv_heads, spec.head_size, spec.vocab_size, spec.tied_head) == (4, 16, 1000, True)
    assert spec.rope == RopeSpec(theta=10_000.0, size=16)


def test_head_size_may_be_given_apart_from_the_width() -> None:
    spec = gguf_spec(attention__key_length=32, attention__value_length=32, attention__head_count=6)

    assert (spec.head_size, spec.q_size, spec.rope.size) == (32, 192, 32)
    assert config_spec(head_dim=32, num_attention_heads=6).q_size == 192


def test_the_head_is_tied_by_the_absence_of_its_tensor_or_by_the_config() -> None:
    values = Metadata({**GGUF_MINIMUM}, "m.gguf")
    assert not spec_from_gguf(values, SHAPES | {"output.weight": (1000, 64)}).tied_head
    assert config_spec().tied_head
    assert config_spec(names=("lm_head.weight",), tie_word_embeddings=True).tied_head
    assert not config_spec(names=("lm_head.weight",)).tied_head
    assert not config_spec(tie_word_embeddings=False).tied_head


GGUF_MINIMUM = {
    "general.architecture": "llama", "llama.block_count": 2, "llama.context_length": 9, "llama.embedding_length": 64,
    "llama.feed_forward_length": 8, "llama.attention.head_count": 4, "llama.attention.layer_norm_rms_epsilon": 1e-6,
}  # fmt: skip


def test_linear_rope_scaling_is_read_under_its_three_names() -> None:
    assert gguf_spec(rope__scaling__type="linear", rope__scaling__factor=4.0).rope.factor == 4.0
    assert gguf_spec(rope__scaling__factor=4.0).rope.scaling == "linear"
    assert gguf_spec(rope__scale_linear=2.0).rope.factor == 2.0
    assert gguf_spec(rope__scaling__factor=0.0).rope.scaling == "none"
    assert gguf_spec(rope__scaling__type="none", rope__scaling__factor=4.0).rope.scaling == "none"


def test_rope_scaling_of_a_config_is_read_under_both_names_and_in_both_places() -> None:
    linear = RopeSpec(theta=5e5, size=16, scaling="linear", factor=2.0)

    assert config_spec(rope_theta=5e5, rope_scaling={"type": "linear", "factor": 2}).rope == linear
    assert config_spec(rope_theta=5e5, rope_scaling={"rope_type": "linear", "factor": 2.0}).rope == linear
    both = {"rope_type": "linear", "type": "linear", "factor": 2.0}
    assert config_spec(rope_theta=5e5, rope_scaling=both).rope == linear
    assert config_spec(rope_parameters={**both, "rope_theta": 5e5}).rope == linear
    assert config_spec(rope_scaling=None).rope == config_spec(rope_scaling={"rope_type": "default"}).rope


def test_llama_3_rope_scaling_keeps_its_four_numbers() -> None:
    rope = config_spec(
        rope_theta=5e5,
        rope_scaling={
            "rope_type": "llama3", "factor": 32.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
            "original_max_position_embeddings": 8192,
        },
    ).rope  # fmt: skip

    assert rope == RopeSpec(
        theta=5e5, size=16, scaling="llama3", factor=32.0, low_freq_factor=1.0, high_freq_factor=4.0,
        original_context_length=8192,
    )  # fmt: skip


def test_frequency_factors_must_match_the_rotated_size() -> None:
    assert gguf_spec(factors=(1.0,) * 8).rope.frequency_factors == (1.0,) * 8
    with pytest.raises(ModelFileError, match=r"rope_freqs.weight has 4 numbers; .* needs 8"):
        gguf_spec(factors=(1.0,) * 4)


def test_unknown_keys_of_a_config_are_ignored_and_code_is_never_touched() -> None:
    spec = config_spec(
        auto_map={"AutoModel": "modeling_x.Model"},
        trust_remote_code=True,
        _attn_implementation_internal="x/y",
    )

    assert spec == config_spec()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"architecture": "gpt_neox"}, "architecture 'gpt_neox' is not supported; supported are llama, qwen2"),
        ({"architecture": "clip"}, "architecture 'clip'"),
        ({"expert_count": 8}, "llama.expert_count asks for a mixture of experts"),
        ({"attention__sliding_window": 1024}, "llama.attention.sliding_window asks for sliding-window attention"),
        ({"attention__causal": False}, "llama.attention.causal is false"),
        ({"attention__value_length": 32}, "llama.attention.value_length is 32, unlike the keys' 16"),
        ({"rope__scaling__type": "yarn"}, "llama.rope.scaling.type is 'yarn'; none and linear"),
        ({"rope__scaling__attn_factor": 2.0}, "llama.rope.scaling.attn_factor is a setting"),
        ({"attention__scale": 2.0}, "llama.attention.scale is a setting"),
        ({"split__count": 3}, "split.count says that this is one part of a split model"),
    ],
)  # fmt: skip
def test_a_gguf_setting_that_we_do_not_run_is_refused_by_name(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(UnsupportedModelError, match=message):
        gguf_spec(**changes)


def test_settings_that_change_nothing_are_accepted() -> None:
    assert gguf_spec(expert_count=0, attention__sliding_window=4096, split__count=1) == gguf_spec()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"block_count": 0}, "llama.block_count is 0; it must be from 1 to 512"),
        ({"block_count": 513}, "llama.block_count is 513; it must be from 1 to 512"),
        ({"block_count": 2**31}, "llama.block_count is 2,147,483,648; it must be from 1 to 512"),
        ({"block_count": True}, "llama.block_count is True; it must be a whole number"),
        ({"block_count": "2"}, "llama.block_count is '2'; it must be a whole number"),
        ({"without": "block_count"}, "llama.block_count is missing"),
        ({"attention__head_count": 0}, "llama.attention.head_count is 0"),
        ({"attention__head_count": 6}, "llama.attention.head_count is 6, which does not divide 64"),
        ({"attention__head_count": [4, 4]}, "llama.attention.head_count is a list of 2 entries"),
        ({"attention__head_count_kv": 3}, "llama.attention.head_count_kv is 3, which does not divide 4"),
        ({"attention__head_count_kv": 0}, "llama.attention.head_count_kv is 0"),
        ({"attention__head_count": 64, "attention__head_count_kv": 1}, "key_length is 1; it must be from 2"),
        ({"attention__key_length": 15}, "key_length is 15; it must be even"),
        ({"rope__dimension_count": 15}, "llama.rope.dimension_count is 15; it must be even"),
        ({"rope__dimension_count": 18}, "llama.rope.dimension_count is 18; it must be from 2 to 16"),
        ({"rope__freq_base": float("nan")}, "llama.rope.freq_base is nan"),
        ({"rope__freq_base": float("inf")}, "llama.rope.freq_base is inf"),
        ({"attention__layer_norm_rms_epsilon": 0.0}, "layer_norm_rms_epsilon is 0.0; it must be from 1e-12"),
        ({"attention__layer_norm_rms_epsilon": -1e-5}, "layer_norm_rms_epsilon is -1e-05"),
        ({"context_length": 0}, "llama.context_length is 0"),
        ({"context_length": 2.0}, "llama.context_length is 2.0; it must be a whole number"),
        ({"embedding_length": 2**63}, "llama.embedding_length is 9,223,372,036,854,775,808"),
        ({"vocab_size": 999}, "llama.vocab_size is 999, but token_embd.weight has the shape"),
        ({"general__architecture": 7}, "general.architecture is 7; it must be a text"),
    ],
)
def test_a_gguf_key_out_of_range_is_named_with_its_numbers(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ModelFileError, match=message):
        gguf_spec(**changes)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"model_type": "mistral"}, "architecture 'mistral' is not supported"),
        ({"attention_bias": True}, "attention_bias is true"),
        ({"mlp_bias": True}, "mlp_bias is true"),
        ({"model_type": "qwen2", "use_sliding_window": True}, "use_sliding_window is true"),
        ({"hidden_act": "gelu"}, "hidden_act is 'gelu'; silu is supported"),
        ({"layer_types": ["full_attention", "sliding_attention"]}, "layer_types asks for more than full attention"),
        ({"partial_rotary_factor": 0.5}, "partial_rotary_factor is not 1"),
        ({"quantization_config": {"quant_method": "gptq"}}, "quantization_config is 'gptq'"),
        ({"rope_scaling": {"type": "dynamic", "factor": 2.0}}, "rope_type is 'dynamic'; default, linear and llama3"),
        ({"rope_scaling": {"rope_type": "yarn", "factor": 2.0}}, "rope_type is 'yarn'"),
        ({"rope_parameters": {"rope_type": "longrope"}}, "rope_type is 'longrope'"),
    ],
)  # fmt: skip
def test_a_config_setting_that_we_do_not_run_is_refused_by_name(
    changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(UnsupportedModelError, match=message):
        config_spec(**changes)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"without": "hidden_size"}, "config.json: hidden_size is missing"),
        ({"hidden_size": None}, "hidden_size is missing"),
        ({"num_hidden_layers": 513}, "num_hidden_layers is 513; it must be from 1 to 512"),
        ({"num_attention_heads": 5, "num_key_value_heads": 1}, "num_attention_heads is 5, which does not divide 64"),
        ({"num_key_value_heads": 3}, "num_key_value_heads is 3, which does not divide 4"),
        ({"head_dim": 15}, "head_dim is 15; it must be even"),
        ({"vocab_size": 10**400}, "vocab_size is 1000"),
        ({"rope_theta": 10**400}, "rope_theta is 1000"),
        ({"layer_types": 7}, "layer_types is 7; it must be a list of texts"),
        ({"layer_types": [[]]}, "layer_types is a list of 1 entries; it must be a list of texts"),
        ({"rope_scaling": "linear"}, "rope_scaling is 'linear'; it must be a group of settings"),
        ({"rope_scaling": {"type": "linear"}}, "config.json, rope_scaling: factor is missing"),
        ({"rope_scaling": {"type": "linear", "factor": 0.5}}, "factor is 0.5; it must be from 1 to 10000"),
        ({"rope_scaling": {"type": "linear", "rope_type": "llama3"}}, "contradict each other: linear and llama3"),
        (
            {"rope_scaling": {"type": "llama3", "low_freq_factor": 4, "high_freq_factor": 1, "factor": 8}},
            "high_freq_factor is 1; it must be above low_freq_factor, 4",
        ),
        ({"tie_word_embeddings": "yes"}, "tie_word_embeddings is 'yes'; it must be true or false"),
    ],
)  # fmt: skip
def test_a_config_key_out_of_range_is_named_with_its_numbers(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ModelFileError, match=message):
        config_spec(**changes)
