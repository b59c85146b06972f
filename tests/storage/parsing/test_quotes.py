"""A quotation is found however it is spaced and which marks it uses."""

from __future__ import annotations

import time

from inglenook.storage.parsing.quotes import find_quote

TEXT = "It was said: “the fox’s\nden – well-\u2010known – is deep”. THE END. The end."


def test_spaces_marks_and_case_do_not_matter() -> None:
    found = find_quote(TEXT, "\"The fox's  den - well--known")

    assert found is not None
    assert TEXT[slice(*found)] == "“the fox’s\nden – well-\u2010known"


def test_the_first_place_is_given() -> None:
    assert find_quote(TEXT, "the end.") == (TEXT.index("THE END"), TEXT.index("THE END") + 8)


def test_what_is_not_there_is_not_found() -> None:
    assert find_quote(TEXT, "the foxes") is None
    assert find_quote(TEXT, " \n ") is None
    assert find_quote(TEXT, ".*") is None


def test_a_quote_longer_than_any_passage_is_not_searched_for() -> None:
    assert find_quote("a " * 3000, "a " * 501) is None


def test_a_quote_that_nearly_matches_everywhere_takes_no_time() -> None:
    # The claim is about work that grows with the length alone, so other programs on the machine do not count.
    started_s = time.process_time()
    assert find_quote("a " * 50_000, "a " * 499 + "b") is None

    assert time.process_time() - started_s < 10
