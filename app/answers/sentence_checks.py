"""Each sentence of a reply held against the passages it was given, while it is written and whenever it is shown again.

"supported": what it says, with every number, name and quotation, stands in passages (support.py). "not found": it claims
something that no passage says, and is to be marked. "nothing": it claims nothing ("Here is what I found:"), or is all
about the documents holding no answer. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from inglenook.app.answers.citations import Citer, verified_ranges
from inglenook.app.answers.claims import Ground, claims_of, terms
from inglenook.app.answers.sufficiency import is_question
from inglenook.app.answers.support import is_no_statement
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
        self._citer = Citer(passages, question)
        self._ground = Ground("\n".join(hit.chunk.text for hit in passages))
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
            verdict = True if self._citer.cite(sentence) else None
            result.append(SentenceCheck(start, end, _status_of(sentence, verdict, self._ground)))
        return result


def sentence_checks(reply: str, sources: Sequence[Source] | Sequence[NewSource]) -> list[SentenceCheck]:
    """Return the checks of a whole reply from its stored sources; none where it was answered without documents."""
    if not sources:
        return []
    verified = verified_ranges(reply, sources)
    ground = Ground("\n".join(source.quote for source in sources))
    return [
        SentenceCheck(start, end, _status_of(reply[start:end], _verdict(verified, start, end), ground))
        for start, end in split_reply(reply, 0, len(reply))
    ]


def is_baseless_answer(checks: Sequence[SentenceCheck], question: str) -> bool:
    """Return whether nothing of a reply was found in the documents, although it answers or claims something."""
    statuses = {check.status for check in checks}
    return "supported" not in statuses and ("not found" in statuses or is_question(question))


def _verdict(verified: Mapping[tuple[int, int], bool], start: int, end: int) -> bool | None:
    """Return what was found of a sentence, or of a wider range that an older program stored it in."""
    exact = verified.get((start, end))
    if exact is not None:
        return exact
    return next((ok for (first, last), ok in verified.items() if first <= start and end <= last), None)


def _status_of(sentence: str, is_verified: bool | None, ground: Ground) -> SentenceStatus:
    """Judge by whether the citations hold all it claims; None where it has no citation."""
    if is_verified:
        return "supported"
    if is_verified is None and (
        is_no_statement(sentence) or _denies(sentence, ground) or _claims_nothing(sentence)
    ):
        return "nothing"
    return "not found"


def _denies(sentence: str, ground: Ground) -> bool:
    """Return whether a sentence says that there is no answer, and no number or quotation that stands nowhere."""
    said = replace(claims_of(sentence), names=())
    return _DENIAL.search(sentence) is not None and ground.missing(said).count == 0


def _claims_nothing(sentence: str) -> bool:
    return claims_of(sentence).count == 0 and len(terms(sentence)) < _MIN_WORDS
