"""Whether the text of a PDF page reads as writing, or is what a font without a true character map gives.

Such a page looks right and extracts as "3HQČåQt SURVWĜHGN". No dictionary is needed: in writing most letters of the
Latin alphabet stand in words that have vowels, small letters follow small ones, scripts do not mix inside words, and
letters do not stand alone.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from itertools import pairwise

MIN_LETTERS = 40

_WORD = re.compile(r"[^\W\d_]{2,}")
_TOKEN = re.compile(r"\S+")
_VOWEL = re.compile(r"[aeiouy]")
_MAX_VOWELLESS = 0.4
_MAX_MIXED_CASE = 0.35
_MAX_MIXED_SCRIPT = 0.2
_MAX_SINGLE = 0.45
_MAX_STRANGE = 0.2
_SAMPLE_CHARS = 8000


def is_garbled(text: str) -> bool:
    """Return whether a page's text is to be distrusted."""
    sample = text[:_SAMPLE_CHARS]
    # Of each character once: a page has some eighty different ones.
    counts = Counter(sample)
    num_letters = sum(count for c, count in counts.items() if c.isalpha())
    strange = sum(
        count
        for c, count in counts.items()
        if unicodedata.category(c) in ("Co", "Cn", "Cc") and c not in "\n\t"
    )
    if strange > _MAX_STRANGE * max(1, len(sample)) and strange > MIN_LETTERS // 2:
        return True
    if num_letters < MIN_LETTERS:
        # A few words are distrusted only where most of them jump from small to capital letters inside.
        long = [word for word in _WORD.findall(sample) if len(word) >= 5 and word[0] < "\u0250"]
        num_jumping = sum(_num_jumps(word) > 0 for word in long)
        return num_jumping >= 2 and 2 * num_jumping >= len(long)
    tokens = [token for token in _TOKEN.findall(sample) if token[0].isalpha()]
    single = sum(len(token) == 1 and token < "\u0250" for token in tokens)
    if tokens and single > _MAX_SINGLE * len(tokens):
        return True
    words = _WORD.findall(sample)
    mixed_script = sum(_num_scripts(word) > 1 for word in words)
    if mixed_script > _MAX_MIXED_SCRIPT * max(1, len(words)):
        return True
    latin = [word for word in words if len(word) >= 3 and word[0] < "\u0250"]
    if len(latin) < 8:
        return False
    # Accents are taken off, so that "příští" has its vowels.
    plain = [(word if word.isascii() else unicodedata.normalize("NFKD", word)).lower() for word in latin]
    vowelless = sum(_VOWEL.search(word) is None for word in plain)
    mixed_case = sum(not (word.isupper() or word[1:].islower()) for word in latin)
    return vowelless > _MAX_VOWELLESS * len(latin) or mixed_case > _MAX_MIXED_CASE * len(latin)


def _num_jumps(word: str) -> int:
    return sum(one.islower() and other.isupper() for one, other in pairwise(word))


def _num_scripts(word: str) -> int:
    if word.isascii():
        return 1
    scripts = {unicodedata.name(letter, "?").split()[0] for letter in word if letter.isalpha()}
    # These are written together, or are counted as letters of every script.
    scripts -= {
        "CJK",
        "HIRAGANA",
        "KATAKANA",
        "KATAKANA-HIRAGANA",
        "MODIFIER",
        "FEMININE",
        "MASCULINE",
        "HALFWIDTH",
    }
    return len(scripts)
