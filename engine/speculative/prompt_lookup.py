"""`PromptLookup`: drafts by looking up the latest tokens earlier in the same text (Saxena, "Prompt lookup decoding", 2023).

Answers about a document quote it, and code repeats itself: where the last few tokens stood before, what followed them
then is likely to follow now. The longest match of the last tokens decides, the latest of equals. What follows is
copied token by token, so that a short period goes on as a longer one.

How many drafts are offered is what gains most by expectation: each is accepted with a likelihood that is learnt, by
how long the match is, and each costs time, which the caller knows. On top of that there is a budget, in tokens: a
reply begins with little, earns a hundredth with every token, gets what drafts gain and pays what they cost. An offer
that it cannot pay is not made, so that all vain tries of a reply together cost about a hundredth of its time.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable

SHORTEST, LONGEST = 3, 16  # tokens of a match: at least, and beyond which it is no longer measured
MAX_DRAFTS = 15
_NUMBERS = (1, 2, 3, 4, 6, 8, 11, MAX_DRAFTS)  # of drafts to choose from
# From which length of a match on a draft is first thought to be accepted how likely, with the weight of two drafts.
_PRIORS = ((3, 0.45), (4, 0.55), (6, 0.7), (10, 0.85))
_PRIOR_WEIGHT = 2.0
_KEPT_AN_OFFER, _KEPT_A_TOKEN = 0.8, 0.998  # of what was learnt
_FIRST_BUDGET, _LARGEST_BUDGET = 0.5, 8.0
_EARNED_A_TOKEN = 0.01
_MOST_COMPARED = 12  # earlier places of the same three tokens
_MOST_INDEXED = 4096  # tokens in one step, so that a long prompt holds no step up

Cost = Callable[[int], float]  # of so many drafts: the time they add to a step, in tokens made in that time


class PromptLookup:
    """Drafts for one sequence; call `propose` once a step as it grows."""

    def __init__(self) -> None:
        self.num_drafted = 0
        self.num_accepted = 0
        self._latest: dict[
            tuple[int, int, int], int
        ] = {}  # three tokens: the place after them, of their latest
        self._earlier = array("i", [-1] * SHORTEST)  # by place: the next earlier one after the same tokens
        self._learnt = [_Likelihood(first) for _, first in _PRIORS]
        self._budget = _FIRST_BUDGET
        self._offered = self._learnt[0]

    def propose(self, token_ids: list[int], cost: Cost) -> list[int]:
        """Return guesses at what follows `token_ids`, possibly none."""
        self._budget = min(self._budget + _EARNED_A_TOKEN, _LARGEST_BUDGET)
        for likelihood in self._learnt:
            likelihood.fade(_KEPT_A_TOKEN)
        self._index(token_ids)
        place, length = self._longest_match(token_ids)
        if not length:
            return []
        self._offered = self._learnt[sum(length >= least for least, _ in _PRIORS) - 1]
        count = self._best_number(self._offered.value, cost)
        period = len(token_ids) - place
        return [token_ids[place + number % period] for number in range(count)]

    def observe(self, num_drafted: int, num_accepted: int, cost: float) -> None:
        """Learn how the offer went; `cost` is the time that it added to its step, in tokens made in that time."""
        if not num_drafted:
            return
        self.num_drafted += num_drafted
        self.num_accepted += num_accepted
        self._offered.learn(num_accepted, num_rejected=int(num_accepted < num_drafted))
        self._budget = min(self._budget + num_accepted - cost, _LARGEST_BUDGET)

    def _best_number(self, likelihood: float, cost: Cost) -> int:
        """How many drafts gain most among those that the budget pays; 0 when none gains."""
        best, most = 0, 0.0
        for number in _NUMBERS:
            price = cost(number)
            if price > self._budget:
                break
            accepted = likelihood * (1 - likelihood**number) / (1 - likelihood)
            if accepted - price > most:
                best, most = number, accepted - price
        return best

    def _longest_match(self, token_ids: list[int]) -> tuple[int, int]:
        """The place after the longest earlier match of the last tokens, and its length; (0, 0) for none."""
        place = self._latest.get(tuple(token_ids[-SHORTEST:]), -1) if len(token_ids) > SHORTEST else -1  # type: ignore[arg-type]
        best, longest = 0, 0
        for _ in range(_MOST_COMPARED):
            if place < 0 or longest == LONGEST:
                break
            length = SHORTEST
            while length < min(LONGEST, place) and token_ids[place - 1 - length] == token_ids[-1 - length]:
                length += 1
            if length > longest:
                best, longest = place, length
            place = self._earlier[place]
        return best, longest

    def _index(self, token_ids: list[int]) -> None:
        """Remember the places after each three tokens; the text's last three are not followed yet."""
        begin = len(self._earlier)
        for end in range(begin, min(len(token_ids), begin + _MOST_INDEXED)):
            key = (token_ids[end - 3], token_ids[end - 2], token_ids[end - 1])
            self._earlier.append(self._latest.get(key, -1))
            self._latest[key] = end


class _Likelihood:
    """How likely one more draft is accepted: from a first guess and from what was seen, which fades."""

    def __init__(self, first: float) -> None:
        self._first = first
        self._accepted = 0.0
        self._rejected = 0.0

    @property
    def value(self) -> float:
        """Above 0 and below 1."""
        seen = self._accepted + self._rejected
        return (self._accepted + self._first * _PRIOR_WEIGHT) / (seen + _PRIOR_WEIGHT)

    def fade(self, kept: float) -> None:
        """Forget a part of what was seen."""
        self._accepted *= kept
        self._rejected *= kept

    def learn(self, num_accepted: int, *, num_rejected: int) -> None:
        """Take the outcome of an offer in."""
        self.fade(_KEPT_AN_OFFER)
        self._accepted += num_accepted
        self._rejected += num_rejected
