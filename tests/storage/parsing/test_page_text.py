"""The text of a page as it is searched and quoted, and the way back to the page's own characters."""

from __future__ import annotations

import time
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inglenook.storage.parsing.page_text import PageText

_AWKWARD = st.text(
    st.sampled_from(
        "ab C.-\n\r\t\x00\x02\x0c\xa0\xad\u200b\u202e\ufb03\ufdfa\ufffe\uffff\ud83d\ude00\ud800é中"
    )
)


@pytest.mark.parametrize("mark", ["\x02", "\ufffe"])
def test_a_word_broken_over_two_lines_is_joined(mark: str) -> None:
    assert PageText(f"con{mark}sectetuer").text == "consectetuer"


def test_a_hyphen_stays_before_a_capital_or_a_digit() -> None:
    assert PageText("Jean\x02Paul and COVID\x0219").text == "Jean-Paul and COVID-19"


def test_a_hyphen_stays_in_a_word_that_the_page_writes_with_one() -> None:
    page = PageText("a cloud\x02based service is cloud-based")

    assert page.text == "a cloud-based service is cloud-based"


def test_ligatures_become_letters() -> None:
    assert PageText("o\ufb03ce \ufb02oor").text == "office floor"


def test_halves_of_a_surrogate_pair_are_joined_and_lone_ones_dropped() -> None:
    assert PageText("a \ud83d\ude00 b \udbff c").text == "a \U0001f600 b c"


def test_controls_separate_words_and_leave_no_trace() -> None:
    text = PageText("one\x00two\x03three\u200bfour\x0cfive\uffffsix\u202eseven").text

    assert text == "one two threefour five sixseven"


def test_line_ends_are_one_kind_and_blank_lines_one() -> None:
    assert PageText("  a  \r\nb\rc \n \r\n \n d\xa0 \te  ").text == "a\nb\nc\n\nd e"


def test_a_range_of_the_text_leads_back_to_the_characters_it_came_from() -> None:
    raw = "An o\ufb03ce,\r\n  inter\x02national."
    page = PageText(raw)

    start = page.text.index("office")
    assert raw[slice(*page.raw_range(start, start + 6))] == "o\ufb03ce"
    start = page.text.index("international")
    assert raw[slice(*page.raw_range(start, start + 13))] == "inter\x02national"


def test_a_range_outside_of_the_text_is_refused() -> None:
    with pytest.raises(ValueError, match="0 to 3"):
        PageText("abc").raw_range(1, 4)


@given(_AWKWARD)
def test_any_page_becomes_clean_text_whose_ranges_rise(raw: str) -> None:
    page = PageText(raw)

    page.text.encode("utf-8")
    assert not set(page.text) & set("\x00\x02\r\ufffe\uffff\u202e\u200b\xad")
    assert page.text == page.text.strip()
    places = [page.raw_range(i, i + 1) for i in range(len(page.text))]
    assert all(0 <= start < end <= len(raw) for start, end in places)
    assert all(before[0] <= after[0] for before, after in pairwise(places))


@pytest.mark.parametrize("unit", [" ", "\x02", "a", "a\x02", " \n", "\ufb03", "\ud83d", "\xad"])
def test_a_page_of_one_repeated_mark_takes_no_time(unit: str) -> None:
    # The claim is about work that grows with the length alone, so other programs on the machine do not count.
    started_s = time.process_time()
    PageText(unit * 100_000 + "x")

    assert time.process_time() - started_s < 2
