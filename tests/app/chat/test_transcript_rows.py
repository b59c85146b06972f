"""The rows of the transcript."""

from __future__ import annotations

import random

from inglenook.app.chat.transcript_rows import TranscriptRows


def rows_of(*sizes: int) -> TranscriptRows:
    rows = TranscriptRows(lambda message, part: 100)
    rows.reset(sizes)
    return rows


def test_rows_begin_where_the_ones_before_end() -> None:
    rows = rows_of(1, 3, 1)

    assert len(rows) == 5
    assert [rows.place(row) for row in range(5)] == [(0, 0), (1, 0), (1, 1), (1, 2), (2, 0)]
    assert [rows.top(row) for row in range(6)] == [0, 100, 200, 300, 400, 500]
    assert (rows.first(1), rows.end(1), rows.end(2)) == (1, 4, 5)
    assert [rows.at(y) for y in (-5, 0, 99, 100, 499, 10_000)] == [0, 0, 0, 1, 4, 4]


def test_no_rows_have_no_height() -> None:
    rows = rows_of()

    assert (len(rows), rows.height, rows.at(0)) == (0, 0, -1)


def test_a_measured_row_moves_the_rows_after_it() -> None:
    rows = rows_of(1, 1, 1)

    assert rows.measure(1, 250)
    assert not rows.measure(2, 100)
    rows.sum_from(1)

    assert [rows.top(row) for row in range(4)] == [0, 100, 350, 450]
    assert [rows.is_measured(row) for row in range(3)] == [False, True, True]
    rows.guess(1)
    assert rows.height == 300
    rows.forget()
    assert not rows.is_measured(2)


def test_any_change_of_size_leaves_the_rows_in_order() -> None:
    random.seed(1)
    sizes = [random.randint(1, 4) for _ in range(30)]
    rows = rows_of(*sizes)

    for _ in range(200):
        message = random.randrange(30)
        sizes[message] = random.randint(1, 5)
        rows.measure(random.randrange(len(rows)), random.randint(1, 400))
        rows.resize(message, sizes[message])
        rows.sum_from(0)

        expected = [(index, part) for index, size in enumerate(sizes) for part in range(size)]
        assert [rows.place(row) for row in range(len(rows))] == expected
        assert [rows.first(index) for index in range(30)] == [sum(sizes[:index]) for index in range(30)]
        tops = [rows.top(row) for row in range(len(rows) + 1)]
        assert tops == sorted(tops)
        assert tops[-1] == rows.height
