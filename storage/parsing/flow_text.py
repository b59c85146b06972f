"""The text of a document without pages, put together paragraph by paragraph, with its headings.

Paragraphs are parted by a blank line and the rows of a table by a line end, so that neither is taken for one sentence
with the next. The reader then cuts the text into pages of some lines, as it does with Markdown.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from inglenook.storage.parsing.errors import DocumentTooLargeError
from inglenook.storage.parsing.plain_text import MAX_HEADING_CHARS, Heading, clean_text

CELL_SEPARATOR = " | "

_SPACES = re.compile(r"[^\S\n]+")
_LINE_ENDS = re.compile(r" ?\n\s*")


class FlowText:
    """Collects text up to a limit.

    Raises:
        DocumentTooLargeError: more text than the limit; from any `add`.
    """

    def __init__(self, max_chars: int) -> None:
        self.headings: list[Heading] = []
        self._parts: list[str] = []
        self._length = 0
        self._max_chars = max_chars
        self._is_in_table = False

    @property
    def text(self) -> str:
        """All of it."""
        return "".join(self._parts)

    def add(self, text: str, level: int | None = None) -> None:
        """Add a paragraph, or a heading of a level from 0 for the title; nothing where it is blank."""
        text = tidy(text)
        if not text:
            return
        self._separate("\n\n")
        if level is not None:
            title = " ".join(text.split())[:MAX_HEADING_CHARS]
            self.headings.append(Heading(self._length, level, title))
        self._put(text)
        self._is_in_table = False

    def add_row(self, cells: Sequence[str]) -> None:
        """Add the row of a table as one line; nothing where all cells are blank."""
        line = CELL_SEPARATOR.join(" ".join(clean_text(cell).split()) for cell in cells).rstrip()
        if not line.strip(" |"):
            return
        self._separate("\n" if self._is_in_table else "\n\n")
        self._put(line)
        self._is_in_table = True

    def end_table(self) -> None:
        """Part the next row from those before."""
        self._is_in_table = False

    def add_preformatted(self, text: str) -> None:
        """Add text whose spaces and line ends matter."""
        text = clean_text(text).strip("\n")
        if text.strip():
            self._separate("\n\n")
            self._put(text)
            self._is_in_table = False

    def _separate(self, separator: str) -> None:
        if self._length:
            self._put(separator)

    def _put(self, text: str) -> None:
        self._parts.append(text)
        self._length += len(text)
        if self._length > self._max_chars:
            raise DocumentTooLargeError(
                f"This document has more than {self._max_chars:,} characters of text, the limit. "
                "Split it and add the parts."
            )


def tidy(text: str) -> str:
    """Collapse runs of spaces and of line ends, and take away those at both ends."""
    return _LINE_ENDS.sub("\n", _SPACES.sub(" ", clean_text(text))).strip()
