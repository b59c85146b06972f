"""`RepetitionWatch`: notices when a completion says one thing over and over and would do so to the end of its context.

Small models fall into such loops. What counts is exact: the last tokens have one period (a word, a sentence, a
paragraph, written token for token alike) and have had it for so long that nobody means it. How long that is depends on
the period: a word or a short sentence can be wanted a hundred times, a paragraph cannot. Lists whose numbers count up,
tables, code and rules of dashes have no such period, or end long before. Pure; knows only token ids.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

LEAST_TOKENS = 640
"""No shorter stretch is ever a loop."""
LEAST_TIMES = ((16, 150), (64, 50), (512, 25))
"""Periods of up to so many tokens have to come at least so many times."""

_LONGEST = LEAST_TIMES[-1][0]
_ROOM = 4 * _LONGEST


class RepetitionWatch:
    """Fed the tokens of one completion in their order."""

    def __init__(self) -> None:
        self._periods = np.arange(1, _LONGEST + 1)
        self._needed = _needed_tokens(self._periods)
        # Of each period p (at index p - 1): for how many tokens up to now each was the one p before it.
        self._runs = np.zeros(_LONGEST, np.int64)
        # The newest tokens at the end; -1 is none, and no token's id.
        self._tokens = np.full(_ROOM, -1, np.int64)
        self._end = _LONGEST

    def feed(self, token_id: int) -> bool:
        """Take the next token; say whether the completion has been repeating itself for too long."""
        if self._end == _ROOM:
            self._tokens[:_LONGEST] = self._tokens[-_LONGEST:]
            self._end = _LONGEST
        before = self._tokens[self._end - _LONGEST : self._end][::-1]
        self._runs = np.where(before == token_id, self._runs + 1, 0)
        self._tokens[self._end] = token_id
        self._end += 1
        long_enough = np.flatnonzero(self._runs >= self._needed)
        if not len(long_enough):
            return False
        # What comes every 11 tokens comes every 66 too: how often it has to come is said by its shortest period.
        period = int(long_enough[0]) + 1
        stretch = int(self._needed[period - 1]) + period
        shortest = int(np.argmax(self._runs + self._periods >= stretch - period))
        return bool(self._runs[shortest] >= self._needed[shortest])


def _needed_tokens(periods: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """For each period, how many tokens have to be like the one a period before: the stretch less its first period."""
    longest, least = np.array(LEAST_TIMES, np.int64).T
    needed: npt.NDArray[np.int64] = np.maximum(
        LEAST_TOKENS, periods * least[np.searchsorted(longest, periods)]
    )
    return needed - periods
