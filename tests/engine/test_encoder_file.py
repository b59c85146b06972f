"""Encoders of the BERT family from folders and GGUF files, against `transformers`; and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch
from tiny_encoders import make_encoder, sentences, write_encoder_gguf

from inglenook.engine.encoder_file import EncoderPrefixes, is_encoder, open_encoder
from inglenook.engine.errors import ModelFileError, UnsupportedModelError
from inglenook.engine.loaded_encoder import EmbeddingJob, LoadedEncoder, load_encoder
from inglenook.engine.request import LoadOptions, Purpose

pytestmark = pytest.mark.slow


def load(path: Path) -> LoadedEncoder:
    options = LoadOptions(num_threads=1, backend="reference")
    return load_encoder(path, "embedder", options, lambda event: None)


def embed(model: LoadedEncoder, texts: list[str], purpose: Purpose = "plain") -> npt.NDArray[np.float32]:
    job = EmbeddingJob(model, *model.tokenize(tuple(texts), purpose))
    while not job.is_finished:
        job.step()
    return job.vectors


def reference(folder: Path, model: Any, texts: list[str], *, first: bool = False) -> npt.NDArray[np.float32]:
    """Each text by itself through transformers, as sentence-transformers pools it."""
    import tokenizers

    tokenizer = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.encode_special_tokens = True
    room = model.config.max_position_embeddings - (0 if model.config.model_type == "bert" else 2)
    tokenizer.enable_truncation(room)
    rows = []
    for text in texts:
        with torch.inference_mode():
            states = model(torch.tensor([tokenizer.encode(text).ids])).last_hidden_state[0]
        rows.append(torch.nn.functional.normalize(states[0] if first else states.mean(0), dim=0).numpy())
    return np.array(rows)


def assert_same_directions(got: npt.NDArray[np.float32], want: npt.NDArray[np.float32]) -> None:
    assert (1 - (got * want).sum(1)).max() < 1e-5


@pytest.mark.parametrize("model_type", ["xlm-roberta", "roberta"])
def test_xlm_roberta_equals_transformers_with_and_without_e5s_prefixes(
    tmp_path: Path, model_type: str
) -> None:
    folder = tmp_path / "multilingual-e5-small"
    theirs, texts = make_encoder(folder, model_type), sentences(200)

    ours = load(folder)

    assert ours.prefixes == EncoderPrefixes("query: ", "passage: ")
    assert ours.encoder.spec.max_tokens == 128
    assert_same_directions(embed(ours, texts), reference(folder, theirs, texts))
    want = reference(folder, theirs, [f"query: {t}" for t in texts[:20]])
    assert_same_directions(embed(ours, texts[:20], "query"), want)


def test_bert_with_first_token_pooling_equals_transformers(tmp_path: Path, minilm: Path) -> None:
    folder = tmp_path / "bge-small-en-v1.5"
    theirs = make_encoder(folder, "bert", pooling="cls_token", tokenizer=minilm / "tokenizer.json")
    texts = sentences(200, seed=1)

    ours = load(folder)

    assert ours.prefixes.query.startswith("Represent this sentence")
    assert ours.prefixes.document == ""
    assert_same_directions(embed(ours, texts), reference(folder, theirs, texts, first=True))


def test_mpnet_equals_transformers(tmp_path: Path) -> None:
    folder = tmp_path / "all-mpnet-base-v2"
    theirs, texts = make_encoder(folder, "mpnet"), sentences(200, seed=6)

    ours = load(folder)

    assert (ours.encoder.spec.distance_buckets, ours.encoder.spec.num_types) == (32, 0)
    assert max(map(len, ours.tokenize(tuple(texts))[0])) == 128
    assert_same_directions(embed(ours, texts), reference(folder, theirs, texts))


@pytest.mark.parametrize("model_type", ["bert", "xlm-roberta"])
def test_a_gguf_of_an_encoder_gives_its_folders_vectors(
    tmp_path: Path, minilm: Path, model_type: str
) -> None:
    folder = tmp_path / "folder"
    make_encoder(folder, model_type, tokenizer=minilm / "tokenizer.json" if model_type == "bert" else None)
    path = write_encoder_gguf(folder, tmp_path / "encoder.gguf")
    texts = sentences(200, seed=2)

    assert is_encoder(path)
    np.testing.assert_allclose(embed(load(path), texts), embed(load(folder), texts), atol=1e-5)


def test_the_gguf_of_a_real_wordpiece_vocabulary_gives_its_ids_on_1000_strings(
    tmp_path: Path, minilm: Path
) -> None:
    path = write_encoder_gguf(minilm, tmp_path / "minilm.gguf")
    (tmp_path / "bare").mkdir()
    for name in ("model.safetensors", "config.json", "vocab.txt"):
        (tmp_path / "bare" / name).write_bytes((minilm / name).read_bytes())
    texts = sentences(1000, seed=3)

    with open_encoder(minilm) as folder, open_encoder(path) as file, open_encoder(tmp_path / "bare") as bare:
        for text in texts:
            want = folder.tokenizer.encode(text).ids
            assert file.tokenizer.encode(text).ids == want
            assert bare.tokenizer.encode(text).ids == want


def test_control_tokens_in_a_text_stay_ordinary_text(minilm: Path) -> None:
    model = load(minilm)

    sequences, _ = model.tokenize(("a [SEP] b [CLS] c",))

    assert sequences[0].count(102) == 1
    assert sequences[0].count(101) == 1


def _spoil(folder: Path, name: str, **changes: Any) -> None:
    path = folder / name
    path.parent.mkdir(exist_ok=True)
    values = json.loads(path.read_text()) if path.is_file() else {}
    path.write_text(json.dumps({**values, **changes}))


@pytest.mark.parametrize(
    ("name", "changes", "error", "message"),
    [
        ("config.json", {"hidden_act": "relu"}, UnsupportedModelError, "hidden_act is 'relu'"),
        ("config.json", {"position_embedding_type": "relative_key"}, UnsupportedModelError, "relative_key"),
        ("config.json", {"num_hidden_layers": 4}, ModelFileError, "encoder.layer.3.* is missing"),
        ("config.json", {"num_hidden_layers": 2}, UnsupportedModelError, "a tensor encoder.layer.2"),
        ("config.json", {"vocab_size": 100}, ModelFileError, "tokens, config.json says 100"),
        (
            "1_Pooling/config.json",
            {"pooling_mode_max_tokens": True},
            UnsupportedModelError,
            "pooling by mean_tokens, max_tokens",
        ),
        (
            "1_Pooling/config.json",
            {"include_prompt": False},
            UnsupportedModelError,
            "include_prompt is false",
        ),
    ],
)
def test_a_folder_that_would_give_other_vectors_is_refused_by_name(
    tmp_path: Path, name: str, changes: dict[str, Any], error: type[Exception], message: str
) -> None:
    folder = tmp_path / "encoder"
    make_encoder(folder, "xlm-roberta")
    _spoil(folder, name, **changes)

    with pytest.raises(error, match=message):
        load(folder)


def test_a_dense_layer_after_pooling_is_refused_by_name(tmp_path: Path) -> None:
    folder = tmp_path / "encoder"
    make_encoder(folder, "xlm-roberta")
    modules = [{"type": "sentence_transformers.models.Dense", "path": "2_Dense"}]
    (folder / "modules.json").write_text(json.dumps(modules))

    with pytest.raises(UnsupportedModelError, match=r"type 'Dense' is not supported"):
        open_encoder(folder)


def test_prompts_of_a_folder_come_before_those_of_its_family(tmp_path: Path) -> None:
    folder = tmp_path / "e5-base"
    make_encoder(folder, "xlm-roberta")
    _spoil(folder, "config_sentence_transformers.json", prompts={"query": "Q: ", "document": "D: "})

    with open_encoder(folder) as file:
        assert file.prefixes == EncoderPrefixes("Q: ", "D: ")
