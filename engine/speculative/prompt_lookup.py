"""`PromptLookup`: drafts by looking up the latest tokens earlier in the same text (Saxena, "Prompt lookup decoding", 2023).

Answers about a document quote it, and code repeats itself: where the last few tokens stood before, what followed them
then is likely to follow now. The longest n-gram that occurred before decides, its latest occurrence first.

How many drafts are offered follows what was accepted of late. When checking drafts costs more than it gains, nothing
is offered for a while, and each vain try after that doubles the while: `observe` gets the cost of a step to know.
"""

from __future__ import annotations

LONGEST, SHORTEST = 4, 2  # tokens that must match before a draft is made
MAX_DRAFTS = 15
_PATIENCE = 3  # offers that did not pay in a row before a pause; after it, one is enough for the next
_SHORTEST_PAUSE, _LONGEST_PAUSE = 48, 768  # tokens without drafts


class PromptLookup:
    """Drafts for one sequence; `extend` as it grows."""

    def __init__(self) -> None:
        self.num_drafted = 0
        self.num_accepted = 0
        self._length = 0
        self._latest: dict[tuple[int, ...], int] = {}
        self._drafts = 4
        self._pause = 0
        self._next_pause = _SHORTEST_PAUSE
        self._poor = 0

    def propose(self, token_ids: list[int]) -> list[int]:
        """Return guesses at what follows `token_ids`, possibly none."""
        self._index(token_ids)
        if self._pause:
            self._pause -= 1
            return []
        for size in range(LONGEST, SHORTEST - 1, -1):
            if len(token_ids) <= size:
                continue
            position = self._latest.get(tuple(token_ids[-size:]))
            if position is not None:
                return token_ids[position : position + self._drafts]
        return []

    def observe(self, num_drafted: int, num_accepted: int, relative_cost: float) -> None:
        """Learn how an offer went; `relative_cost` is its step's time in steps of one token."""
        if not num_drafted:
            return
        self.num_drafted += num_drafted
        self.num_accepted += num_accepted
        if num_accepted == num_drafted:
            self._drafts = min(2 * self._drafts, MAX_DRAFTS)
        else:
            self._drafts = max(2, num_accepted + 1)
        if 1 + num_accepted >= relative_cost:
            self._poor, self._next_pause = 0, _SHORTEST_PAUSE
            return
        self._poor += 1
        if self._poor >= _PATIENCE:
            self._poor = _PATIENCE - 1
            self._pause = self._next_pause
            self._next_pause = min(2 * self._next_pause, _LONGEST_PAUSE)

    def _index(self, token_ids: list[int]) -> None:
        """Remember where each n-gram was last followed by something; the text's last one is not followed yet."""
        for end in range(max(self._length, SHORTEST), len(token_ids)):
            for size in range(SHORTEST, LONGEST + 1):
                if end >= size:
                    self._latest[tuple(token_ids[end - size : end])] = end
        self._length = max(self._length, len(token_ids))
