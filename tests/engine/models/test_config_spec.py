"""A config.json to `ModelSpec`: what each key means, and every setting that we do not run refused by its name."""

from __future__ import annotations

from typing import Any

import pytest

from inglenook.engine.errors import ModelFileError, UnsupportedModelError
from inglenook.engine.models.config_spec import spec_from_config
from inglenook.engine.models.spec import ModelSpec, RopeSpec
from inglenook.engine.weights.metadata import Metadata


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


def test_the_head_is_tied_by_the_config_or_by_the_absence_of_its_tensor() -> None:
    assert config_spec().tied_head
    assert config_spec(names=("lm_head.weight",), tie_word_embeddings=True).tied_head
    assert not config_spec(names=("lm_head.weight",)).tied_head
    assert not config_spec(tie_word_embeddings=False).tied_head


def test_head_size_may_be_given_apart_from_the_width() -> None:
    assert config_spec(head_dim=32, num_attention_heads=6).q_size == 192


def test_a_missing_window_is_mistrals_own_and_null_is_none() -> None:
    long = {"max_position_embeddings": 8192}

    assert config_spec("mistral", **long).sliding_windows == (4096, 4096)
    assert config_spec("mistral", sliding_window=None, **long).sliding_windows == (0, 0)
    assert config_spec("mixtral", num_local_experts=2, num_experts_per_tok=1, **long).sliding_windows == (
        0,
        0,
    )
    assert config_spec("gemma2", **long).sliding_windows == (4096, 0)
    assert config_spec("gemma3_text", sliding_window_pattern=2, **long).sliding_windows == (4096, 0)


def test_an_older_gemma_3_config_has_its_local_rope_and_scales_only_the_other() -> None:
    spec = config_spec(
        "gemma3_text", sliding_window=512, sliding_window_pattern=2, rope_theta=1e6, rope_local_base_freq=1e4,
        rope_scaling={"rope_type": "linear", "factor": 8.0}, head_dim=16,
    )  # fmt: skip

    assert spec.rope == RopeSpec(theta=1e6, size=16, scaling="linear", factor=8.0)
    assert spec.local_rope == RopeSpec(theta=1e4, size=16)


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
        ({"model_type": "gemma3"}, "architecture 'gemma3' is not supported; supported are llama, mistral, mixtral"),
        ({"model_type": "mistral", "attention_bias": True}, "attention_bias is true"),
        ({"model_type": "phi3", "mlp_bias": True}, "mlp_bias is true"),
        ({"use_sliding_window": True}, "use_sliding_window is true, without layer_types"),
        ({"hidden_act": "relu2"}, "hidden_act is 'relu2'; silu, swish, gelu"),
        ({"layer_types": ["full_attention", "chunked_attention"]}, "layer_types asks for 'chunked_attention'"),
        ({"num_local_experts": 8}, "num_local_experts asks for a mixture of experts"),
        ({"model_type": "qwen3_moe", "num_experts": 8, "mlp_only_layers": [1]}, "mlp_only_layers names layers"),
        ({"model_type": "qwen3_moe", "num_experts": 8, "decoder_sparse_step": 2}, "decoder_sparse_step is not 1"),
        ({"model_type": "gemma2", "use_bidirectional_attention": True}, "use_bidirectional_attention is true"),
        ({"partial_rotary_factor": 0.5}, "partial_rotary_factor is not 1"),
        ({"quantization_config": {"quant_method": "gptq"}}, "quantization_config is 'gptq'"),
        ({"rope_scaling": {"type": "dynamic", "factor": 2.0}}, "rope_type is 'dynamic'; default, linear, llama3"),
        ({"rope_scaling": {"rope_type": "mrope"}}, "rope_type is 'mrope'"),
        ({"rope_scaling": {"rope_type": "yarn", "factor": 2, "mscale": 1, "mscale_all_dim": 1}}, "mscale is a YaRN"),
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
