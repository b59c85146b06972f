"""A GGUF's metadata to `ModelSpec`: what each key means, and every setting that we do not run refused by its name."""

from __future__ import annotations

from typing import Any

import pytest

from inglenook.engine.errors import ModelFileError, UnsupportedModelError
from inglenook.engine.models.config_spec import spec_from_config
from inglenook.engine.models.gguf_rope import RopeFactors
from inglenook.engine.models.gguf_spec import spec_from_gguf
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
    return spec_from_gguf(Metadata(values, "m.gguf"), SHAPES, RopeFactors(factors))


def test_a_gguf_and_a_config_of_one_model_give_one_spec() -> None:
    config = {
        "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
        "intermediate_size": 128, "vocab_size": 1000, "max_position_embeddings": 2048, "rms_norm_eps": 1e-5,
        "query_pre_attn_scalar": 16, "head_dim": 16, "rope_theta": 5e5,
    }  # fmt: skip
    for name, changes in (("llama", {}), ("qwen2", {}), ("qwen3", {}), ("gemma2", {}), ("olmo2", {})):
        spec = gguf_spec(name, rope__freq_base=5e5, **changes)
        assert spec == spec_from_config(Metadata({"model_type": name, **config}, "config.json"), ())


def test_what_a_file_does_not_say_comes_from_its_architecture() -> None:
    gemma = gguf_spec(
        "gemma3",
        rope__freq_base=1e6,
        attention__sliding_window=512,
        attention__key_length=32,
        attention__value_length=32,
    )

    assert gemma.sliding_windows == (512, 512)
    assert gemma.local_rope == RopeSpec(theta=10_000.0, size=32)
    assert (gemma.qk_norm, gemma.post_norms, gemma.embedding_scale) == ("head", True, 8.0)
    assert gguf_spec("smollm3", block_count=9).unrotated_layers == (3, 7)
    assert gguf_spec("gemma2", block_count=4).attention_softcap == 50.0
    assert gguf_spec("gemma2", block_count=46).attention_scale == 0.25
    assert gguf_spec(attention__sliding_window=1024).sliding_windows == (1024, 1024)


def test_a_plain_model_has_no_extras_and_others_name_theirs() -> None:
    assert gguf_spec().extras == gguf_spec("qwen2").extras == ()
    assert gguf_spec("qwen3").extras == ("norms of queries and keys",)
    assert "capped logits" in gguf_spec("gemma2").extras
    assert gguf_spec(expert_count=4, expert_used_count=2).extras == ("a mixture of experts",)
    assert gguf_spec(rope__scaling__type="yarn", rope__scaling__factor=4.0).extras == (
        "a rotary attention factor",
    )


def test_yarn_lengthens_the_context_and_longrope_needs_both_tensors() -> None:
    yarn = gguf_spec(
        rope__scaling__type="yarn", rope__scaling__factor=4.0, rope__scaling__original_context_length=2048
    )

    assert (yarn.context_length, yarn.rope.original_context_length) == (8192, 2048)
    assert yarn.rope.attention_factor == pytest.approx(1.138629)
    with pytest.raises(ModelFileError, match=r"the tensor rope_factors_long.weight is missing"):
        spec_from_gguf(Metadata({**GGUF_MINIMUM}, "m.gguf"), SHAPES, RopeFactors(short=(1.0,) * 8))


def test_defaults_of_a_gguf_are_those_of_the_format() -> None:
    spec = gguf_spec(without="attention.head_count_kv")

    assert (spec.num_kv_heads, spec.head_size, spec.vocab_size, spec.tied_head) == (4, 16, 1000, True)
    assert spec.rope == RopeSpec(theta=10_000.0, size=16)


def test_head_size_may_be_given_apart_from_the_width() -> None:
    spec = gguf_spec(attention__key_length=32, attention__value_length=32, attention__head_count=6)

    assert (spec.head_size, spec.q_size, spec.rope.size) == (32, 192, 32)


def test_the_head_is_tied_by_the_absence_of_its_tensor() -> None:
    values = Metadata({**GGUF_MINIMUM}, "m.gguf")
    assert not spec_from_gguf(values, SHAPES | {"output.weight": (1000, 64)}).tied_head
    assert spec_from_gguf(values, SHAPES).tied_head


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


def test_frequency_factors_must_match_the_rotated_size() -> None:
    assert gguf_spec(factors=(1.0,) * 8).rope.frequency_factors == (1.0,) * 8
    with pytest.raises(ModelFileError, match=r"rope_freqs.weight has 4 numbers; .* needs 8"):
        gguf_spec(factors=(1.0,) * 4)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"architecture": "gpt_neox"}, "architecture 'gpt_neox' is not supported; supported are llama, qwen2, qwen3"),
        ({"architecture": "clip"}, "architecture 'clip'"),
        ({"architecture": "mistral"}, "architecture 'mistral'"),
        ({"architecture": "qwen3", "expert_count": 8}, "qwen3.expert_count asks for a mixture of experts"),
        ({"architecture": "olmo2", "attention__sliding_window": 512}, "the sliding windows of OLMo 3"),
        ({"architecture": "qwen3moe", "expert_count": 8, "expert_shared_feed_forward_length": 9}, "a shared expert"),
        ({"attention__causal": False}, "llama.attention.causal is false"),
        ({"attention__value_length": 32}, "llama.attention.value_length is 32, unlike the keys' 16"),
        ({"rope__scaling__type": "dynamic"}, "llama.rope.scaling.type is 'dynamic'; none, linear, yarn and longrope"),
        ({"rope__scaling__type": "yarn", "rope__scaling__yarn_log_multiplier": 0.7}, "yarn_log_multiplier is not 0.1"),
        ({"rope__scaling__type": "yarn", "rope__scaling__yarn_attn_factor": 0.7}, "yarn_attn_factor is a setting"),
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
