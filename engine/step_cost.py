"""`StepCost`: what a decoding step takes, by its number of rows, as measured while working.

It tells whether guessing tokens pays: checking k drafts adds k rows to a step, which costs little while a step's time
is spent reading weights and a lot once it is spent computing. Times of all numbers of rows also drift together, by
the lengths of contexts and by what else the computer does, so a measurement of one moves the others a little less.
Used for speed only; no result depends on it.
"""

from __future__ import annotations

from bisect import bisect_left

_WEIGHT = 0.3  # of the newest measurement, on the logarithm of its own average
_DRIFT = 0.2  # and on those of the other numbers of rows
_MOST_CHANGE = 2.0  # what one measurement is believed
_UNKNOWN = (
    0.25  # what a row more costs of a row where that is not known: little, so that it is tried and measured
)


class StepCost:
    """Moving averages of step times."""

    def __init__(self) -> None:
        self._seconds: dict[int, float] = {}  # by rows, ascending

    def observe(self, rows: int, seconds: float) -> None:
        """Record a step that only decoded."""
        known = self._seconds.get(rows)
        if known is None:
            self._seconds = dict(sorted({**self._seconds, rows: seconds}.items()))
            return
        change = min(max(seconds / known, 1 / _MOST_CHANGE), _MOST_CHANGE)
        own, others = change**_WEIGHT, change**_DRIFT
        for number in self._seconds:
            self._seconds[number] *= own if number == rows else others

    def ratio(self, rows: int, fewer: int) -> float:
        """How many times as long a step of `rows` takes as one of `fewer`; a guess while nothing is known."""
        if not self._seconds:
            return 1.0 + _UNKNOWN * (rows - fewer) / fewer
        return max(1.0, self._estimate(rows) / self._estimate(fewer))

    def delay(self, rows: int, fewer: int) -> float:
        """The time that a step of `rows` takes more than one of `fewer`, in tokens that the latter makes in it."""
        return fewer * (self.ratio(rows, fewer) - 1.0)

    def _estimate(self, rows: int) -> float:
        """The average for `rows`, on the line through its neighbours where there is none."""
        if rows in self._seconds:
            return self._seconds[rows]
        points = list(self._seconds.items())
        number, seconds = points[0]
        if len(points) == 1:
            return seconds * (1.0 + _UNKNOWN * (rows - number) / number)
        at = min(max(bisect_left(points, (rows,)), 1), len(points) - 1)
        below, above = points[at - 1], points[at]
        slope = max(0.0, (above[1] - below[1]) / (above[0] - below[0]))
        return max(above[1] + slope * (rows - above[0]), seconds * min(1.0, rows / number))
