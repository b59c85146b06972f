"""Each sentence of a reply held against the passages it was given, while it is written and whenever it is shown again.

"supported": what it says, with every number, name and quotation, stands in passages. "not found": it claims something
that no passage says, and is to be marked. "nothing": it claims nothing ("Here is what I found."), or is all about the
documents holding no answer. Overlap of words and checkable claims, not understanding: a sentence that twists what a
passage says with its own words is not caught. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from inglenook.app.answers.citations import attach, verified_ranges
from inglenook.app.answers.claims import claims_of, terms
from inglenook.storage.records import Hit, NewSource, Source
from inglenook.storage.sentences import split_reply

SentenceStatus = Literal["supported", "not found", "nothing"]

_MIN_WORDS = 3
# "The passages do not say how high it is."
_DENIAL = re.compile(
    r"\b(?:passages?|documents?|text|context|sources?|information)\b[^.]*\b(?:not|no|n't|nothing|neither|without)\b"
    r"|\b(?:not|no|n't|cannot|unable)\b[^.]*\b(?:passages?|documents?|text|context|sources?|information|find|answer)\b",
    re.I,
)


@dataclass(frozen=True, slots=True)
class SentenceCheck:
    """The sentence `reply[start:end]` and what was found about it."""

    start: int
    end: int
    status: SentenceStatus


class SentenceChecks:
    """Checks a reply as it streams: each sentence once, when it is complete."""

    def __init__(self, passages: Sequence[Hit], question: str = "") -> None:
        self._passages = passages
        self._question = question
        self._text = ""
        self._checked = 0

    def take(self, text: str) -> list[SentenceCheck]:
        """Take the next piece of the reply; return the checks of the sentences that it completes."""
        self._text += text
        # The last one may go on.
        return self._check(list(split_reply(self._text, self._checked, len(self._text)))[:-1])

    def finish(self) -> list[SentenceCheck]:
        """Return the checks of what was left at the end of the reply."""
        return self._check(list(split_reply(self._text, self._checked, len(self._text))))

    def _check(self, ranges: Sequence[tuple[int, int]]) -> list[SentenceCheck]:
        result = []
        for start, end in ranges:
            self._checked = end
            sentence = self._text[start:end]
            sources = attach(sentence, self._passages, self._question)
            result.append(SentenceCheck(start, end, _status(sentence, sources)))
        return result


def sentence_checks(reply: str, sources: Sequence[Source] | Sequence[NewSource]) -> list[SentenceCheck]:
    """Return the checks of a whole reply from its stored sources; none where it was answered without documents."""
    if not sources:
        return []
    verified = verified_ranges(reply, sources)
    return [
        SentenceCheck(start, end, _status_of(reply[start:end], _verdict(verified, start, end)))
        for start, end in split_reply(reply, 0, len(reply))
    ]


def _verdict(verified: Mapping[tuple[int, int], bool], start: int, end: int) -> bool | None:
    """Return what was found of a sentence, or of a wider range that an older program stored it in."""
    exact = verified.get((start, end))
    if exact is not None:
        return exact
    return next((ok for (first, last), ok in verified.items() if first <= start and end <= last), None)


def _status(sentence: str, sources: Sequence[NewSource]) -> SentenceStatus:
    verified = verified_ranges(sentence, sources)
    return _status_of(sentence, all(verified.values()) if verified else None)


def _status_of(sentence: str, is_verified: bool | None) -> SentenceStatus:
    """Judge by whether the citations hold all it claims; None where it has no citation."""
    if is_verified:
        return "supported"
    if is_verified is None and (_DENIAL.search(sentence) or _claims_nothing(sentence)):
        return "nothing"
    return "not found"


def _claims_nothing(sentence: str) -> bool:
    return claims_of(sentence).count == 0 and len(terms(sentence)) < _MIN_WORDS
