"""Cuts the text of a message into blocks that are rendered alone, from left to right.

A cut depends only on the text before it, never on how the text arrived, so a streamed reply and a stored one are cut
alike, and new text changes only the last block. It cuts less than markdown allows (a list stays whole) but never
elsewhere, except in blocks above a size, which go on in the next block: code and tables carry their opening line
along. Blocks are gathered into parts of bounded size, each of which one widget shows.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal

from inglenook.app.text.markdown import code_text, render_code, render_markdown, render_plain
from inglenook.app.text.rich_text import Element, Paragraph

# A block of SOFT characters ends at the next line that may begin a block, one of HARD anywhere.
SOFT_CHARS = 4_000
HARD_CHARS = 6_000
BLOCK_LINES = 160
TABLE_CELLS = 200
# A part takes no further block when it holds as much.
PART_CHARS = 6_000
PART_LINES = 160

Kind = Literal["markdown", "code", "plain"]
_FENCE = re.compile(r" {0,3}(`{3,}(?!.*`)|~{3,})(.*)")
_HEADING = re.compile(r"#{1,6}(?:[ \t]|$)")
_ITEM = re.compile(r" {0,3}(?:[-+*]|\d{1,9}[.)])(?:[ \t]|$)")
_DELIMITERS = re.compile(r"[ \t]*\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*\|?[ \t]*$")
_CLASSIFIED_CHARS = 1_000


@dataclass(frozen=True)
class Block:
    """A slice of a message: its source, how to read it, and what an earlier block opened (`prefix`)."""

    source: str
    kind: Kind
    part: int
    prefix: str = ""
    has_fence_end: bool = False
    is_box_end: bool = True

    @cached_property
    def elements(self) -> tuple[Element, ...]:
        """What to show, made on the first use."""
        if self.kind == "plain":
            return render_plain(self.source)
        if self.kind == "code":
            return render_code(
                self.source, self.prefix, has_fence_end=self.has_fence_end, is_box_end=self.is_box_end
            )
        return render_markdown(self.prefix + self.source)

    @property
    def code(self) -> str | None:
        """The exact text inside a fence, or None."""
        if self.kind != "code":
            return None
        return code_text(self.source, self.prefix, has_fence_end=self.has_fence_end)


@dataclass
class _Scan:
    """Where the scan stands at the beginning of a line."""

    offset: int = 0
    start: int = 0
    num_lines: int = 0
    prefix: str = ""
    fence: str = ""
    fence_line: str = ""
    is_in_list: bool = False
    is_after_blank: bool = False
    table: str = ""
    num_cells: int = 0
    last_line: str = ""
    is_mid_line: bool = False
    part: int = 0
    part_chars: int = 0
    part_lines: int = 0


@dataclass
class StreamingMarkdown:
    """The blocks of a growing text; `feed` is cheap and touches only the end.

    With `is_plain` the text is shown as it is, line by line.
    """

    is_plain: bool = False
    text: str = ""
    blocks: list[Block] = field(default_factory=list)
    _num_final: int = 0
    _scan: _Scan = field(default_factory=_Scan)

    @classmethod
    def of(cls, text: str, *, is_plain: bool = False) -> StreamingMarkdown:
        """Cut a whole text."""
        blocks = cls(is_plain=is_plain)
        blocks.feed(text)
        return blocks

    def feed(self, text: str) -> int:
        """Append `text`; return the index of the first block that is new or changed."""
        first_changed = self._num_final
        del self.blocks[self._num_final :]
        self.text += text
        scan = self._scan
        while (end := self._end_of_line(scan.offset)) is not None:
            self._read(scan, end)
        self._num_final = len(self.blocks)
        # What follows may still change: an unfinished line and the block it belongs to.
        rest = replace(scan)
        if rest.offset < len(self.text):
            self._read(rest, len(self.text))
        if rest.start < rest.offset:
            self._cut(rest, rest.offset, is_box_end=True)
        return first_changed

    @property
    def num_parts(self) -> int:
        """How many widgets show the text; at least one."""
        return self.blocks[-1].part + 1 if self.blocks else 1

    def elements(self, part: int) -> list[Element]:
        """Everything that one part shows."""
        return [element for block in self.blocks if block.part == part for element in block.elements]

    def source(self, part: int) -> str:
        """The text that one part shows."""
        return "".join(block.source for block in self.blocks if block.part == part)

    def code_of(self, part: int, index: int) -> str:
        """The exact text of the code box that begins as the `index`-th of a part, with all its continuations."""
        for number, block in enumerate(self.blocks):
            if block.part != part:
                continue
            if block.kind == "code" and not block.prefix:
                if index == 0:
                    return self._code_from(number)
                index -= 1
            elif block.kind == "markdown":
                boxes = _boxes(block.elements)
                if index < len(boxes):
                    return boxes[index]
                index -= len(boxes)
        raise IndexError(f"part {part} has no code box {index}")

    def _code_from(self, number: int) -> str:
        pieces = [self.blocks[number].code or ""]
        for block in self.blocks[number + 1 :]:
            if block.kind != "code" or not block.prefix:
                break
            # The closing line alone adds nothing.
            if not (block.has_fence_end and block.source.count("\n") <= 1 and not block.code):
                pieces.append(block.code or "")
        return "\n".join(pieces)

    def _end_of_line(self, offset: int) -> int | None:
        """Where the line at `offset` ends for good, or None while it may grow; over-long lines end early."""
        newline = self.text.find("\n", offset, offset + HARD_CHARS)
        if newline >= 0:
            return newline + 1
        return offset + HARD_CHARS if offset + HARD_CHARS <= len(self.text) else None

    def _read(self, scan: _Scan, end: int) -> None:
        """Take the line up to `end` into the open block, after cutting where the line begins another."""
        raw = self.text[scan.offset : end]
        line = raw[:_CLASSIFIED_CHARS].rstrip("\r\n")
        begins_line, scan.is_mid_line = not scan.is_mid_line, not raw.endswith("\n")
        is_too_long = scan.offset > scan.start and end - scan.start > HARD_CHARS
        if self.is_plain or not begins_line:
            if is_too_long or scan.num_lines >= BLOCK_LINES:
                self._cut(scan, scan.offset)
        elif scan.fence:
            if is_too_long or scan.num_lines >= BLOCK_LINES:
                self._cut(scan, scan.offset)
            elif _closes(scan.fence, line):
                self._take(scan, end)
                self._cut(scan, end, has_fence_end=True)
                return
        else:
            self._read_markdown(scan, line, raw, is_too_long=is_too_long)
        self._take(scan, end)

    def _read_markdown(self, scan: _Scan, line: str, raw: str, *, is_too_long: bool) -> None:
        is_blank = not line.strip()
        is_flush = not is_blank and line[0] not in " \t"
        fence = _FENCE.match(line)
        if fence and (is_flush or not scan.is_in_list):
            self._cut(scan, scan.offset)
            scan.fence, scan.fence_line = fence[1], line
            return
        is_item = _ITEM.match(line) is not None
        begins_block = is_flush and (
            _HEADING.match(line) is not None or (scan.is_after_blank and not (scan.is_in_list and is_item))
        )
        size = scan.offset - scan.start
        is_full = is_flush and (size > SOFT_CHARS or scan.num_lines >= BLOCK_LINES)
        cells = raw.count("|")
        is_wide = bool(scan.table) and scan.num_cells + cells > TABLE_CELLS
        if begins_block or is_full or is_too_long or is_wide or scan.num_lines >= 2 * BLOCK_LINES:
            goes_on = scan.table if "|" in line and not scan.is_after_blank and not begins_block else ""
            self._cut(scan, scan.offset)
            scan.prefix = scan.table = goes_on
        scan.is_in_list |= is_item
        if is_blank:
            scan.table = ""
        elif not scan.table and "|" in scan.last_line and "-" in line and _DELIMITERS.match(line):
            scan.table = f"{scan.last_line}\n{line}\n"
        scan.num_cells += cells
        scan.is_after_blank = is_blank
        scan.last_line = line

    def _take(self, scan: _Scan, end: int) -> None:
        scan.offset = end
        scan.num_lines += 1

    def _cut(self, scan: _Scan, end: int, *, is_box_end: bool = False, has_fence_end: bool = False) -> None:
        """End the open block at `end` and begin the next one there."""
        if end > scan.start:
            if scan.part_chars >= PART_CHARS or scan.part_lines >= PART_LINES:
                scan.part, scan.part_chars, scan.part_lines = scan.part + 1, 0, 0
            kind: Kind = "plain" if self.is_plain else "code" if scan.fence else "markdown"
            source = self.text[scan.start : end]
            is_box_end |= has_fence_end
            self.blocks.append(Block(source, kind, scan.part, scan.prefix, has_fence_end, is_box_end))
            # Empty lines take no room; cells take much.
            if kind == "plain" or not source.isspace():
                scan.part_chars += end - scan.start
                scan.part_lines += scan.num_lines + scan.num_cells // 2
            scan.prefix = scan.fence_line + "\n" if scan.fence else ""
        if has_fence_end:
            scan.fence = scan.fence_line = scan.prefix = ""
        scan.start, scan.num_lines, scan.num_cells = end, 0, 0
        scan.is_in_list = scan.is_after_blank = False
        scan.table = scan.last_line = ""


def _closes(fence: str, line: str) -> bool:
    columns = line.expandtabs(4)
    indent = len(columns) - len(columns.lstrip(" "))
    mark = line.strip(" \t")
    return indent < 4 and len(mark) >= len(fence) and mark == fence[0] * len(mark)


def _boxes(elements: tuple[Element, ...]) -> list[str]:
    """The text of each code box among elements, as in a list item."""
    boxes: list[list[str]] = []
    for element in elements:
        if isinstance(element, Paragraph) and element.kind == "code":
            if element.edge in ("first", "only"):
                boxes.append([])
            boxes[-1].append("".join(span.text for span in element.spans))
    return ["\n".join(lines) for lines in boxes]
