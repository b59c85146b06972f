"""Text as the indexes see it."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inglenook.storage.segmentation import has_trigram_words, segmented, tokens, trigrams


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Plain English, 3.5 kg.", "Plain English, 3.5 kg."),
        ("東京都", " 東京 京都 "),
        ("中", " 中 "),
        ("itgc后", "itgc 后 "),
        ("ﬁne ＡＢＣ１", "fine ABC1"),
        ("infor\u00admation\u200b", "information"),
        ("a\0b", "a b"),
        ("한국어", " 한국 국어 "),
        ("ｶﾀｶﾅ", " カタ タカ カナ "),
        ("𠀀𠀁𠀂", " 𠀀𠀁 𠀁𠀂 "),
        ("", ""),
    ],
)
def test_segmented(text: str, expected: str) -> None:
    assert segmented(text) == expected


def test_tokens_are_words_with_their_vowel_signs() -> None:
    assert tokens("Don't STOP don हिन्दी ภาษาไทย 用户 C++ 3.5") == [
        *("don", "t", "stop", "हिन्दी", "ภาษาไทย", "用户", "c", "3", "5"),
    ]


def test_trigrams_are_for_other_alphabets() -> None:
    texts = ["English", "Größe", "中文字", "русский", "ελληνικά", "العربية", "ภาษาไทย", "हिन्दी", "αβ"]

    assert [text for text in texts if has_trigram_words(text)] == texts[3:8]
    assert trigrams("дом домой") == ["дом", "омо", "мой"]


@given(st.text())
def test_any_text_is_segmented_without_losing_what_is_searched(text: str) -> None:
    assert segmented(segmented(text)).split() == segmented(text).split()
    tokens(text)


def test_long_text_takes_no_time() -> None:
    # The claim is about work that grows with the length alone, so other programs on the machine do not count.
    started = time.process_time()

    for piece in ("a", "中", "я", " ", "e\u0301", "😀"):
        segmented(piece * 100_000)

    assert time.process_time() - started < 2


def test_plain_english_gives_the_same_words_by_the_short_way_as_by_the_long() -> None:
    text = "The tower_of ZORB's 34 metres; (e.g. x86-64) \x00 ~a~"

    assert tokens(text) == [token for token in tokens(text + " é") if token != "é"]
