"""Keys with large biases in an int8 cache: what is stored, and that attention computes the same."""

from pathlib import Path

import numpy as np
import pytest
import torch
from native_fixtures import RandomSource, make_batch, tiny_spec, usable_isas

from inglenook.engine.key_range import key_range
from inglenook.engine.models.rope import rope_tables
from inglenook.engine.models.spec import ModelSpec, RopeSpec
from inglenook.engine.native_backend import NativeBackend
from inglenook.kernels.dequantize import dequantize
from inglenook.kernels.rotary_embedding import rotary_embedding
from inglenook.kernels.weight_tensor import FORMATS, WeightTensor

ISAS = usable_isas()
SPECS = {
    "plain": tiny_spec(),
    "part of a head turns": tiny_spec(rope=RopeSpec(theta=10000.0, size=16)),
    "a factor": tiny_spec(rope=RopeSpec(theta=10000.0, size=48, attention_factor=1.3)),
    "a window with its own": tiny_spec(sliding_windows=(40, 0, 0), local_rope=RopeSpec(theta=100.0, size=48)),
    "nothing turns": tiny_spec(unrotated_layers=(0, 1, 2)),
    "a cap": tiny_spec(attention_softcap=20.0),
}


def biased(spec: ModelSpec) -> RandomSource:
    """Weights whose keys spread by 12 or so, with biases of 1600 in the slowest pair and 400 in the fastest."""
    source = RandomSource(spec, ["Q8_0"])
    for layer in range(spec.num_layers):
        bias = np.random.default_rng(layer).normal(0, 10, (spec.num_kv_heads, spec.head_size))
        bias[:, [23, 47]] = [1500, -600]
        bias[:, [0, 24]] = [-100, 400]
        values = bias.astype(np.float32).reshape(-1)
        source.replace(
            f"layers.{layer}.k_bias",
            WeightTensor(FORMATS["F32"], values.shape, values.view(np.uint8).reshape(1, -1)),
        )
    return source


def keys_and_queries(spec: ModelSpec, source: RandomSource, tokens: int = 64):
    """Random rotated keys with the first layer's bias [T, H_kv, D] and queries [T, H_kv, D], in float64."""
    generator = torch.Generator().manual_seed(5)
    shape = (tokens, spec.num_kv_heads, spec.head_size)
    bias = torch.from_numpy(source.tensor("layers.0.k_bias").data.view(np.float32).reshape(shape[1:]).copy())
    weight = dequantize(source.tensor("layers.0.k")) * dequantize(source.tensor("layers.0.attention_norm"))
    inputs = torch.randn((tokens, spec.hidden_size), generator=generator)
    keys = (inputs @ weight.T).view(shape) + bias
    queries = torch.randn(shape, generator=generator) / 100
    if 0 not in spec.unrotated_layers:
        rope = spec.local_rope if spec.local_rope is not None else spec.rope
        cos, sin = map(torch.from_numpy, rope_tables(rope, tokens))
        keys, queries = rotary_embedding(keys, cos, sin), rotary_embedding(queries, cos, sin)
    return keys.double(), queries.double()


def weights_of(queries, keys, cap: float):
    scores = torch.einsum("qhd,khd->hqk", queries, keys)
    return torch.softmax(cap * torch.tanh(scores / cap) if cap else scores, -1)


def rounded(x):
    scale = x.abs().amax(-1, keepdim=True) / 127
    return (x / scale).round() * scale


@pytest.mark.parametrize("name", SPECS)
def test_attention_sees_no_difference_and_rounding_costs_far_less(name: str) -> None:
    spec = SPECS[name]
    source = biased(spec)
    keys, queries = keys_and_queries(spec, source)
    found = key_range(spec, source, 0)
    assert found is not None
    offset, unit = torch.from_numpy(found.offset).double(), torch.from_numpy(found.unit).double()

    stored, asked = (keys - offset) / unit, queries * unit

    want = weights_of(queries, keys, spec.attention_softcap)
    torch.testing.assert_close(weights_of(asked, stored, spec.attention_softcap), want, rtol=1e-9, atol=1e-12)
    ours = (weights_of(asked, rounded(stored), spec.attention_softcap) - want).abs().mean()
    plain = (weights_of(queries, rounded(keys), spec.attention_softcap) - want).abs().mean()
    assert ours < plain / 4


@pytest.mark.parametrize("name", SPECS)
def test_units_are_powers_of_two_and_the_same_in_a_pair(name: str) -> None:
    spec = SPECS[name]
    found = key_range(spec, biased(spec), 0)
    assert found is not None
    half = 0 if spec.unrotated_layers else (spec.local_rope or spec.rope).size // 2

    assert found.unit.shape == found.offset.shape == (2, 48)
    assert (np.frexp(found.unit)[0] == 0.5).all()
    assert np.array_equal(found.unit[:, :half], found.unit[:, half : 2 * half])
    assert bool(found.offset.any()) == (spec.attention_softcap == 0)


def test_models_without_a_bias_or_with_a_norm_after_it_have_none() -> None:
    for spec in (tiny_spec(qkv_bias=False), tiny_spec(qk_norm="head"), tiny_spec(qk_norm="whole")):
        assert key_range(spec, RandomSource(spec, ["Q8_0"]), 0) is None


def test_a_bias_that_is_no_number_leaves_usable_units() -> None:
    spec = tiny_spec()
    source = biased(spec)
    source.tensor("layers.0.k_bias").data.view(np.float32)[0, 3] = np.nan
    source.tensor("layers.1.k_bias").data.view(np.float32)[0, :] = 0

    for layer in (0, 1):
        found = key_range(spec, source, layer)
        assert found is not None
        assert np.isfinite(found.unit).all()
        assert (found.unit > 0).all()


@pytest.mark.skipif(not ISAS, reason="no native kernels were built")
@pytest.mark.parametrize("isa", ISAS)
def test_native_logits_over_an_int8_cache_are_close_to_those_over_a_float32_one(
    tmp_path: Path, isa: str
) -> None:
    spec = tiny_spec(attention_scale=0.003)
    source, logits = biased(spec), {}
    batch = make_batch([([i * 7 % 75 for i in range(90)], 0, [4, 2, 0, 1, 5, 3])])
    for kv_dtype in ("float32", "int8"):
        model = NativeBackend(isa=isa, num_threads=1, kv_dtype=kv_dtype, folder=tmp_path).load(
            spec, source, lambda done, total: None
        )
        model.allocate_kv((6,))
        logits[kv_dtype] = model.forward(batch)
        model.close()

    difference = (logits["int8"] - logits["float32"]).norm() / logits["float32"].norm()

    assert difference < 0.06  # 0.63 without a range
