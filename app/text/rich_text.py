"""The values between markdown and the screen: spans of styled text in paragraphs, code lines and tables.

They are plain tuples without markup, colours or Qt. `markdown.py` makes them, `document_writer.py` inserts their text
into a document as text; nothing that a model wrote is ever parsed as HTML. `displayable` replaces the characters
that a text document gives a meaning of its own.
"""

from __future__ import annotations

import re
from typing import Literal, NamedTuple

# Overrides of direction, which show a text in another order than it has; lone surrogates, the frame marks and the object
# mark of Qt's documents (U+FDD0, U+FDD1, U+FFFC).
_UNSAFE = re.compile("[\x00-\x08\x0b-\x1f\x7f\u202d\u202e\ud800-\udfff\ufdd0-\ufdef\ufffc\ufffe\uffff]")
_BREAKS = re.compile("\r\n|[\r\x0b\x0c\u2028\u2029]")
_HIDDEN = re.compile(
    "[\x00-\x1f\x7f-\x9f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffc\U000e0000-\U000e007f\ud800-\udfff]"
)


class Span(NamedTuple):
    """A run of text in one style; `token` is a highlighter's word such as "keyword".

    `maths` marks LaTeX, whose text is the source with its marks: "inline" or "display".
    """

    text: str
    bold: bool = False
    italic: bool = False
    strike: bool = False
    code: bool = False
    link: str = ""
    token: str = ""
    maths: str = ""


class Paragraph(NamedTuple):
    """One paragraph, line of plain text, heading, rule, line of a code box or formula of its own ("maths").

    `quote` and `indent` are depths. `marker` is "" or the item's mark: "•" or "3." or "3)". `level` is a heading's.
    A code line says in `edge` whether it is the box's "first", "last" or "only" one; `info` is the language.
    """

    kind: Literal["text", "line", "heading", "rule", "code", "maths"]
    spans: tuple[Span, ...]
    level: int = 0
    quote: int = 0
    indent: int = 0
    marker: str = ""
    edge: str = ""
    info: str = ""


class Table(NamedTuple):
    """A table; every row has as many cells as `alignments`, the first one is the header."""

    rows: tuple[tuple[tuple[Span, ...], ...], ...]
    alignments: tuple[Literal["left", "center", "right"], ...]
    quote: int = 0
    indent: int = 0


Element = Paragraph | Table


def displayable(text: str) -> str:
    r"""Return `text` with line ends as "\n" and every character that a document would misread made visible."""
    if text.isascii() and text.isprintable():
        return text
    return _UNSAFE.sub(_picture, _BREAKS.sub("\n", text))


def label(text: str, limit: int = 200) -> str:
    """Return one short line for a button or a name: hidden and direction-changing characters escaped, `&` kept."""
    shown = _HIDDEN.sub(lambda match: f"\\u{ord(match[0]):04x}", " ".join(text[: 2 * limit].split()))
    return shown if len(shown) <= limit else shown[: limit - 1] + "…"


def _picture(match: re.Match[str]) -> str:
    code = ord(match[0])
    if code < 0x20:
        return chr(0x2400 + code)
    return "\u2421" if code == 0x7F else "\ufffd"
