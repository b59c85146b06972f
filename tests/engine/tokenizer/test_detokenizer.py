"""Detokenising: the pieces joined are the bytes joined, and no character is ever shown half."""

from __future__ import annotations

import itertools

from hypothesis import given, settings
from hypothesis import strategies as st

from inglenook.engine.tokenizer.detokenizer import Detokenizer


def _feed_all(pieces: list[bytes], *, strip_space: bool = False) -> list[str]:
    detokenizer = Detokenizer(pieces.__getitem__, strip_space=strip_space)
    return [*(detokenizer.feed(token_id) for token_id in range(len(pieces))), detokenizer.flush()]


def _split(data: bytes, cuts: list[int]) -> list[bytes]:
    edges = [0, *sorted(cut % (len(data) + 1) for cut in cuts), len(data)]
    return [data[a:b] for a, b in itertools.pairwise(edges)]


@settings(deadline=None)
@given(st.binary(max_size=60), st.lists(st.integers(0, 60), max_size=20))
def test_any_bytes_split_anywhere_decode_as_python_does_with_replace(data: bytes, cuts: list[int]) -> None:
    assert "".join(_feed_all(_split(data, cuts))) == data.decode("utf-8", "replace")


@settings(deadline=None)
@given(st.text(st.characters(exclude_categories=["Cs"])), st.lists(st.integers(0, 200), max_size=30))
def test_text_split_anywhere_comes_back_whole(text: str, cuts: list[int]) -> None:
    assert "".join(_feed_all(_split(text.encode(), cuts))) == text


def test_a_character_over_four_tokens_appears_with_the_last() -> None:
    assert _feed_all([b"\xf0", b"\x9f", b"\x98", b"\x80", b"!"]) == ["", "", "", "😀", "!", ""]


def test_bytes_proven_invalid_are_replaced_at_once() -> None:
    assert _feed_all([b"a\xf0\x9f", b"b"]) == ["a", "\ufffdb", ""]


def test_an_unfinished_character_is_replaced_at_the_end() -> None:
    assert _feed_all([b"a", b"\xe4\xb8"]) == ["a", "", "\ufffd"]


def test_the_space_before_the_first_word_is_dropped_once() -> None:
    assert _feed_all([b"", b"  Hello", b" world"], strip_space=True) == ["", " Hello", " world", ""]
