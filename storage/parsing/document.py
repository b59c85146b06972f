"""What parsing gives: plain frozen values of a document, its pages, its chunks and a page's picture.

They cross the process boundary as msgpack. All coordinates are points (1/72 inch) in the page as it is displayed:
origin at the top left, x to the right, y down, rotation and crop already applied, so that a rectangle times a
picture's scale is where the passage stands in that picture. Offsets count characters of `ParsedPage.text`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

DocumentKind = Literal["pdf", "docx", "html", "csv", "text", "markdown"]

MIB = 1024 * 1024

READABLE_FORMATS = "PDF, Word (DOCX), web pages (HTML), Markdown, plain text and tables (CSV, TSV)"
"""What can be read, in words for a person."""


class Rect(NamedTuple):
    """A rectangle on a displayed page, in points from its top left corner."""

    left: float
    top: float
    right: float
    bottom: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsingLimits:
    """How much a document may ask for before it is refused or its parser is ended.

    `stall_timeout_s` is the longest time without a finished page, `total_timeout_s` the longest for a document.
    """

    max_file_bytes: int = 200 * MIB
    max_text_file_bytes: int = 32 * MIB
    max_pages: int = 20_000
    max_text_chars: int = 32_000_000
    max_picture_pixels: int = 16_000_000
    memory_bytes: int = 1024 * MIB
    stall_timeout_s: float = 20.0
    total_timeout_s: float = 600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedPage:
    """A page's text and size. Texts without pages are cut into pages of some lines, with their numbers from 1.

    `label` is the page's printed number if the document defines one ("iv"). `width` and `height` are 0 for text.
    """

    index: int
    label: str | None = None
    text: str = ""
    width: float = 0.0
    height: float = 0.0
    first_line: int | None = None
    last_line: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunk:
    """A passage of one page: `text` is exactly `page.text[start:end]`.

    `context` is the title and the heading path: indexed and embedded with the passage, never quoted.
    """

    page_index: int
    page_label: str | None
    start: int
    end: int
    text: str
    context: str
    heading: tuple[str, ...] = ()
    rects: tuple[Rect, ...] = ()
    first_line: int | None = None
    last_line: int | None = None

    @property
    def embedding_text(self) -> str:
        """What the embedder reads: the context on a line of its own, then the passage."""
        return f"{self.context}\n{self.text}" if self.context else self.text


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedDocument:
    """A document that was read from end to end.

    `title` is the document's own, if it states one. `sha256` is of the very bytes that were parsed. `encoding` is of
    a text; `is_encoding_guessed` says that the bytes do not prove it. `notes` are sentences for the user about
    what could not be read.
    """

    kind: DocumentKind
    sha256: str
    size_bytes: int
    pages: tuple[ParsedPage, ...]
    chunks: tuple[Chunk, ...]
    title: str | None = None
    encoding: str | None = None
    is_encoding_guessed: bool = False
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PagePicture:
    """A page as pixels: `pixels` is RGBA, 8 bits each, rows of `width` * 4 bytes from the top.

    `scale` is pixels per point, lower than asked for where the page is too large. `rects` are in points.
    """

    page_index: int
    label: str | None
    num_pages: int
    width: int
    height: int
    scale: float
    pixels: bytes
    rects: tuple[Rect, ...] = ()


def place_of(chunk: Chunk, num_pages: int) -> str:
    """Say where a chunk stands, as citations do: "p. iv (6 of 120)", "p. 6 of 120" or "lines 12–20"."""
    if chunk.first_line is not None and chunk.last_line is not None:
        if chunk.first_line == chunk.last_line:
            return f"line {chunk.first_line}"
        return f"lines {chunk.first_line}–{chunk.last_line}"
    number = str(chunk.page_index + 1)
    if chunk.page_label is None or chunk.page_label == number:
        return f"p. {number} of {num_pages}"
    return f"p. {chunk.page_label} ({number} of {num_pages})"
