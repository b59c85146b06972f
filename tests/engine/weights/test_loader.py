"""A model file under canonical names: the rotary order, the second readers' values, and files that contradict themselves."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest
import safetensors.numpy
import torch

from inglenook.engine.errors import ModelFileError, UnsupportedModelError
from inglenook.engine.models.config_spec import spec_from_config
from inglenook.engine.weights.loader import open_model, rows_in_halves
from inglenook.engine.weights.metadata import Metadata
from inglenook.engine.weights.names import hf_places
from inglenook.kernels.dequantize import dequantize

U32, STRING, ARRAY, F32, I32 = 4, 8, 9, 6, 5


def rounded(values: Any, kind: str) -> Any:
    form = gguf.GGMLQuantizationType[kind]
    return gguf.quants.dequantize(gguf.quants.quantize(values, form), form).reshape(values.shape)


@pytest.mark.parametrize(("architecture", "tied"), [("llama", True), ("llama", False), ("qwen2", True)])
def test_a_gguf_file_gives_back_the_weights_in_the_order_of_hugging_face(
    make_gguf: Callable[..., Any],
    make_weights: Callable[..., Any],
    tmp_path: Path,
    architecture: str,
    tied: bool,
) -> None:
    path = make_gguf(architecture, tied).write(tmp_path / "tiny.gguf")

    with open_model(path) as model:
        weights = make_weights(architecture, tied)
        assert set(model.names) == set(weights)
        assert model.spec.tied_head is tied
        for name, values in weights.items():
            tensor = model.tensor(name)
            np.testing.assert_array_equal(
                dequantize(tensor).numpy(), rounded(values, tensor.format.name), name
            )


def test_the_gguf_package_sees_the_rows_of_llama_in_pairs_and_ours_in_halves(
    make_gguf: Callable[..., Any], make_weights: Callable[..., Any], tmp_path: Path
) -> None:
    path = make_gguf().write(tmp_path / "tiny.gguf")
    theirs = next(t for t in gguf.GGUFReader(path).tensors if t.name == "blk.0.attn_q.weight").data
    original = make_weights("llama")["layers.0.q"]

    with open_model(path) as model:
        ours = dequantize(model.tensor("layers.0.q")).numpy()

    np.testing.assert_array_equal(ours, original)
    # head 1, pair 3: rows 3 and 3 + 8 of the head lie at 6 and 7 in the file
    np.testing.assert_array_equal(theirs[16 + 6], original[16 + 3])
    np.testing.assert_array_equal(theirs[16 + 7], original[16 + 3 + 8])


def test_rotating_halves_of_reordered_rows_equals_rotating_pairs_of_the_files() -> None:
    heads, size = 3, 8
    x = np.random.default_rng(0).standard_normal(heads * size)
    angles = np.array([0.3, 0.7, 1.1, 1.9])
    pairs = x.reshape(heads, size // 2, 2)
    turned = (pairs[..., 0] + 1j * pairs[..., 1]) * np.exp(1j * angles)

    halves = x[rows_in_halves(heads, size, size)].reshape(heads, 2, size // 2)

    np.testing.assert_allclose((halves[:, 0] + 1j * halves[:, 1]) * np.exp(1j * angles), turned)


def test_rows_beyond_the_rotated_part_of_a_head_stay_where_they_are() -> None:
    assert rows_in_halves(2, 6, 4).tolist() == [0, 2, 1, 3, 4, 5, 6, 8, 7, 9, 10, 11]


def test_quantised_rows_are_reordered_whole(
    make_gguf: Callable[..., Any], make_weights: Callable[..., Any], tmp_path: Path
) -> None:
    with open_model(make_gguf().write(tmp_path / "tiny.gguf")) as model:
        tensor = model.tensor("layers.1.k")

        assert tensor.format.name == "Q4_0"
        original = gguf.quants.quantize(make_weights("llama")["layers.1.k"], gguf.GGMLQuantizationType.Q4_0)
        np.testing.assert_array_equal(tensor.data, original)


def test_frequency_factors_come_from_the_rope_tensor(make_gguf: Callable[..., Any], tmp_path: Path) -> None:
    factors = np.linspace(1, 8, 8, dtype=np.float32)
    writer = make_gguf().tensor("rope_freqs.weight", factors)

    with open_model(writer.write(tmp_path / "tiny.gguf")) as model:
        assert model.spec.rope.frequency_factors == tuple(float(f) for f in factors)
        assert "rope_freqs" not in " ".join(model.names)

    for bad, message in (
        (np.ones(7, np.float32), "7 numbers"),
        (np.zeros(8, np.float32), "not from 0"),
        (np.full(8, np.nan, np.float32), "not from 0"),
        (np.ones((8, 1), np.float32), r"is F32 \(8, 1\)"),
    ):
        with pytest.raises(ModelFileError, match=message):
            open_model(writer.tensor("rope_freqs.weight", bad).write(tmp_path / "bad.gguf"))


def test_the_fingerprint_follows_the_content_and_not_the_name(
    make_gguf: Callable[..., Any], tmp_path: Path
) -> None:
    writer = make_gguf()
    prints = []
    for name in ("a.gguf", "b.gguf"):
        with open_model(writer.write(tmp_path / name)) as model:
            prints.append(model.fingerprint)
    writer.tensor("output_norm.weight", np.ones(64, np.float32))
    with open_model(writer.write(tmp_path / "a.gguf")) as model:
        prints.append(model.fingerprint)

    assert prints[0] == prints[1] != prints[2]
    assert len(prints[0]) == 64


def test_size_is_that_of_all_tensors(make_gguf: Callable[..., Any], tmp_path: Path) -> None:
    writer = make_gguf()
    with open_model(writer.write(tmp_path / "tiny.gguf")) as model:
        assert model.size_bytes == sum(len(data) for *_, data in writer.tensors)
        assert model.size_bytes == sum(model.tensor(name).size_bytes for name in model.names)


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        (lambda w: w.without("blk.1.ffn_up.weight"), ModelFileError, "tensor blk.1.ffn_up.weight is missing"),
        (lambda w: w.without("token_embd.weight"), ModelFileError, "token_embd.weight is missing"),
        (
            lambda w: w.tensor("blk.0.ffn_up.weight", np.zeros((95, 64), np.float32)),
            ModelFileError,
            r"blk.0.ffn_up.weight has the shape \(95, 64\); the model's settings need \(96, 64\)",
        ),
        (
            lambda w: w.tensor("blk.0.attn_q.bias", np.zeros(64, np.float32)),
            ModelFileError,
            "the tensor blk.0.attn_k.bias is missing",
        ),
        (
            lambda w: w.tensor("blk.2.attn_norm.weight", np.zeros(64, np.float32)),
            UnsupportedModelError,
            "a llama model with a tensor blk.2.attn_norm.weight is not supported",
        ),
        (
            lambda w: w.key("tokenizer.ggml.tokens", ARRAY, (STRING, ["a"] * 39)),
            ModelFileError,
            "tokenizer.ggml.tokens has 39 entries; it must have 40",
        ),
        (
            lambda w: w.key("tokenizer.ggml.scores", ARRAY, (0, [1] * 40)),
            ModelFileError,
            "tokenizer.ggml.scores is an array of 40 uint8; it must be an array of floating-point numbers",
        ),
        (
            lambda w: w.key("tokenizer.ggml.scores", ARRAY, (F32, [1.0] * 41)),
            ModelFileError,
            "tokenizer.ggml.scores has 41 entries; it must have 40",
        ),
        (
            lambda w: w.key("tokenizer.ggml.token_type", ARRAY, (F32, [1.0] * 40)),
            ModelFileError,
            "tokenizer.ggml.token_type is an array of 40 float32; it must be an array of whole numbers",
        ),
        (
            lambda w: w.key("tokenizer.ggml.tokens", ARRAY, (STRING, ["<0x-1>"] * 40)),
            ModelFileError,
            "the byte token '<0x-1>', which names no byte",
        ),
        (
            lambda w: w.key("tokenizer.ggml.tokens", ARRAY, (STRING, ["<0xZZ>"] * 40)),
            ModelFileError,
            "the byte token '<0xZZ>'",
        ),
        (lambda w: w.without("tokenizer.ggml.tokens"), ModelFileError, "tokenizer.ggml.tokens is missing"),
    ],
)
def test_a_file_that_contradicts_itself_is_refused(
    make_gguf: Callable[..., Any], tmp_path: Path, change: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        open_model(change(make_gguf()).write(tmp_path / "bad.gguf"))


def test_qwen2_without_its_biases_is_refused(make_gguf: Callable[..., Any], tmp_path: Path) -> None:
    writer = make_gguf("qwen2").without("blk.0.attn_k.bias")

    with pytest.raises(ModelFileError, match=r"the tensor blk.0.attn_k.bias is missing"):
        open_model(writer.write(tmp_path / "bad.gguf"))


def test_an_unknown_canonical_name_is_refused(make_gguf: Callable[..., Any], tmp_path: Path) -> None:
    with (
        open_model(make_gguf().write(tmp_path / "tiny.gguf")) as model,
        pytest.raises(ModelFileError, match=r"has no tensor layers.9.q"),
    ):
        model.tensor("layers.9.q")


@pytest.mark.slow
@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("architecture", ["llama", "qwen2"])
def test_a_folder_saved_by_transformers_gives_back_its_weights(
    tmp_path: Path, architecture: str, tied: bool
) -> None:
    import transformers

    torch.manual_seed(0)
    config = transformers.AutoConfig.for_model(
        architecture, hidden_size=64, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
        intermediate_size=96, vocab_size=40, max_position_embeddings=128, tie_word_embeddings=tied,
        rope_parameters={"rope_type": "default", "rope_theta": 5e5},
    )  # fmt: skip
    theirs = transformers.AutoModelForCausalLM.from_config(config)
    theirs.save_pretrained(tmp_path / "sharded", max_shard_size="40KB")
    theirs.save_pretrained(tmp_path / "single")

    for folder, many in (("single", False), ("sharded", True)):
        with open_model(tmp_path / folder) as model:
            assert (len(list((tmp_path / folder).glob("*.safetensors"))) > 1) is many
            assert model.kind == "safetensors"
            assert (model.spec.tied_head, model.spec.rope.theta) == (tied, 5e5)
            assert model.spec.qkv_bias == (architecture == "qwen2")
            state = theirs.state_dict()
            places = hf_places(model.spec)
            assert len(model.names) == len(state) - tied
            for name in model.names:
                assert torch.equal(dequantize(model.tensor(name)), state[places[name].name]), name


@pytest.mark.slow
@pytest.mark.parametrize("fixture", ["smollm2", "qwen2"])
def test_a_real_gguf_file_gives_the_weights_that_transformers_reads_from_it(
    request: pytest.FixtureRequest, fixture: str
) -> None:
    import transformers

    path: Path = request.getfixturevalue(fixture)
    theirs = transformers.AutoModelForCausalLM.from_pretrained(
        path.parent, gguf_file=path.name, dtype=torch.float32
    )
    state = theirs.state_dict()

    with open_model(path) as model:
        for name in model.names:
            place = hf_places(model.spec)[name]
            assert torch.equal(dequantize(model.tensor(name)), state[place.name]), name
        config = theirs.config
        assert model.spec.tied_head == config.tie_word_embeddings
        assert model.spec.context_length == config.max_position_embeddings
        assert model.spec.rope.theta == config.rope_parameters["rope_theta"]
        assert model.spec.norm_eps == config.rms_norm_eps


def test_a_folder_without_config_or_weights_says_so(tmp_path: Path) -> None:
    with pytest.raises(ModelFileError, match=r"has neither model.safetensors nor"):
        open_model(tmp_path)
    (tmp_path / "pytorch_model.bin").write_bytes(b"\x80\x02")
    with pytest.raises(UnsupportedModelError, match=r"pytorch_model.bin.*this format can run code"):
        open_model(tmp_path)
    (tmp_path / "x.gguf").write_bytes(b"GGUF")
    with pytest.raises(ModelFileError, match=r"Open the file x.gguf in it"):
        open_model(tmp_path)
    (tmp_path / "model.safetensors").write_bytes((2).to_bytes(8, "little") + b"{}")
    with pytest.raises(ModelFileError, match=r"has no config.json"):
        open_model(tmp_path)
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "gpt_neox", "auto_map": {"x": "y.z"}}))
    with pytest.raises(UnsupportedModelError, match=r"architecture 'gpt_neox' is not supported"):
        open_model(tmp_path)


_opened: list[str] | None = None


def _note_opened(event: str, arguments: tuple[object, ...]) -> None:
    if event == "open" and _opened is not None:
        _opened.append(str(arguments[0]))


def test_only_weights_and_config_of_a_folder_are_opened(
    make_weights: Callable[..., Any], tmp_path: Path
) -> None:
    global _opened
    config = {
        "model_type": "qwen2", "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4,
        "num_key_value_heads": 2, "intermediate_size": 96, "vocab_size": 40, "max_position_embeddings": 128,
        "auto_map": {"AutoModelForCausalLM": "modeling_x.Model"}, "trust_remote_code": True,
    }  # fmt: skip
    (tmp_path / "config.json").write_text(json.dumps(config))
    places = hf_places(spec_from_config(Metadata(config, "config.json"), ()))
    tensors = {places[name].name: values for name, values in make_weights("qwen2").items()}
    safetensors.numpy.save_file(tensors, tmp_path / "model.safetensors")
    for name in ("modeling_x.py", "pytorch_model.bin", "other.safetensors", "optimizer.pt"):
        (tmp_path / name).write_text("raise SystemExit")
    sys.addaudithook(_note_opened)  # cannot be taken back, so it listens only while _opened is a list

    _opened = []
    with open_model(tmp_path) as model:
        fingerprint = model.fingerprint
        for name in model.names:
            model.tensor(name)
    opened, _opened = _opened, None

    assert {Path(path).name for path in opened} == {"model.safetensors", "config.json"}
    assert len(fingerprint) == 64
