"""A page's text made fit for search and quoting, with a map back to the characters it was made from.

The raw text is one character per character of the page, as the PDF library counts them. Normalising joins words that
were broken over two lines, expands ligatures, re-pairs surrogates, cleans control characters and collapses white
space. What is not changed is copied in runs, so the map is a short list of pieces, not a number per character.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from typing import NamedTuple

# A soft line break inside a word: PDFium reports U+0002 by character and U+FFFE by range.
_BROKEN = "\x02\ufffe"
# Controls, lone surrogates and non-characters separate words and are otherwise nothing.
_LONE = r"\udc00-\udfff]|[\ud800-\udbff](?![\udc00-\udfff])"
_SPACE = rf"(?:[\s\x00\x01\x03-\x1f\x7f-\x9f\ufdd0-\ufdef\uffff{_LONE})"
_SPECIAL = re.compile(
    rf"(?P<pair>[\ud800-\udbff][\udc00-\udfff])"
    rf"|(?P<broken>[{_BROKEN}]+)"
    # A lone space is the common case and is copied; one class per run keeps the search linear.
    rf"|(?P<space>(?! ){_SPACE}+| {_SPACE}+)"
    # The soft hyphen, zero-width marks, and the overrides that make text read otherwise than it is stored.
    rf"|(?P<nothing>[\u00ad\u200b\u2060\ufeff\u202a-\u202e\u2066-\u2069]+)"
    # Ligatures, and the shapes of Hebrew and Arabic letters.
    rf"|(?P<shape>[\ufb00-\ufb06\ufb13-\ufb17\ufb1d-\ufdcf\ufdf0-\ufdfb\ufe70-\ufefc])"
)
_WORD_BEFORE = re.compile(r"\w{1,40}+\Z")
_WORD_AFTER = re.compile(r"\w{1,40}")
_HYPHENATED = re.compile(r"\w{1,40}-\w{1,40}")


class _Piece(NamedTuple):
    """Where a run of the text came from; `is_copy` says that both sides run in step."""

    start: int
    raw_start: int
    raw_end: int
    is_copy: bool


class PageText:
    """The text of a page and, for each range of it, the range of raw characters it was made from."""

    def __init__(self, raw: str) -> None:
        self._pieces: list[_Piece] = []
        self.text = self._normalise(raw)
        self._starts = [piece.start for piece in self._pieces]

    def raw_range(self, start: int, end: int) -> tuple[int, int]:
        """Give the raw characters that `text[start:end]` was made from, as start and end."""
        if not 0 <= start < end <= len(self.text):
            raise ValueError(f"range must lie in 0 to {len(self.text)}, got {start} to {end}")
        first, last = self._piece_at(start), self._piece_at(end - 1)
        raw_start = first.raw_start + (start - first.start if first.is_copy else 0)
        raw_end = last.raw_start + (end - last.start) if last.is_copy else last.raw_end
        return raw_start, raw_end

    def _piece_at(self, position: int) -> _Piece:
        return self._pieces[bisect_right(self._starts, position) - 1]

    def _normalise(self, raw: str) -> str:
        parts: list[str] = []
        length = 0

        def add(text: str, raw_start: int, raw_end: int, is_copy: bool) -> None:
            nonlocal length
            if length == 0 and text[:1].isspace():
                text, raw_start = text[1:], raw_start + is_copy
            if text:
                self._pieces.append(_Piece(length, raw_start, raw_end, is_copy))
                parts.append(text)
                length += len(text)

        has_breaks = any(mark in raw for mark in _BROKEN)
        hyphenated = frozenset(_HYPHENATED.findall(raw)) if has_breaks else frozenset()
        position = 0
        for match in _SPECIAL.finditer(raw):
            add(raw[position : match.start()], position, match.start(), True)
            text = _replacement(match, raw, hyphenated, at_start=length == 0)
            add(text, match.start(), match.end(), False)
            position = match.end()
        add(raw[position:], position, len(raw), True)
        return "".join(parts).rstrip()


def _replacement(match: re.Match[str], raw: str, hyphenated: frozenset[str], *, at_start: bool) -> str:
    found = match.group()
    match match.lastgroup:
        case "space":
            if at_start:
                return ""
            lines = found.replace("\r\n", "\n").replace("\r", "\n").count("\n")
            return "\n\n" if lines > 1 else "\n" if lines else " "
        case "broken":
            return _join(raw, match.start(), match.end(), hyphenated)
        case "pair":
            return found.encode("utf-16", "surrogatepass").decode("utf-16")
        case "shape":
            return unicodedata.normalize("NFKC", found)
    return ""


def _join(raw: str, start: int, end: int, hyphenated: frozenset[str]) -> str:
    """Decide what stands at a break in a word: nothing, or the hyphen of a word that is written with one.

    It was a hyphen of the word if what follows starts no lower-case word, or if the page has the word so elsewhere.
    """
    before = _WORD_BEFORE.search(raw, max(0, start - 40), start)
    after = _WORD_AFTER.match(raw, end)
    if before is None or after is None:
        return "-"
    if after.group()[0].isupper() or after.group()[0].isdigit() or before.group()[-1].isdigit():
        return "-"
    return "-" if f"{before.group()}-{after.group()}" in hyphenated else ""
