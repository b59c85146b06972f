"""`StepCost`: what a decoding step takes, by its number of rows, as measured while working.

It tells whether guessing tokens pays: checking k drafts adds k rows to a step, which costs little while a step's time
is spent reading weights and a lot once it is spent computing. Used for speed only; no result depends on it.
"""

from __future__ import annotations

_WEIGHT = 0.2  # of the newest measurement in the moving average


class StepCost:
    """Moving averages of step times."""

    def __init__(self) -> None:
        self._seconds: dict[int, float] = {}

    def observe(self, rows: int, seconds: float) -> None:
        """Record a step that only decoded."""
        known = self._seconds.get(rows)
        self._seconds[rows] = seconds if known is None else known + _WEIGHT * (seconds - known)

    def ratio(self, rows: int, fewer: int) -> float:
        """How many times as long a step of `rows` takes as one of `fewer`; 1.0 while that is not known."""
        if not self._seconds:
            return 1.0
        return max(1.0, self._estimate(rows) / self._estimate(fewer))

    def _estimate(self, rows: int) -> float:
        """The average for `rows`, between its neighbours where there is none."""
        if rows in self._seconds:
            return self._seconds[rows]
        below = max((r for r in self._seconds if r < rows), default=None)
        above = min((r for r in self._seconds if r > rows), default=None)
        if below is None or above is None:
            nearest = above if below is None else below
            assert nearest is not None
            return self._seconds[nearest]
        part = (rows - below) / (above - below)
        return self._seconds[below] + part * (self._seconds[above] - self._seconds[below])
