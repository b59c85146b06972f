"""Where sentences, headings, list items and rows of tables begin and end in a text. Pure.

A sentence ends at its mark, in the writings that have one. A line ends one too where its end was meant: before a list
item, around a row of a table, and where the next line's first word would still have fitted, which is so of headings
and verse, and not of the lines of a paragraph.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

_SENTENCE_END = re.compile(
    r"(?<![.!?…])[.!?…]++[\"'”’»)\]]*+(?=\s)"
    r"|[。！？；؟۔।॥]++[」』”’）]*+"
    r"|\n\n++"
)
_WORD_BEFORE = re.compile(r"[^\W\d_]{1,12}\Z")
_ABBREVIATIONS = frozenset(
    re.findall(
        r"\w+",
        "mr mrs ms dr prof sr jr st vs etc inc ltd co corp no nos vol fig figs eq eqs sec ch pp ca cf al approx dept est "
        "jan feb mar apr jun jul aug sep sept oct nov dec bzw usw ggf vgl abs nr bd hrsg mme mlle",
    )
)
_LIST_ITEM = re.compile(r"\s*(?:[-*+•◦▪–‣·]|\(?(?:\d{1,3}|[a-zA-Z]|[ivx]{1,4})[.)])\s+\S")
_MARKED_HEADING = re.compile(r"#{1,6}\s")
_NUMBER = re.compile(r"[(+\-−$€£¥]{0,3}\d[\d.,'’\u00a0\u202f]*[%)]?")
# After these a line goes on: articles, prepositions, conjunctions of the languages that write the most.
_GOES_ON = frozenset(
    re.findall(
        r"\w+",
        "a an the of and or in on at to for by with from as into than that which is are was were be between per "
        "der die das den dem des ein eine und oder von vom zu zur zum mit für auf im am bei als an über unter "
        "le la les un une du de des et ou en dans pour par avec sur au aux el los las del y o por con para "
        "il lo gli di da e nel della het een van en te",
    )
)
_OPEN_END = re.compile(r"[,;(\[{/&–—\-\u00ad\u2010]\s*\Z")
_CELLS = re.compile(r" \| |\t")
_FULL_STOP = re.compile(r"[.!?…:;。！？；؟۔।॥][\"'”’»)\]」』）]*\s*\Z")

_NEARLY_FULL = 0.8
_LINES_ROUND = 3
_MAX_HEADING_WORDS = 14
_MAX_HEADING_CHARS = 120


def split_sentences(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield the sentences of `text[start:end]`, and its lines that are none, as ranges without white space around them."""
    for first, last in _up_to_marks(text, start, end):
        yield from _split_lines(text, first, last)


