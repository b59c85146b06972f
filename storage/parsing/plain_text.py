"""Plain text and Markdown: cut into pages of some lines, so that a citation names lines and a chunk has a page.

A page ends at the first blank line or heading after `PAGE_CHARS`, and at the latest after twice as many characters,
inside a line if that line is longer. Lines are counted from 1 over the whole file, ended by LF, CR LF or CR.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from typing import NamedTuple

from inglenook.storage.parsing.document import ParsedPage

PAGE_CHARS = 4000

# Form feeds and other controls separate words; the tab stays, as code and tables need it.
_CONTROLS = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\ufeff\ufffe\uffff\u202a-\u202e\u2066-\u2069]"
)
_LINE_END = re.compile(r"\r\n?")
_HEADING = re.compile(r" {0,3}(#{1,6})(?:[ \t]+(\S.*))?")
_CLOSING_MARKS = re.compile(r"(?<![ \t#])[ \t]+#+[ \t]*\Z")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
MAX_HEADING_CHARS = 200


class Heading(NamedTuple):
    """A heading: where its line begins in the text, its level from 1, and its title without marks."""

    start: int
    level: int
    title: str


def clean_text(text: str) -> str:
    """Unify line ends to LF and replace control characters by spaces."""
    return _CONTROLS.sub(" ", _LINE_END.sub("\n", text))


def find_headings(text: str) -> list[Heading]:
    """List the `#` headings of a Markdown text, outside of fenced code."""
    headings: list[Heading] = []
    fence: str | None = None
    position = 0
    for line in text.split("\n"):
        mark = _FENCE.match(line)
        if mark and fence is None:
            fence = mark.group(1)
        elif mark and fence is not None and mark.group(1).startswith(fence):
            fence = None
        elif fence is None:
            found = _HEADING.match(line[:1000])
            if found and found.group(2):
                title = _CLOSING_MARKS.sub("", found.group(2)).strip()
                headings.append(Heading(position, len(found.group(1)), title[:MAX_HEADING_CHARS]))
        position += len(line) + 1
    return headings


class Outline:
    """The headings of a text, and the path of them that each place stands under."""

    def __init__(self, headings: list[Heading]) -> None:
        self.starts = [heading.start for heading in headings]
        self._paths: list[tuple[str, ...]] = []
        above: list[Heading] = []
        for heading in headings:
            while above and above[-1].level >= heading.level:
                above.pop()
            above.append(heading)
            self._paths.append(tuple(each.title for each in above))

    def path_at(self, position: int) -> tuple[str, ...]:
        """Give the titles above a position, from the outermost."""
        count = bisect_right(self.starts, position)
        return self._paths[count - 1] if count else ()

    def starts_between(self, start: int, end: int) -> list[int]:
        """List where headings begin in a range."""
        return self.starts[bisect_left(self.starts, start) : bisect_left(self.starts, end)]


class TextPages:
    """The pages of a cleaned text, and the lines that a range of a page lies on."""

    def __init__(self, text: str, outline: Outline) -> None:
        self._text = text
        self._line_starts = [0, *(match.end() for match in re.finditer("\n", text))]
        self.starts = list(self._page_starts(set(outline.starts)))

    def __len__(self) -> int:
        return len(self.starts)

    def page(self, index: int) -> ParsedPage:
        """Give a page by its index from 0; the blank lines at its end are not part of its text."""
        start = self.starts[index]
        end = self.starts[index + 1] if index + 1 < len(self) else len(self._text)
        text = self._text[start:end].rstrip()
        first, last = self._lines(start, start + len(text))
        return ParsedPage(index=index, text=text, first_line=first, last_line=last)

    def lines(self, page_index: int, start: int, end: int) -> tuple[int, int]:
        """Give the numbers of the first and last line that `text[start:end]` of a page lies on."""
        offset = self.starts[page_index]
        return self._lines(offset + start, offset + end)

    def _lines(self, start: int, end: int) -> tuple[int, int]:
        first = bisect_right(self._line_starts, start)
        return first, max(first, bisect_right(self._line_starts, max(start, end - 1)))

    def _page_starts(self, heading_starts: set[int]) -> Iterator[int]:
        page_start = 0
        yield page_start
        for start, end in zip(self._line_starts, [*self._line_starts[1:], len(self._text)], strict=True):
            size = start - page_start
            is_break = start in heading_starts or self._text.startswith("\n", start)
            if (size >= PAGE_CHARS and is_break) or (size > 0 and end - page_start > 2 * PAGE_CHARS):
                page_start = start
                yield page_start
            while end - page_start > 2 * PAGE_CHARS:
                page_start += 2 * PAGE_CHARS
                yield page_start
