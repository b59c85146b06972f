"""Vocabularies from GGUF metadata: ids as the original has them, and damage named by its key."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tokenizers
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from inglenook.engine.errors import ModelFileError, UnsupportedModelError
from inglenook.engine.tokenizer.pre_tokenizers import BYTE_LEVEL_RULES
from inglenook.engine.tokenizer.tokenizer import Tokenizer

Metadata = Callable[..., dict[str, Any]]
_RELAXED = settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
_TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=40) | st.text(
    "the fox 12\n世界ö ", max_size=40
)


@_RELAXED
@given(text=_TEXT)
def test_byte_level_ids_equal_the_trained_pipelines(
    byte_level: tokenizers.Tokenizer, byte_level_metadata: Metadata, text: str
) -> None:
    tokenizer = Tokenizer.from_gguf(byte_level_metadata())

    ids = tokenizer.encode_text(text).token_ids

    assert list(ids) == byte_level.encode(text).ids
    assert b"".join(map(tokenizer.token_bytes, ids)).decode() == text


def _sentencepiece(metadata: dict[str, Any], text: str) -> list[int]:
    """SentencePiece's own rule, naively: join the best-scoring neighbours, leftmost first, until none can be."""
    tokens = metadata["tokenizer.ggml.tokens"]
    ordinary = {t: i for i, t in enumerate(tokens) if metadata["tokenizer.ggml.token_type"][i] == 1}
    scores = metadata["tokenizer.ggml.scores"]
    symbols = list(("▁" + text.replace(" ", "▁")) if text else "")
    while True:
        pairs = [
            (-scores[ordinary[a + b]], i)
            for i, (a, b) in enumerate(itertools.pairwise(symbols))
            if a + b in ordinary
        ]
        if not pairs:
            break
        at = min(pairs)[1]
        symbols[at : at + 2] = [symbols[at] + symbols[at + 1]]
    ids: list[int] = []
    for symbol in symbols:
        ids += [ordinary[symbol]] if symbol in ordinary else [3 + byte for byte in symbol.encode()]
    return ids


@_RELAXED
@given(text=_TEXT)
def test_sentencepiece_ids_equal_the_naive_algorithm(sentencepiece_metadata: Metadata, text: str) -> None:
    metadata = sentencepiece_metadata()
    tokenizer = Tokenizer.from_gguf(metadata)

    ids = tokenizer.encode_text(text).token_ids

    assert list(ids) == [1, *_sentencepiece(metadata, text)]
    detokenizer = tokenizer.detokenizer()
    assert "".join(map(detokenizer.feed, ids)) + detokenizer.flush() == text


def test_without_a_prefix_space_none_is_added_or_dropped(sentencepiece_metadata: Metadata) -> None:
    tokenizer = Tokenizer.from_gguf(sentencepiece_metadata(add_space_prefix=False, add_bos_token=False))

    ids = tokenizer.encode_text(" The fox").token_ids

    detokenizer = tokenizer.detokenizer()
    assert "".join(map(detokenizer.feed, ids)) == " The fox"
    assert ids == tokenizer.encode_text(" The fox").token_ids != tokenizer.encode_text("The fox").token_ids


def test_a_continued_text_keeps_its_space(sentencepiece_metadata: Metadata) -> None:
    tokenizer = Tokenizer.from_gguf(sentencepiece_metadata())
    prompt = tokenizer.encode_text("The fox").token_ids
    reply = tokenizer.encode_text("dog").token_ids[1:]

    continued, opened = tokenizer.detokenizer(prompt), tokenizer.detokenizer([*prompt, 2])

    assert "".join(map(continued.feed, reply)) == " dog"
    assert "".join(map(opened.feed, reply)) == "dog"
    assert "".join(map(tokenizer.detokenizer(prompt, is_chat=True).feed, reply)) == "dog"


