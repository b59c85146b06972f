"""Web pages: the text that a browser would show, with headings and the rows of tables; nothing is loaded or run.

`html_tags.py` gives the tags. Scripts, styles and what the page hides are left out. A start tag closes
what HTML says it closes, so that a hidden paragraph without an end tag does not hide the rest of the page.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from inglenook.storage.parsing.flow_text import CELL_SEPARATOR, FlowText
from inglenook.storage.parsing.html_tags import EndTag, StartTag, html_tokens
from inglenook.storage.parsing.text_encoding import declared_encoding, decode_text

MAX_OPEN_ELEMENTS = 1000

_WORDS = re.compile(r"\w+")
_DROPPED = frozenset(
    _WORDS.findall("script style template noscript iframe object embed svg math canvas head audio video")
)
_VOID = frozenset(_WORDS.findall("area base br col embed hr img input link meta param source track wbr"))
_BLOCKS = frozenset(
    _WORDS.findall(
        "address article aside blockquote body caption center dd details dialog dir div dl dt fieldset figcaption figure "
        "footer form h1 h2 h3 h4 h5 h6 header hr html legend li main menu nav ol option p pre section summary table tbody "
        "td tfoot th thead tr ul"
    )
)
_CELLS = frozenset(("td", "th"))
# An end tag reaches no further out than the innermost of these, but for tags that may.
_BOUNDING = ("table", "body")
_OUTERMOST = ("table", "body", "html")
_SPACE = re.compile(r"\s+")
_HEADINGS = {f"h{level}": level for level in range(1, 7)}
# What a start tag ends, up to the nearest of what bounds it.
_ENDED_BY: dict[str, tuple[frozenset[str], frozenset[str]]] = {
    "li": (frozenset(("li",)), frozenset(("ul", "ol", "menu"))),
    "dt": (frozenset(("dt", "dd")), frozenset(("dl",))),
    "dd": (frozenset(("dt", "dd")), frozenset(("dl",))),
    "option": (frozenset(("option",)), frozenset(("select",))),
    "td": (frozenset(("td", "th")), frozenset(("tr", "table"))),
    "th": (frozenset(("td", "th")), frozenset(("tr", "table"))),
    "tr": (frozenset(("tr",)), frozenset(("table",))),
}
_P = (frozenset(("p",)), frozenset(("table", "td", "th", "body", "li")))
_HIDING_STYLE = re.compile(
    r"display\s*:\s*none|visibility\s*:\s*(?:hidden|collapse)|font-size\s*:\s*0(?![.\d])", re.I
)


@dataclass(slots=True)
class WebText:
    """What a page shows; `hidden_chars` counts what it hides."""

    flow: FlowText
    title: str | None
    hidden_chars: int


def read_html(text: str | bytes, max_chars: int, *, flow: FlowText | None = None) -> WebText:
    """Read a page, into `flow` if given.

    Raises:
        DocumentTooLargeError: more text than `max_chars`.
    """
    if isinstance(text, bytes):
        text = decode_text(text, declared=declared_encoding(text)).text
    reader = _PageReader(flow or FlowText(max_chars))
    reader.read(text)
    title = " ".join("".join(reader.title).split())[:300] or None
    title = title or next((h.title for h in reader.flow.headings if h.level == 1), None)
    return WebText(reader.flow, title, reader.hidden_chars)


class _PageReader:
    """Writes a page's text into a flow."""

    def __init__(self, flow: FlowText) -> None:
        self.flow = flow
        self.title: list[str] = []
        self.hidden_chars = 0
        self._open = _OpenElements()
        self._line: list[str] = []
        self._num_cells = 0
        self._num_open_cells = 0
        self._level: int | None = None

    def read(self, source: str) -> None:
        """Read a page to its end."""
        for token in html_tokens(source):
            if isinstance(token, StartTag):
                self._start(token)
            elif isinstance(token, EndTag):
                self._end(token.name)
            else:
                self._take(token)
        self._break()

    def _start(self, token: StartTag) -> None:
        tag = token.name
        if tag in _ENDED_BY:
            self._end_open(*_ENDED_BY[tag])
        elif tag in _BLOCKS:
            self._end_open(*_P)
        if tag == "br":
            self._line.append(" " if self._num_open_cells else "\n")
        elif tag == "hr":
            self._break()
        elif tag == "body":
            # A head that was never closed does not hide the page.
            self._open.remove("head")
        if tag in _VOID or len(self._open) >= MAX_OPEN_ELEMENTS:
            return
        self._begin_block(tag)
        outer = self._open.innermost[1]
        effect = "drop" if tag in _DROPPED else outer or ("hide" if _is_hidden(token.attributes) else "")
        self._open.push(tag, effect)
        self._num_open_cells += tag in _CELLS
        if token.is_empty and tag in _DROPPED:
            self._end(tag)

    def _end(self, tag: str) -> None:
        """End an element, and those inside of it; a tag for one that was not begun ends nothing."""
        place = self._open.last(tag)
        if tag not in _OUTERMOST and place < self._open.last(*_BOUNDING):
            return
        for each in self._open.pop_from(place) if place >= 0 else ():
            self._num_open_cells -= each in _CELLS
            self._end_block(each)

    def _take(self, text: str) -> None:
        tag, effect = self._open.innermost
        if tag == "title":
            self.title.append(text)
        elif effect == "hide":
            self.hidden_chars += len(text.strip())
        elif not effect:
            is_preformatted = self._open.last("pre") >= 0
            self._line.append(text if is_preformatted else _SPACE.sub(" ", text))

    def _begin_block(self, tag: str) -> None:
        if tag in _HEADINGS:
            self._break()
            self._level = _HEADINGS[tag]
        elif tag in _CELLS:
            if self._num_cells:
                self._line.append(CELL_SEPARATOR)
            self._num_cells += 1
        elif tag in ("table", "tr", "pre") or (tag in _BLOCKS and not self._num_open_cells):
            self._break()
        elif tag in _BLOCKS:
            self._line.append(" ")

    def _end_block(self, tag: str) -> None:
        if tag in _CELLS:
            return
        if tag in _HEADINGS or tag in ("tr", "pre") or (tag in _BLOCKS and not self._num_open_cells):
            self._break(is_preformatted=tag == "pre")
            self._level = None
        if tag == "table":
            self._break()
            self.flow.end_table()

    def _end_open(self, ended: frozenset[str], bounds: frozenset[str]) -> None:
        place = self._open.last(*ended)
        if place > self._open.last(*bounds):
            self._end(self._open.tag_at(place))

    def _break(self, *, is_preformatted: bool = False) -> None:
        text = "".join(self._line)
        self._line.clear()
        if self._num_cells > 1:
            self.flow.add_row(text.split(CELL_SEPARATOR))
        elif is_preformatted:
            self.flow.add_preformatted(text)
        else:
            self.flow.add(text, self._level)
        self._num_cells = 0


