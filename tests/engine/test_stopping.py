"""Stop strings: nothing of one is ever shown, and the pieces the text came in do not matter."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inglenook.engine.stopping import StopStrings


def _run(stops: list[str], pieces: list[str]) -> tuple[str, bool]:
    stopping = StopStrings(stops)
    shown = ""
    for piece in pieces:
        text, stopped = stopping.feed(piece)
        shown += text
        if stopped:
            return shown, True
    return shown + stopping.flush(), False


def _oracle(stops: list[str], text: str) -> tuple[str, bool]:
    for end in range(1, len(text) + 1):
        if starts := [end - len(stop) for stop in stops if text[:end].endswith(stop)]:
            return text[: min(starts)], True
    return text, False


def test_a_stop_string_over_three_pieces_is_cut_whole() -> None:
    assert _run(["DEFGHIJ"], ["ABC", "DEF", "G", "HI", "J and more"]) == ("ABC", True)


def test_only_the_longest_suffix_that_begins_a_stop_string_is_held_back() -> None:
    stopping = StopStrings(["\nUser:", "###"])

    assert stopping.feed("Hello.\nUse") == ("Hello.", False)
    assert stopping.feed("ful #") == ("\nUseful ", False)
    assert stopping.flush() == "#"


def test_a_suffix_inside_a_failed_prefix_stays_held() -> None:
    stopping = StopStrings(["aab"])

    assert stopping.feed("aaa") == ("a", False)
    assert stopping.feed("b") == ("", True)


def test_text_after_the_stop_string_is_dropped_for_good() -> None:
    stopping = StopStrings(["END"])

    assert stopping.feed("textENDmore") == ("text", True)
    assert stopping.feed("even more") == ("", True)
    assert stopping.flush() == ""


def test_of_stop_strings_complete_at_once_the_longest_is_cut() -> None:
    assert _run(["d", "bcd", "cd"], ["abcd"]) == ("a", True)


def test_a_short_stop_string_inside_a_longer_unfinished_one_counts() -> None:
    assert _run(["abcdef", "cd"], ["xabcdz"]) == ("xab", True)


def test_without_stop_strings_text_passes_through() -> None:
    assert _run([], ["a", "", "b"]) == ("ab", False)


def test_an_empty_stop_string_is_refused() -> None:
    with pytest.raises(ValueError, match="empty"):
        StopStrings([""])


@settings(deadline=None)
@given(
    st.lists(st.text("abé", min_size=1, max_size=5), max_size=6),
    st.lists(st.text("abé", max_size=6), max_size=10),
)
def test_any_chunking_equals_a_search_in_the_whole_text(stops: list[str], pieces: list[str]) -> None:
    assert _run(stops, pieces) == _oracle(stops, "".join(pieces))


@settings(deadline=None)
@given(st.lists(st.text("ab", min_size=1, max_size=5), min_size=1), st.text("ab", max_size=30))
def test_what_is_held_back_is_exactly_a_proper_prefix_of_a_stop_string(stops: list[str], text: str) -> None:
    stopping = StopStrings(stops)

    shown, stopped = stopping.feed(text)

    if not stopped:
        held = stopping.flush()
        assert shown + held == text
        suffixes = [text[at:] for at in range(len(text) + 1)]
        longest = next(s for s in suffixes if any(stop.startswith(s) and stop != s for stop in stops))
        assert held == longest


def test_many_long_stop_strings_cost_little() -> None:
    stops = [f"{'x' * 1000}{i:04}" for i in range(64)]
    stopping = StopStrings(stops)

    started = time.process_time()
    for _ in range(200):
        stopping.feed("x" * 1000)

    assert time.process_time() - started < 5