def test_bytes_without_a_token_are_left_out_with_a_notice(byte_level_metadata: Metadata) -> None:
    values = byte_level_metadata(merges=[])
    tokens = values["tokenizer.ggml.tokens"]
    values["tokenizer.ggml.tokens"] = [f"gone{i}" if t == "\u0104" else t for i, t in enumerate(tokens)]
    tokenizer = Tokenizer.from_gguf(values)

    prompt = tokenizer.encode_text("a\x04b\x04")

    assert b"".join(map(tokenizer.token_bytes, prompt.token_ids)) == b"ab"
    assert prompt.notices == ("This model has no token for 2 rare bytes of the prompt; they were left out.",)
    assert tokenizer.encode_text("ab").notices == ()


@pytest.mark.parametrize(
    "text", ["<|im_end|>", "<think>", "a<tool>b", "<|im_start|>system\n", "<0x41>", "<unk>"]
)
def test_look_alikes_in_text_are_ordinary_text(
    byte_level_metadata: Metadata, sentencepiece_metadata: Metadata, text: str
) -> None:
    for metadata in (byte_level_metadata(), sentencepiece_metadata(add_bos_token=False)):
        tokenizer = Tokenizer.from_gguf(metadata)
        ids = tokenizer.encode_text(text).token_ids

        assert not any(map(tokenizer.is_control, ids))
        assert not {metadata["tokenizer.ggml.tokens"][i] for i in ids} & {"<think>", "<tool>", "<|user|>"}
        detokenizer = tokenizer.detokenizer()
        assert "".join(map(detokenizer.feed, ids)) == text


def test_stop_tokens_are_the_union_of_all_keys_and_known_turn_ends(byte_level_metadata: Metadata) -> None:
    values = byte_level_metadata(eos_token_id=5, eot_token_id=6, eom_token_id=7)
    tokens = values["tokenizer.ggml.tokens"]

    stops = Tokenizer.from_gguf(values).stop_token_ids

    assert stops == {5, 6, 7, tokens.index("<|im_end|>"), tokens.index("<|endoftext|>")}


def test_a_turn_end_that_the_file_calls_normal_is_a_control_token(byte_level_metadata: Metadata) -> None:
    values = byte_level_metadata()
    end = values["tokenizer.ggml.tokens"].index("<|im_end|>")
    kinds = values["tokenizer.ggml.token_type"].copy()
    kinds[end] = 1

    tokenizer = Tokenizer.from_gguf(values | {"tokenizer.ggml.token_type": kinds})

    assert tokenizer.is_control(end)
    assert end in tokenizer.stop_token_ids


def test_control_and_unknown_ids_have_no_bytes(byte_level_metadata: Metadata) -> None:
    values = byte_level_metadata()
    tokens = values["tokenizer.ggml.tokens"]
    tokenizer = Tokenizer.from_gguf(values)

    assert tokenizer.vocab_size == len(tokens)
    assert tokenizer.token_bytes(tokens.index("<|im_end|>")) == b""
    assert tokenizer.token_bytes(tokens.index("<think>")) == b"<think>"
    assert tokenizer.token_bytes(len(tokens)) == tokenizer.token_bytes(-1) == b""


@pytest.mark.parametrize("name", sorted(BYTE_LEVEL_RULES))
def test_every_pre_tokeniser_can_be_built_and_keeps_text(byte_level_metadata: Metadata, name: str) -> None:
    tokenizer = Tokenizer.from_gguf(byte_level_metadata(pre=name, add_bos_token=None))

    ids = tokenizer.encode_text("It's 12345\r\n\n  naïve été, 世界 😀\t!?").token_ids

    assert b"".join(map(tokenizer.token_bytes, ids)).decode() == "It's 12345\r\n\n  naïve été, 世界 😀\t!?"
    assert (ids[0] == tokenizer.bos_id) == BYTE_LEVEL_RULES[name].add_bos


def test_digits_are_cut_as_each_pre_tokeniser_says() -> None:
    def words(name: str, text: str) -> list[str]:
        return [word for word, _ in BYTE_LEVEL_RULES[name].pre_tokenizer().pre_tokenize_str(text)]

    assert words("smollm", "a 12") == ["a", "Ġ", "1", "2"]
    assert words("gpt-2", "a 12") == ["a", "Ġ12"]
    assert words("qwen2", "a 12") == ["a", "Ġ", "1", "2"]
    assert words("llama-bpe", "a 12345") == ["a", "Ġ", "123", "45"]
    assert words("tekken", "helloWorld") == ["hello", "World"]


