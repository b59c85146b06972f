"""Text as the full-text indexes see it, and questions as the same tokens.

SQLite's unicode61 tokenizer takes a run of Chinese, Japanese or Korean as one word, so such runs are cut into
overlapping pairs first ("东京都" becomes "东京 京都"); that also parts them from Latin letters they are glued to. Text is
put into compatibility form (ligatures, full-width letters), and invisible characters inside words are dropped.
What was indexed is stored, so a change here asks for no more than a rebuild of new chunks.
"""

from __future__ import annotations

import re
import unicodedata

# Bopomofo, kana, Hangul, Han with extensions, half-width kana.
_PAIRED = (
    "\u1100-\u11ff\u3005-\u3007\u3040-\u30ff\u3100-\u318f\u31a0-\u31bf\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff"
    "\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\uff66-\uff9f\U00020000-\U000323af"
)
_PAIRED_RUN = re.compile(f"[{_PAIRED}]+")
# Greek to Georgian, Ethiopic to Balinese, and the rarer ones beyond: every alphabet but Latin.
_TRIGRAM_WORD = re.compile("[\u0370-\u10ff\u1200-\u1dff\u2d00-\u2ddf\ua800-\uabff\U00010000-\U0001efff]{3}")
_INVISIBLE = re.compile("[\u00ad\u200b-\u200d\u2060\ufeff]")
_ASCII_WORD = re.compile("[a-z0-9]+")
_NUL = "\x00"


def segmented(text: str) -> str:
    """Return what the indexes are to see of `text`; for plain English it is the text itself."""
    if text.isascii():
        return text.replace(_NUL, " ")
    text = _INVISIBLE.sub("", unicodedata.normalize("NFKC", text)).replace(_NUL, " ")
    return _PAIRED_RUN.sub(lambda run: f" {' '.join(_pairs(run.group()))} ", text)


def tokens(text: str) -> list[str]:
    """Return the words and pairs of `text` in order, each once, in lower case."""
    if text.isascii():
        return list(dict.fromkeys(_ASCII_WORD.findall(text.lower())))
    # Not \w+, which stops at the vowel signs of Devanagari or Thai.
    words = "".join(
        c if c.isalnum() or unicodedata.category(c)[0] == "M" else " " for c in segmented(text).lower()
    )
    return list(dict.fromkeys(words.split()))


def is_single_of_pairs(token: str) -> bool:
    """Return whether a token is one lone character of a script that is indexed in pairs."""
    return len(token) == 1 and _PAIRED_RUN.match(token) is not None


def has_trigram_words(text: str) -> bool:
    """Return whether `text` has words of a script that is better searched by trigrams than by words.

    Those are the alphabets other than Latin: their endings (Russian), prefixes (Arabic) and missing spaces (Thai)
    hide words from a stemmer made for English.
    """
    return _TRIGRAM_WORD.search(text) is not None


def trigrams(text: str) -> list[str]:
    """Return the trigrams inside the words of `text`, each once."""
    return list(dict.fromkeys(word[i : i + 3] for word in tokens(text) for i in range(len(word) - 2)))


def _pairs(run: str) -> list[str]:
    return [run[i : i + 2] for i in range(len(run) - 1)] or [run]
