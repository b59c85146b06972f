"""Vocabularies from model folders: ids equal the whole pipeline's, and damage named by file and key."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import tokenizers
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tokenizers import AddedToken, decoders, models, normalizers, pre_tokenizers, processors, trainers

from inglenook.engine.errors import ModelFileError, UnsupportedModelError
from inglenook.engine.tokenizer.tokenizer import Tokenizer

_TEXTS = ["The quick brown fox jumps over the lazy dog.", "<user> Ein größerer Bär </user>", "<a> <b>"] * 3
_SPECIAL = [
    AddedToken("<s>", special=True, normalized=False),
    AddedToken("</s>", special=True, normalized=False, rstrip=True),
    AddedToken("<user>", special=False, normalized=False, lstrip=True),
    AddedToken("<tool>", special=False, normalized=True),
]


def _pipeline(kind: str) -> tokenizers.Tokenizer:
    tokenizer = tokenizers.Tokenizer(models.BPE(byte_fallback=kind != "byte", fuse_unk=True))
    prefix = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    if kind == "byte":
        tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        tokenizer.decoder = decoders.ByteLevel()
    elif kind == "prepend":
        tokenizer.normalizer = prefix
    else:
        tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme=kind, split=False)
    if kind != "byte":
        strip = [] if kind == "never" else [decoders.Strip(" ", 1, 0)]
        parts = [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), *strip]
        tokenizer.decoder = decoders.Sequence(parts)
    alphabet = pre_tokenizers.ByteLevel.alphabet() if kind == "byte" else []
    fallback = [] if kind == "byte" else [f"<0x{byte:02X}>" for byte in range(256)]
    trainer = trainers.BpeTrainer(
        vocab_size=700, initial_alphabet=alphabet, special_tokens=fallback, show_progress=False
    )
    tokenizer.train_from_iterator(_TEXTS, trainer)
    source = json.loads(tokenizer.to_str())
    source["added_tokens"] = []
    tokenizer = tokenizers.Tokenizer.from_str(json.dumps(source))
    tokenizer.add_tokens(_SPECIAL)
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A", special_tokens=[("<s>", tokenizer.token_to_id("<s>"))]
    )
    return tokenizer


def _folder(path: Path, tokenizer: tokenizers.Tokenizer, **config: Any) -> Path:
    path.mkdir(exist_ok=True)
    tokenizer.save(str(path / "tokenizer.json"))
    values = {"bos_token": "<s>", "eos_token": {"content": "</s>"}, **config}
    (path / "tokenizer_config.json").write_text(json.dumps(values))
    return path


_KINDS = ("byte", "prepend", "first", "always", "never")


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[tokenizers.Tokenizer, Tokenizer]]:
    pipelines = {}
    for kind in _KINDS:
        pipeline = _pipeline(kind)
        folder = _folder(tmp_path_factory.mktemp("models") / kind, pipeline)
        pipelines[kind] = (pipeline, Tokenizer.from_folder(folder))
    return pipelines


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@pytest.mark.parametrize("kind", _KINDS)
@given(
    parts=st.lists(
        st.sampled_from(
            ["<s>", "</s>", "<user>", " <tool>", " ", "\n", "fox", " dog", "Bär", "世", "<", ">"]
        ),
        max_size=8,
    )
)
def test_template_text_encodes_as_the_whole_pipeline_does(
    loaded: dict[str, tuple[tokenizers.Tokenizer, Tokenizer]], kind: str, parts: list[str]
) -> None:
    pipeline, tokenizer = loaded[kind]
    text = "".join(parts)

    ids = tokenizer._encode(text, text)  # as if all of it were a template's

    assert ids == pipeline.encode(text, add_special_tokens=False).ids


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@pytest.mark.parametrize("kind", _KINDS)
@given(
    text=st.text("fox dogBär世<>\n", max_size=30) | st.sampled_from(["<s>", "a <tool> b", "<user>", "</s>x"])
)
def test_typed_text_makes_no_added_token_and_comes_back(
    loaded: dict[str, tuple[tokenizers.Tokenizer, Tokenizer]], kind: str, text: str
) -> None:
    pipeline, tokenizer = loaded[kind]

    ids = tokenizer.encode_text(text).token_ids

    assert ids[0] == tokenizer.bos_id == pipeline.token_to_id("<s>")
    assert not {pipeline.token_to_id(str(t.content)) for t in _SPECIAL} & set(ids[1:])
    detokenizer = tokenizer.detokenizer()
    shown = "".join(map(detokenizer.feed, ids)) + detokenizer.flush()
    # Metaspace adds no space before a text that begins with one, so that one is lost, as in the original.
    assert shown == text or (kind in ("first", "always") and " " + shown == text)


def test_stops_come_from_every_file(tmp_path: Path) -> None:
    folder = _folder(tmp_path / "m", _pipeline("byte"))
    (folder / "config.json").write_text(json.dumps({"eos_token_id": 3}))
    (folder / "generation_config.json").write_text(json.dumps({"eos_token_id": [4, 5]}))

    tokenizer = Tokenizer.from_folder(folder)

    eos = _pipeline("byte").token_to_id("</s>")
    assert tokenizer.stop_token_ids == {3, 4, 5, eos}


def test_the_settings_say_whether_bos_is_added(tmp_path: Path) -> None:
    pipeline = _pipeline("byte")

    with_bos = Tokenizer.from_folder(_folder(tmp_path / "a", pipeline)).encode_text("fox").token_ids
    without = (
        Tokenizer.from_folder(_folder(tmp_path / "b", pipeline, add_bos_token=False))
        .encode_text("fox")
        .token_ids
    )

    assert with_bos == (pipeline.token_to_id("<s>"), *without)


def test_a_word_piece_tokenizer_is_refused_by_name(minilm: Path) -> None:
    with pytest.raises(UnsupportedModelError, match="WordPiece"):
        Tokenizer.from_folder(minilm)


def test_a_folder_without_a_tokenizer_says_so(tmp_path: Path) -> None:
    with pytest.raises(ModelFileError, match=r"no tokenizer\.json"):
        Tokenizer.from_folder(tmp_path)


@pytest.mark.parametrize(
    ("file", "content", "words"),
    [
        ("tokenizer.json", "no json", "no JSON"),
        ("tokenizer.json", "[" * 100_000, "no JSON"),
        ("tokenizer.json", "[]", "group of settings"),
        ("tokenizer.json", "{}", "model"),
        ("tokenizer.json", '{"model": {"type": "Unigram"}}', "Unigram"),
        ("tokenizer.json", '{"model": {"type": "BPE", "vocab": {}}}', r"model\.vocab"),
        ("tokenizer.json", '{"model": {"type": "BPE", "vocab": {"a": -1}}}', "-1"),
        ("tokenizer.json", '{"model": {"type": "BPE", "vocab": {"a": 1, "b": 1}}}', "same id"),
        ("tokenizer.json", '{"model": {"type": "BPE", "vocab": {"a": 99999999999}}}', "99999999999"),
        ("tokenizer.json", '{"model": {"type": "BPE", "vocab": {"a": 1}, "merges": [3]}}', "merges"),
        ("tokenizer.json", '{"model": {"type": "BPE", "vocab": {"a": 1}, "merges": ["a b"]}}', "built"),
        (
            "tokenizer.json",
            '{"model": {"type": "BPE", "vocab": {"a": 1}}, "added_tokens": [{}]}',
            "added_tokens",
        ),
        (
            "tokenizer.json",
            '{"model": {"type": "BPE", "vocab": {"a": 1}}, "normalizer": {"type": "?"}}',
            "built",
        ),
        ("generation_config.json", '{"eos_token_id": "x"}', "eos_token_id"),
        ("generation_config.json", '{"eos_token_id": 1000000}', "eos_token_id"),
        ("config.json", '{"eos_token_id": [true]}', "eos_token_id"),
        (
            "tokenizer_config.json",
            '{"added_tokens_decoder": {"x": {"content": "y"}}}',
            "added_tokens_decoder",
        ),
    ],
)
def test_damage_is_named_by_file_and_key(tmp_path: Path, file: str, content: str, words: str) -> None:
    folder = _folder(tmp_path / "m", _pipeline("byte"))
    (folder / file).write_text(content)

    with pytest.raises(ModelFileError, match=words):
        Tokenizer.from_folder(folder)


def test_a_panic_of_the_library_is_an_error_with_a_sentence(tmp_path: Path) -> None:
    pipeline = _pipeline("byte")
    pipeline.pre_tokenizer = pre_tokenizers.Split(tokenizers.Regex("(a+)+$"), behavior="isolated")
    tokenizer = Tokenizer.from_folder(_folder(tmp_path / "m", pipeline))

    with pytest.raises(ModelFileError, match="could not encode this text"):
        tokenizer.encode_text("a" * 28 + "b")
