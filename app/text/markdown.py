"""Markdown as models write it, read into spans and paragraphs: the one way from a model's text to the screen.

markdown-it-py reads one block at a time (`markdown_blocks.py` cuts them). Raw HTML is text, an image is its
description, and a link is a link only to http, https or mail; anything else stays as it was typed. A block that is
nested or bracketed beyond what people write is shown as typed too, which bounds the time. Never navigates, never
loads. Runs in the GUI thread, without Qt.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache

from markdown_it import MarkdownIt
from markdown_it.token import Token

from inglenook.app.text.highlighting import highlight
from inglenook.app.text.maths_syntax import add_maths
from inglenook.app.text.rich_text import Element, Paragraph, Span, Table, displayable

MAX_NESTING = 40
MAX_BRACKETS = 300
MAX_COLUMNS = 24
MAX_CELLS = 400
MAX_URL_CHARS = 2_000

_ALLOWED_URL = re.compile(r"(?:https?://[^\s]|mailto:[^\s])", re.IGNORECASE)
_LITERAL_MARKS = re.compile(r"[\[\]!~]")


def is_allowed_link(url: str) -> bool:
    """Say whether a link may be shown as one: http, https or mailto, of sane length."""
    return len(url) <= MAX_URL_CHARS and _ALLOWED_URL.match(url.strip()) is not None


def render_markdown(source: str) -> tuple[Element, ...]:
    """Read one block of markdown."""
    if len(_LITERAL_MARKS.findall(source)) > MAX_BRACKETS:
        return render_plain(source)
    source = displayable(source)
    tokens = _parser().parse(source)
    # Deeper text would be dropped by the parser.
    if any(token.level >= MAX_NESTING - 2 for token in tokens):
        return render_plain(source)
    reader = _Reader()
    reader.read(tokens)
    if reader.has_wide_table:
        return render_plain(source)
    return tuple(reader.elements)


def render_plain(source: str) -> tuple[Element, ...]:
    """Show text as it was typed, one paragraph a line."""
    text = displayable(source)
    lines = text.removesuffix("\n").split("\n")
    return tuple(Paragraph("line", (Span(line),) if line else ()) for line in lines)


def render_code(source: str, prefix: str, *, has_fence_end: bool, is_box_end: bool) -> tuple[Paragraph, ...]:
    """Read a fenced block, or the piece of one that `prefix`, its opening line, began."""
    opening = prefix or source.split("\n", 1)[0]
    info = opening.strip().lstrip("`~").strip().split(" ", 1)[0]
    body = displayable(code_text(source, prefix, has_fence_end=has_fence_end))
    return tuple(_code_lines(body, info, is_box_start=not prefix, is_box_end=is_box_end))


def code_text(source: str, prefix: str, *, has_fence_end: bool) -> str:
    """Return exactly what stands inside a fence, without the last line end."""
    lines = source.replace("\r\n", "\n").removesuffix("\n").split("\n")
    opening = prefix or lines.pop(0)
    if has_fence_end and lines:
        lines.pop()
    indent = len(opening) - len(opening.lstrip(" "))
    if indent:
        lines = [line[min(indent, len(line) - len(line.lstrip(" "))) :] for line in lines]
    return "\n".join(lines)


def _code_lines(code: str, info: str, *, is_box_start: bool, is_box_end: bool) -> Iterator[Paragraph]:
    lines = highlight(code, info.lower())
    for number, spans in enumerate(lines):
        is_first, is_last = number == 0 and is_box_start, number == len(lines) - 1 and is_box_end
        edge = "only" if is_first and is_last else "first" if is_first else "last" if is_last else ""
        yield Paragraph("code", spans, edge=edge, info=displayable(info)[:40])


@cache
def _parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": False, "breaks": True, "maxNesting": MAX_NESTING})
    # References would cross blocks, and a definition would vanish.
    parser.enable(["table", "strikethrough"]).disable(["reference", "html_block", "html_inline"])
    add_maths(parser)
    parser.validateLink = is_allowed_link  # type: ignore[method-assign]
    return parser


@dataclass
class _Reader:
    """Walks the tokens of one block once and gathers its elements."""

    elements: list[Element] = field(default_factory=list)
    has_wide_table: bool = False
    _quote: int = 0
    # One number or None for bullets for each open list.
    _lists: list[int | None] = field(default_factory=list)
    _marker: str = ""
    _heading: int = 0
    _rows: list[tuple[tuple[Span, ...], ...]] = field(default_factory=list)
    _cells: list[tuple[Span, ...]] = field(default_factory=list)
    _alignments: list[str] = field(default_factory=list)
    _is_in_cell: bool = False

    def read(self, tokens: list[Token]) -> None:
        for token in tokens:
            read = getattr(self, f"_read_{token.type}", None)
            if read is not None:
                read(token)

    def _add(self, kind: str, spans: tuple[Span, ...], **style: object) -> None:
        marker, self._marker = self._marker, ""
        self.elements.append(
            Paragraph(kind, spans, quote=self._quote, indent=len(self._lists), marker=marker, **style)  # type: ignore[arg-type]
        )

    def _read_blockquote_open(self, _token: Token) -> None:
        self._quote += 1

    def _read_blockquote_close(self, _token: Token) -> None:
        self._quote -= 1

    def _read_bullet_list_open(self, _token: Token) -> None:
        self._open_list(None)

    def _read_ordered_list_open(self, token: Token) -> None:
        start = token.attrGet("start")
        self._open_list(1 if start is None else int(start))

    def _open_list(self, start: int | None) -> None:
        # An item that begins with a list has its own line all the same.
        if self._marker:
            self._add("text", ())
        self._lists.append(start)

    def _read_bullet_list_close(self, _token: Token) -> None:
        self._lists.pop()

    _read_ordered_list_close = _read_bullet_list_close

    def _read_list_item_open(self, token: Token) -> None:
        number = self._lists[-1]
        if number is None:
            self._marker = "•"
        else:
            self._marker = f"{number}{token.markup}"
            self._lists[-1] = number + 1

    def _read_list_item_close(self, _token: Token) -> None:
        if self._marker:
            self._add("text", ())

    def _read_heading_open(self, token: Token) -> None:
        self._heading = int(token.tag[1])

    def _read_heading_close(self, _token: Token) -> None:
        self._heading = 0

    def _read_hr(self, _token: Token) -> None:
        self._add("rule", ())

    def _read_fence(self, token: Token) -> None:
        if self._marker:
            self._add("text", ())
        info = token.info.strip().split(" ", 1)[0]
        for line in _code_lines(token.content.removesuffix("\n"), info, is_box_start=True, is_box_end=True):
            self.elements.append(line._replace(quote=self._quote, indent=len(self._lists)))

    _read_code_block = _read_fence

    def _read_table_open(self, _token: Token) -> None:
        self._rows, self._alignments = [], []

    def _read_tr_open(self, _token: Token) -> None:
        self._cells = []

    def _read_tr_close(self, _token: Token) -> None:
        self._rows.append(tuple(self._cells))

    def _read_th_open(self, token: Token) -> None:
        style = str(token.attrGet("style") or "")
        self._alignments.append(style.removeprefix("text-align:") or "left")

        self._is_in_cell = True

    def _read_td_open(self, _token: Token) -> None:
        self._is_in_cell = True

    def _read_th_close(self, _token: Token) -> None:
        self._is_in_cell = False

    _read_td_close = _read_th_close

    def _read_table_close(self, _token: Token) -> None:
        columns = len(self._alignments)
        self.has_wide_table |= columns > MAX_COLUMNS or columns * len(self._rows) > MAX_CELLS
        self.elements.append(
            Table(tuple(self._rows), tuple(self._alignments), self._quote, len(self._lists))  # type: ignore[arg-type]
        )

    def _read_maths_display(self, token: Token) -> None:
        self._add("maths", (Span(token.content, maths="display"),))

    def _read_inline(self, token: Token) -> None:
        spans = _spans(token.children or [])
        if self._is_in_cell:
            self._cells.append(spans)
        elif self._heading:
            self._add("heading", spans, level=self._heading)
        elif len(spans) == 1 and spans[0].maths == "display":
            self._add("maths", spans)
        else:
            self._add("text", spans)


def _spans(tokens: list[Token]) -> tuple[Span, ...]:
    """Read inline tokens into spans, neighbours of one style joined."""
    spans: list[Span] = []
    style = {"bold": 0, "italic": 0, "strike": 0}
    names = {"strong": "bold", "em": "italic", "s": "strike"}
    link = ""
    link_start = 0

    def add(text: str, *, code: bool = False, url: str = "", maths: str = "") -> None:
        bold, italic, strike = (depth > 0 for depth in style.values())
        span = Span(text, bold, italic, strike, code=code, link=url or link, maths=maths)
        if spans and spans[-1][1:] == span[1:] and not maths:
            spans[-1] = span._replace(text=spans[-1].text + text)
        elif text:
            spans.append(span)

    for token in tokens:
        name, _, end = token.type.rpartition("_")
        if name in names:
            style[names[name]] += 1 if end == "open" else -1
        elif name == "link":
            if end == "open":
                link, link_start = str(token.attrGet("href") or ""), len(spans)
            else:
                # A link without words would vanish.
                if len(spans) == link_start:
                    add(link)
                link = ""
        elif token.type == "image":
            url = str(token.attrGet("src") or "")
            add(token.content or url, url=url)
        elif token.type == "code_inline":
            add(token.content, code=True)
        elif token.type in ("maths_inline", "maths_display"):
            add(token.content, maths=token.type.removeprefix("maths_"))
        elif token.type in ("softbreak", "hardbreak"):
            add("\n")
        else:
            add(token.content)
    return tuple(spans)
