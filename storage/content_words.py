"""The words of a text that carry meaning, in a form in which two spellings of one word are equal.

Little English words are left out and the commonest English endings taken off; other languages keep their words, and
scripts that are indexed in pairs of characters give pairs. Rougher than the stemmer of the full-text index, but the
same for a question, a passage and a reply, and without a database.
"""

from __future__ import annotations

import re

from inglenook.storage.segmentation import tokens

_ENDINGS = ("ingly", "edly", "ing", "ies", "ed", "es", "s", "ly")
_WITHOUT_WEIGHT = frozenset(
    re.findall(
        r"\w+",
        "a about after also am an and any are as at be been but by can could did do does for from had has have he her his how i "
        "if in into is it its just me more most my no not of on or our out over she should so some such than that the their "
        "them then there these they this those to too up was we were what when where which while who whom why will with "
        "would you your s t according document documents passage passages page text answer",
    )
)


def content_words(text: str) -> set[str]:
    """Return the stems of the words that carry meaning."""
    return set(stems_of(text))


def stems_of(text: str) -> dict[str, str]:
    """Return each stem with the first word that it is of, in the order of the text."""
    result: dict[str, str] = {}
    for token in tokens(text):
        if token not in _WITHOUT_WEIGHT:
            result.setdefault(stem(token), token)
    return result


def stem(token: str) -> str:
    """Take off one common English ending, where enough of the word is left."""
    if not token.endswith(_ENDINGS):
        return token
    for ending in _ENDINGS:
        if token.endswith(ending) and len(token) - len(ending) >= 4:
            return token[: -len(ending)]
    return token
