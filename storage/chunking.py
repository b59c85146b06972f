"""Cut a page's text into chunks for search: by the embedder's tokens, at sentence borders, never across a page.

Pure functions over plain values. A page is first cut into units: sentences, and where a sentence is long, its lines,
then its words. Units are packed until the next one would not fit; the following chunk begins with the last unit or
two of the one before, so that a fact at a border is whole in one of them. A chunk is one range of the page's text and
so knows its place exactly. Title and heading path are its context: indexed and embedded with it, and never quoted.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from inglenook.storage.parsing.document import Chunk, ParsedPage, Rect
from inglenook.storage.sentences import marked_sentences, stripped

TokenOffsets = Callable[[str], Sequence[tuple[int, int]]]
"""From a text to the character ranges of its tokens, in order and without special tokens."""

Locate = Callable[[int, int], tuple[Rect, ...]]
"""From a range of a page's text to its rectangles."""

HeadingAt = Callable[[int], tuple[str, ...]]
"""From a position in a page's text to the path of headings above it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChunkLimits:
    """Sizes in tokens of the embedder. `max_tokens` is what it reads, its special tokens included.

    `max_chars` bounds a chunk whose characters are few tokens, such as one word of a million letters.
    """

    max_tokens: int = 256
    target_tokens: int = 200
    overlap_tokens: int = 40
    context_tokens: int = 40
    special_tokens: int = 2
    max_chars: int = 2000

    def __post_init__(self) -> None:
        if not 0 <= self.overlap_tokens < self.target_tokens:
            raise ValueError(
                f"overlap_tokens must be at least 0 and below target_tokens, got {self.overlap_tokens}"
            )
        if self.max_tokens < self.context_tokens + self.special_tokens + _MARGIN + 16:
            raise ValueError(f"max_tokens must leave 16 tokens beside the context, got {self.max_tokens}")


# A tokenizer may cut a passage at its edges otherwise than inside the page.
_MARGIN = 4

_APPROXIMATE_TOKEN = re.compile(r"[^\W_]{1,4}|[^\w\s]|_")


def approximate_tokens(text: str) -> list[tuple[int, int]]:
    """Stand in for a tokenizer where there is none: four letters are a token, and so is each mark."""
    return [match.span() for match in _APPROXIMATE_TOKEN.finditer(text)]


def join_context(
    title: str, heading: tuple[str, ...], token_offsets: TokenOffsets, limits: ChunkLimits
) -> str:
    """Write title and heading path as "title › chapter › section", cut at the front to `context_tokens`."""
    context = " › ".join(part for part in (" ".join(title.split()), *heading) if part)
    context = context[-limits.max_chars :]
    offsets = token_offsets(context)
    if len(offsets) <= limits.context_tokens:
        return context
    return context[offsets[-limits.context_tokens][0] :]


def chunk_page(
    page: ParsedPage,
    *,
    title: str = "",
    token_offsets: TokenOffsets = approximate_tokens,
    limits: ChunkLimits | None = None,
    heading_at: HeadingAt | None = None,
    heading_starts: Sequence[int] = (),
    locate: Locate | None = None,
    lines: Callable[[int, int], tuple[int, int]] | None = None,
) -> list[Chunk]:
    """Cut one page into chunks, in the order of its text.

    A chunk never holds text of two headings: `heading_starts` are positions where a new one begins. `locate` gives
    the rectangles and `lines` the line numbers of a range, where the document has them.
    """
    limits = limits or ChunkLimits()
    tokens = _Tokens(token_offsets(page.text))
    chunks: list[Chunk] = []
    borders = [0, *(start for start in heading_starts if 0 < start < len(page.text)), len(page.text)]
    for section_start, section_end in pairwise(borders):
        heading = heading_at(section_start) if heading_at else ()
        if heading_at and _is_only_a_heading(page.text, section_start, section_end, heading, heading_at):
            continue
        context = join_context(title, heading, token_offsets, limits)
        room = limits.max_tokens - limits.special_tokens - _MARGIN - len(token_offsets(context))
        units = list(
            _units(page.text, section_start, section_end, tokens, min(room, limits.target_tokens), limits)
        )
        for start, end in _pack(units, tokens, min(room, limits.target_tokens), limits):
            first_line, last_line = lines(start, end) if lines else (None, None)
            chunks.append(
                Chunk(
                    page_index=page.index,
                    page_label=page.label,
                    start=start,
                    end=end,
                    text=page.text[start:end],
                    context=context,
                    heading=heading,
                    rects=locate(start, end) if locate else (),
                    first_line=first_line,
                    last_line=last_line,
                )
            )
    return chunks


def _is_only_a_heading(
    text: str, start: int, end: int, heading: tuple[str, ...], heading_at: HeadingAt
) -> bool:
    """Say whether a section is one line of heading whose words stand in the context of the section below it."""
    if end == len(text) or not heading or "\n" in text[start:end].strip():
        return False
    below = heading_at(end)
    return len(below) > len(heading) and below[: len(heading)] == heading and heading[-1] in text[start:end]


class _Tokens:
    """Counts the tokens of ranges of one text, which was encoded once."""

    def __init__(self, offsets: Sequence[tuple[int, int]]) -> None:
        self.starts = [start for start, _ in offsets]
        self._ends = [end for _, end in offsets]

    def count(self, start: int, end: int) -> int:
        """Count the tokens that touch the range."""
        return max(0, bisect_left(self.starts, end) - bisect_right(self._ends, start))


def _units(
    text: str, start: int, end: int, tokens: _Tokens, room: int, limits: ChunkLimits
) -> Iterator[tuple[int, int]]:
    """Yield sentences; one above half of the room is cut at its lines, a line above the room at its words."""
    for sentence in marked_sentences(text, start, end):
        if _fits(sentence, tokens, room // 2, limits):
            yield sentence
            continue
        for line in _lines(text, *sentence):
            if _fits(line, tokens, room, limits):
                yield line
            else:
                yield from _cut(text, *line, tokens, room, limits)


def _fits(unit: tuple[int, int], tokens: _Tokens, room: int, limits: ChunkLimits) -> bool:
    return unit[1] - unit[0] <= limits.max_chars and tokens.count(*unit) <= room


def _lines(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    while start < end:
        line_end = text.find("\n", start, end)
        line_end = end if line_end < 0 else line_end
        yield from stripped(text, start, line_end)
        start = line_end + 1


def _cut(
    text: str, start: int, end: int, tokens: _Tokens, room: int, limits: ChunkLimits
) -> Iterator[tuple[int, int]]:
    """Yield pieces of a line that fit, cut after white space where there is some and between letters where not."""
    while start < end:
        first = bisect_left(tokens.starts, start)
        limit = tokens.starts[first + room] if first + room < len(tokens.starts) else end
        piece_end = min(end, start + limits.max_chars, limit)
        if piece_end < end:
            space = max(text.rfind(" ", start + 1, piece_end + 1), text.rfind("\t", start + 1, piece_end + 1))
            piece_end = space if space > start else piece_end
        piece_end = max(piece_end, start + 1)
        yield from stripped(text, start, piece_end)
        start = piece_end


def _pack(
    units: list[tuple[int, int]], tokens: _Tokens, room: int, limits: ChunkLimits
) -> Iterator[tuple[int, int]]:
    first = 0
    while first < len(units):
        last = first
        while last + 1 < len(units) and _fits((units[first][0], units[last + 1][1]), tokens, room, limits):
            last += 1
        start, end = units[first][0], units[last][1]
        yield start, end
        if last + 1 >= len(units):
            return
        first = _next_first(units, first, last, tokens, room, limits)


def _next_first(
    units: list[tuple[int, int]], first: int, last: int, tokens: _Tokens, room: int, limits: ChunkLimits
) -> int:
    """Give the unit that the next chunk begins with: up to two units back, if they are short and it still gains one."""
    for candidate in (last - 1, last):
        overlap = tokens.count(units[candidate][0], units[last][1])
        if (
            candidate > first
            and overlap <= limits.overlap_tokens
            and _fits((units[candidate][0], units[last + 1][1]), tokens, room, limits)
        ):
            return candidate
    return last + 1
