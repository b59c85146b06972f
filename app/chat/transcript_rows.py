"""The rows of the transcript as numbers: which part of which message each shows, how high it is, where it begins.

A message has one row or, if it is long, several. A height is a guess until the row has been laid out. Pure
bookkeeping: knows no widget and no text.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from itertools import accumulate

Estimate = Callable[[int, int], int]


class TranscriptRows:
    """Rows in reading order; `estimate(message, part)` guesses the height of one."""

    def __init__(self, estimate: Estimate) -> None:
        self._estimate = estimate
        self._places: list[tuple[int, int]] = []
        self._firsts: list[int] = []
        self._heights: list[int] = []
        self._is_measured: list[bool] = []
        self._tops: list[int] = [0]

    def __len__(self) -> int:
        return len(self._places)

    @property
    def height(self) -> int:
        """The height of everything."""
        return self._tops[-1]

    def reset(self, sizes: Sequence[int]) -> None:
        """Begin anew with messages of these numbers of rows."""
        self._places, self._firsts, self._heights, self._is_measured, self._tops = [], [], [], [], [0]
        self.extend(sizes)

    def extend(self, sizes: Sequence[int]) -> None:
        """Add messages at the end."""
        begin = len(self)
        for size in sizes:
            message = len(self._firsts)
            self._firsts.append(len(self._places))
            for part in range(size):
                self._places.append((message, part))
                self._heights.append(self._estimate(message, part))
                self._is_measured.append(False)
        self.sum_from(begin)

    def resize(self, message: int, size: int) -> None:
        """Give a message another number of rows; those that stay keep their heights, the last ones are unmeasured."""
        first, end = self._firsts[message], self.end(message)
        kept = min(end, first + size)
        parts = range(kept - first, size)
        self._places[kept:end] = [(message, part) for part in parts]
        self._heights[kept:end] = [self._estimate(message, part) for part in parts]
        self._is_measured[kept:end] = [False] * len(parts)
        # The row that was or becomes the last one gains or loses its footer.
        self._is_measured[kept - 1] = False
        change = first + size - end
        for later in range(message + 1, len(self._firsts)):
            self._firsts[later] += change
        self.sum_from(first)

    def place(self, row: int) -> tuple[int, int]:
        """The message and the part that a row shows."""
        return self._places[row]

    def first(self, message: int) -> int:
        """The row that a message begins with."""
        return self._firsts[message]

    def end(self, message: int) -> int:
        """The row after those of a message."""
        return self._firsts[message + 1] if message + 1 < len(self._firsts) else len(self._places)

    def top(self, row: int) -> int:
        """Where a row begins; the row after the last one begins at the end."""
        return self._tops[row]

    def at(self, y: int) -> int:
        """The row at a height, the nearest one outside; -1 if there is none."""
        return min(len(self) - 1, max(0, bisect_right(self._tops, y) - 1))

    def is_measured(self, row: int) -> bool:
        """Whether the height of a row is no guess."""
        return self._is_measured[row]

    def measure(self, row: int, height: int) -> bool:
        """Set the true height of a row; say whether it differs. Call `sum_from` after the last one."""
        self._is_measured[row] = True
        differs = self._heights[row] != height
        self._heights[row] = height
        return differs

    def forget(self, first: int = 0, end: int | None = None) -> None:
        """Make heights guesses again; they keep their values."""
        end = len(self) if end is None else end
        self._is_measured[first:end] = [False] * (end - first)

    def guess(self, row: int) -> None:
        """Estimate the height of a row anew."""
        self._heights[row] = self._estimate(*self._places[row])
        self._is_measured[row] = False
        self.sum_from(row)

    def sum_from(self, row: int) -> None:
        """Find out anew where each row from `row` on begins."""
        row = min(row, len(self._tops) - 1)
        self._tops[row:] = accumulate(self._heights[row:], initial=self._tops[row])
