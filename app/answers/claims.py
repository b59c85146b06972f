"""What a sentence claims that code can check: its numbers, names and quotations; and the words it shares with a text.

Pure functions over strings. A number is compared by value in whichever way its separators can be read, a name by its
letters, a quotation by its words. Whether a sentence is true, or says what the passage means, is not checked.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from decimal import Decimal

from inglenook.storage.content_words import content_words, stem
from inglenook.storage.parsing.quotes import find_quote
from inglenook.storage.segmentation import tokens

NUMBER = re.compile(r"(?<![\w.,])[-+]?\d+(?:[.,'\u00a0\u202f]\d+)*")
_QUOTATION = re.compile('"([^"\n]{2,400})"|“([^”\n]{2,400})”|«([^»\n]{2,400})»|„([^“”\n]{2,400})[“”]')
_WORD = re.compile(r"[^\W_][\w'’.&-]*[^\W_]|[^\W_]")
_POSSESSIVE = re.compile("['’]s?$")
_MARKS = re.compile(r"[*_`#]+")
_LIST_MARK = re.compile(r"^\s*(?:[-+•]|\(?(?:\d{1,2}|[a-z])[.)])\s+")
_OPENING = frozenset("\"'“‘«„([*:–—")
_COUNTED = "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen twenty"
NUMBER_WORDS = {word: str(value) for value, word in enumerate(_COUNTED.split())}
"""The words of small numbers with their digits."""
NUMBER_WORDS |= {
    w: str(10 * v)
    for v, w in enumerate(["thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety", "hundred"], 3)
}
# "1,234", "12,34,567".
_GROUPS = {mark: re.compile(rf"\d{{1,3}}(?:[{mark}]\d{{2,3}})*[{mark}]\d{{3}}") for mark in ",."}
# Capitalised in English without being names of anything in a document.
_NO_NAMES = frozenset(("i", "i'm", "i'll", "i've", "i'd"))


@dataclass(frozen=True, slots=True)
class Claims:
    """The checkable parts of one sentence, as written there."""

    numbers: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    quotations: tuple[str, ...] = ()

    @property
    def count(self) -> int:
        """How many there are."""
        return len(self.numbers) + len(self.names) + len(self.quotations)


def claims_of(sentence: str) -> Claims:
    """Return the numbers, names and quotations of a sentence; list marks and emphasis are not part of it."""
    plain = _plain(sentence)
    return Claims(
        tuple(dict.fromkeys(match.group() for match in NUMBER.finditer(plain))),
        tuple(dict.fromkeys(_names(plain))),
        tuple(
            quotation
            for match in _QUOTATION.finditer(plain)
            if (quotation := next(filter(None, match.groups())).strip(" .,;:!?"))
        ),
    )


class Ground:
    """A text that claims are looked for in; made once for many sentences."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._words = _folded_words(text)
        self._values = {value for match in NUMBER.finditer(text) for value in readings(match.group())}
        self._values |= {Decimal(NUMBER_WORDS[word]) for word in self._words & NUMBER_WORDS.keys()}
        # "FY2023" holds a number that is written into a word, and "Q3" is a name.
        self._values |= {
            Decimal(digits) for word in self._words for digits in re.findall(r"\d{3,}", word)[:4]
        }

    def missing(self, claims: Claims) -> Claims:
        """Return those claims that the text does not hold."""
        return Claims(
            tuple(number for number in claims.numbers if not readings(number) & self._values),
            tuple(name for name in claims.names if not _folded_words(name) <= self._words),
            tuple(q for q in claims.quotations if find_quote(self.text, q) is None),
        )

    def num_held(self, claims: Claims) -> int:
        """Return how many of the claims the text holds."""
        return claims.count - self.missing(claims).count


def readings(number: str) -> set[Decimal]:
    """Return the values that a written number can have: "1,234" is 1234 in English and 1.234 elsewhere.

    Only what has its digits in groups is read so: "3.5" is never 35. A hyphen before it may be a dash, so the sign is
    no part of the value.
    """
    body = re.sub(r"['\u00a0\u202f]", "", number.lstrip("+-"))
    written = []
    for group, point in ((",", "."), (".", ",")):
        whole, _, fraction = body.partition(point)
        if (
            point not in fraction
            and group not in fraction
            and (group not in whole or _GROUPS[group].fullmatch(whole))
        ):
            written.append(f"{whole.replace(group, '')}.{fraction or 0}")
    # A date or a version, "2024.03.01": compared by its digits.
    return {Decimal(text) for text in written} or {Decimal(re.sub(r"\D", "", body) or "0")}


def terms(text: str) -> set[str]:
    """Return the words of a text that carry meaning, without their commonest endings."""
    return content_words(_plain(text))


def _plain(sentence: str) -> str:
    return _MARKS.sub("", _LIST_MARK.sub("", unicodedata.normalize("NFKC", sentence)))


def _names(plain: str) -> list[str]:
    names = []
    for match in _WORD.finditer(plain):
        word = match.group()
        has_letter = any(c.isalpha() for c in word)
        if not has_letter or word.casefold() in _NO_NAMES:
            continue
        inner_capital = any(c.isupper() for c in word[1:])
        has_digit = any(c.isdigit() for c in word) and not _is_measure(word)
        is_capitalised = word[0].isupper() and not _begins_sentence(plain, match.start())
        if is_capitalised or inner_capital or has_digit:
            names.append(_POSSESSIVE.sub("", word))
    return names


def _is_measure(word: str) -> bool:
    """Whether a word is a number with a unit or an ending, "5kg" or "21st", which counts as the number."""
    return re.fullmatch(r"\d+(?:[.,]\d+)*[a-zµ°%]{1,4}", word) is not None


def _begins_sentence(plain: str, start: int) -> bool:
    before = plain[:start].rstrip()
    return not before or before[-1] in _OPENING or before[-1] in ".!?\n"


def _folded_words(text: str) -> set[str]:
    folded = "".join(
        c for c in unicodedata.normalize("NFKD", text).casefold() if unicodedata.category(c) != "Mn"
    )
    words = set(tokens(folded))
    return words | {stem(word) for word in words}