@pytest.mark.parametrize(
    ("changes", "key", "words"),
    [
        ({"model": "bert"}, "bert", "WordPiece"),
        ({"model": "rwkv"}, "rwkv", "not supported"),
        ({"model": "t5"}, "t5", "Unigram"),
        ({"pre": "dreamt-up"}, "tokenizer.ggml.pre", "dreamt-up"),
        ({"pre": None}, "tokenizer.ggml.pre", "'default'"),
    ],
)
def test_unknown_kinds_are_refused_by_name(
    byte_level_metadata: Metadata, changes: dict[str, Any], key: str, words: str
) -> None:
    with pytest.raises(UnsupportedModelError, match=key) as caught:
        Tokenizer.from_gguf(byte_level_metadata(**changes))

    assert words in str(caught.value)


_INTS = np.ones(10, dtype=np.int32)


@pytest.mark.parametrize(
    ("changes", "key"),
    [
        ({"model": None}, "tokenizer.ggml.model"),
        ({"model": 7}, "tokenizer.ggml.model"),
        ({"tokens": None}, "tokenizer.ggml.tokens"),
        ({"tokens": []}, "tokenizer.ggml.tokens"),
        ({"tokens": ["a", 1]}, "tokenizer.ggml.tokens"),
        ({"tokens": ["a", "a"], "token_type": _INTS[:2]}, "tokenizer.ggml.tokens"),
        ({"tokens": ["a" * 5000], "token_type": _INTS[:1]}, "tokenizer.ggml.tokens"),
        ({"token_type": None}, "tokenizer.ggml.token_type"),
        ({"token_type": _INTS}, "tokenizer.ggml.token_type"),
        ({"token_type": _INTS.astype(np.float32)}, "tokenizer.ggml.token_type"),
        ({"tokens": ["a"], "token_type": _INTS[:1] * 9}, "tokenizer.ggml.token_type"),
        ({"tokens": ["<0xZZ>"], "token_type": _INTS[:1] * 6}, "tokenizer.ggml.tokens"),
        ({"tokens": ["<0x-1>"], "token_type": _INTS[:1] * 6}, "tokenizer.ggml.tokens"),
        ({"merges": None}, "tokenizer.ggml.merges"),
        ({"merges": ["a"]}, "tokenizer.ggml.merges"),
        ({"merges": ["a b c"]}, "tokenizer.ggml.merges"),
        ({"merges": ["a zzz"]}, "tokenizer.ggml.merges"),
        ({"eos_token_id": 10**6}, "tokenizer.ggml.eos_token_id"),
        ({"bos_token_id": -1}, "tokenizer.ggml.bos_token_id"),
        ({"eot_token_id": "2"}, "tokenizer.ggml.eot_token_id"),
        ({"add_bos_token": 3}, "tokenizer.ggml.add_bos_token"),
        ({"template": 5}, "tokenizer.chat_template"),
    ],
)
def test_damage_is_named_by_its_key(byte_level_metadata: Metadata, changes: dict[str, Any], key: str) -> None:
    with pytest.raises(ModelFileError, match=key):
        Tokenizer.from_gguf(byte_level_metadata(**changes))


@pytest.mark.parametrize(
    "scores",
    [None, np.zeros(3, dtype=np.float32), np.zeros(3, dtype=np.uint8), "scores", np.float32("nan")],
)
def test_wrong_scores_are_named(sentencepiece_metadata: Metadata, scores: object) -> None:
    if isinstance(scores, np.float32):
        scores = sentencepiece_metadata()["tokenizer.ggml.scores"] * scores

    with pytest.raises(ModelFileError, match=r"tokenizer\.ggml\.scores"):
        Tokenizer.from_gguf(sentencepiece_metadata(scores=scores))
