"""From a person's question to a MATCH expression of FTS5, so that nothing of the question is ever its syntax.

Every word is a quoted string, and there is nothing between them but OR. Words that stand in nearly every English
sentence are left out, unless there are no others.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from inglenook.storage.segmentation import is_single_of_pairs, tokens, trigrams

MAX_TERMS = 64

_STOPWORDS = frozenset(
    re.findall(
        r"\w+",
        "a about after all also am an and any are as at be because been before being between both but by can could did do "
        "does doing for from had has have having he her here hers him his how i if in into is it its just me more most my "
        "no nor not of on once only or other our out over own same she should so some such than that the their them then "
        "there these they this those through to too under until up very was we were what when where which while who whom "
        "why will with would you your s t",
    )
)


def words_terms(question: str) -> list[str]:
    """Return what to look for in the word index, each an expression; none where the question has no word."""
    found = tokens(question)
    kept = [token for token in found if token not in _STOPWORDS] or found
    # A lone character of a script that is indexed in pairs is looked for as the beginning of a pair.
    return [quoted(t) + ("*" if is_single_of_pairs(t) else "") for t in _longest(kept)]


def trigrams_terms(question: str) -> list[str]:
    """Return what to look for in the trigram index; none where no word has three letters."""
    return [quoted(t) for t in trigrams(question)[: 4 * MAX_TERMS]]


def any_of(terms: Iterable[str]) -> str:
    """Return an expression for what holds any of the terms; "" where there are none."""
    return " OR ".join(terms)


def quoted(token: str) -> str:
    """Return a token as an FTS5 string."""
    return '"' + token.replace('"', '""').replace("\x00", " ") + '"'


def _longest(found: list[str]) -> list[str]:
    """Keep the longest of very many words, which are mostly the rarest, in their order."""
    if len(found) <= MAX_TERMS:
        return found
    kept = set(sorted(found, key=len, reverse=True)[:MAX_TERMS])
    return [token for token in found if token in kept]