def marked_sentences(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield what stands between two marks or blank lines: a sentence with its heading, a table as a whole.

    For weighing and cutting, where the rows of a table say more together than each alone.
    """
    for first, last in _up_to_marks(text, start, end):
        yield from stripped(text, first, last)


def _up_to_marks(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    position = start
    for match in _SENTENCE_END.finditer(text, start, end):
        if match.group()[0] in ".!?…" and not _is_sentence_end(text, match.start(), match.end()):
            continue
        yield position, match.end()
        position = match.end()
    yield position, end


def split_reply(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield the sentences of what a model wrote, where every line's end is meant."""
    while start < end:
        line_end = text.find("\n", start, end)
        line_end = end if line_end < 0 else line_end
        yield from split_sentences(text, start, line_end)
        start = line_end + 1


def is_heading(text: str, start: int, end: int) -> bool:
    """Return whether `text[start:end]`, one of `split_sentences`, is a line that names what stands below it.

    It is short, ends without a mark and has something below it; rows of tables and list items are none.
    """
    line = text[start:end]
    below = text[end : end + 400].lstrip(" \t")
    if "\n" in line or not below.startswith("\n") or not below.strip() or not any(map(str.isalpha, line)):
        return False
    if len(line) > _MAX_HEADING_CHARS or len(line.split()) > _MAX_HEADING_WORDS:
        return False
    if line[0].islower() or _FULL_STOP.search(line) or is_row(line):
        return False
    # "3. Maintenance" names what is below, "3. Close the valve" stands among its like.
    return not _LIST_ITEM.match(line) or (line[0].isdigit() and not _LIST_ITEM.match(below.lstrip()))


def is_row(line: str) -> bool:
    """Return whether a line is a row of a table: it has marked cells, or words with two numbers and more after them."""
    if _CELLS.search(line):
        return True
    words = line.split()
    numbers = [_NUMBER.fullmatch(word) is not None for word in words]
    return sum(numbers) >= 2 and all(numbers[-2:]) and not _FULL_STOP.search(line)


def _is_sentence_end(text: str, mark: int, after: int) -> bool:
    following = text[after : after + 8].lstrip()
    if following and following[0].islower():
        return False
    before = _WORD_BEFORE.search(text, max(0, mark - 12), mark)
    if text[mark] != "." or before is None:
        # "3. Maintenance": the number of a heading or an item.
        return not _is_number_of_line(text, mark)
    word = before.group()
    return not (len(word) == 1 and word.isupper()) and word.lower() not in _ABBREVIATIONS


def _is_number_of_line(text: str, mark: int) -> bool:
    line_start = text.rfind("\n", max(0, mark - 8), mark) + 1
    return text[mark] == "." and (line_start > 0 or mark < 8) and text[line_start:mark].strip().isdigit()


def _split_lines(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    position = text.find("\n", start, end)
    while position >= 0:
        if _is_meant(text, start, position, end):
            yield from stripped(text, start, position)
            start = position
        position = text.find("\n", position + 1, end)
    yield from stripped(text, start, end)


def _is_meant(text: str, start: int, position: int, end: int) -> bool:
    """Return whether the line end at `position` was meant, and is not just where the paragraph's width ended."""
    line = text[
        text.rfind("\n", start, position) + 1 if "\n" in text[start:position] else start : position
    ].strip()
    below = _line_after(text, position, end)
    if not line or not below:
        return False
    if _MARKED_HEADING.match(line):
        return True
    if _LIST_ITEM.match(below) and not _goes_on(line):
        return True
    if (
        _CELLS.search(line)
        or _CELLS.search(below)
        or (is_row(line) and (is_row(below) or below[:1].isupper()))
    ):
        return True
    first = below[0]
    if first.islower() or not (first.isalnum() or first in "\"'“‘«„(¿¡「『") or _goes_on(line):
        return False
    if first.isdigit() and not line[:1].isdigit():
        return False
    word = below.split(maxsplit=1)[0] if first.isascii() or " " in below else first
    return len(line) + 1 + len(word) < _NEARLY_FULL * _width(text, start, position, end)


def _goes_on(line: str) -> bool:
    last = line.rsplit(maxsplit=1)[-1].lower()
    return last in _GOES_ON or _OPEN_END.search(line) is not None


def _line_after(text: str, position: int, end: int) -> str:
    line_end = text.find("\n", position + 1, end)
    return text[position + 1 : end if line_end < 0 else line_end].strip()


def _width(text: str, start: int, position: int, end: int) -> int:
    """Return the length of the longest of the lines around a line end."""
    longest, at = 0, position
    for _ in range(_LINES_ROUND):
        if at >= end:
            break
        line_end = text.find("\n", at + 1, end)
        line_end = end if line_end < 0 else line_end
        longest, at = max(longest, line_end - at - 1), line_end
    at = position
    for _ in range(_LINES_ROUND):
        if at <= start:
            break
        before = text.rfind("\n", start, at)
        before = start - 1 if before < 0 else before
        longest, at = max(longest, at - before - 1), before
    return longest


def stripped(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield a range without the white space at its ends, unless that is all it has."""
    while start < end and text[start].isspace():
        start += 1
    while start < end and text[end - 1].isspace():
        end -= 1
    if start < end:
        yield start, end