class _OpenElements:
    """The open elements, outermost first, with where those of each tag stand: no search goes through all of them.

    Each has an effect on what it holds: "drop", "hide" or "".
    """

    def __init__(self) -> None:
        self._elements: list[tuple[str, str]] = []
        self._places: dict[str, list[int]] = {}

    def __len__(self) -> int:
        return len(self._elements)

    @property
    def innermost(self) -> tuple[str, str]:
        """The tag and effect of the last one; two empty texts without any."""
        return self._elements[-1] if self._elements else ("", "")

    def tag_at(self, place: int) -> str:
        """The tag of the element at a place."""
        return self._elements[place][0]

    def last(self, *tags: str) -> int:
        """The place of the innermost element of these tags, -1 for none."""
        return max((places[-1] for tag in tags if (places := self._places.get(tag))), default=-1)

    def push(self, tag: str, effect: str) -> None:
        """Open an element."""
        self._places.setdefault(tag, []).append(len(self._elements))
        self._elements.append((tag, effect))

    def pop_from(self, place: int) -> list[str]:
        """Close the element at a place and those inside of it; return their tags, innermost first."""
        closed = [tag for tag, _ in reversed(self._elements[place:])]
        for tag in closed:
            self._places[tag].pop()
        del self._elements[place:]
        return closed

    def remove(self, tag: str) -> None:
        """Take away all elements of a tag; what is inside of them stays."""
        if self.last(tag) >= 0:
            kept = [each for each in self._elements if each[0] != tag]
            self.pop_from(0)
            for each in kept:
                self.push(*each)


def _is_hidden(attributes: dict[str, str]) -> bool:
    return "hidden" in attributes or _HIDING_STYLE.search(attributes.get("style", "")) is not None
