"""A passage is marked by one rectangle a line."""

from __future__ import annotations

from inglenook.storage.parsing.document import Rect
from inglenook.storage.parsing.rectangles import merge_lines


def test_words_of_a_line_become_one_rectangle_and_lines_stay_apart() -> None:
    words = [Rect(10, 10, 40, 20), Rect(44, 11, 80, 22), Rect(10, 24, 50, 34)]

    assert merge_lines(words) == (Rect(10, 10, 80, 22), Rect(10, 24, 50, 34))


def test_a_gutter_between_columns_is_not_marked() -> None:
    columns = [Rect(10, 10, 200, 20), Rect(260, 10, 400, 20)]

    assert merge_lines(columns) == tuple(columns)


def test_lines_that_run_upwards_are_merged_along_their_direction() -> None:
    words = [Rect(10, 80, 20, 100), Rect(10, 50, 20, 77), Rect(24, 80, 34, 100)]

    assert merge_lines(words, is_vertical=True) == (Rect(10, 50, 20, 100), Rect(24, 80, 34, 100))


def test_empty_rectangles_are_left_out() -> None:
    assert merge_lines([Rect(5, 5, 5, 9), Rect(5, 5, 9, 5)]) == ()
