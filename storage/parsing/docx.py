"""Word documents (DOCX) in the order in which they are read, with what lies outside of the body.

One pass over the body's XML: paragraphs, rows of tables with their cells apart, text boxes and diagrams after the
paragraph that they are anchored to, foot- and endnotes and comments after the one that refers to them, alternative
chunks where they stand; headers and footers at the two ends. Text that the document marks as deleted or hidden is left
out. Word decides on pages only when it draws them, so a place is a heading and lines.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from inglenook.storage.parsing.document import ParsingLimits
from inglenook.storage.parsing.docx_parts import Styles, WordParts
from inglenook.storage.parsing.errors import DamagedDocumentError
from inglenook.storage.parsing.file_type import is_docx, is_html
from inglenook.storage.parsing.flow_text import CELL_SEPARATOR, FlowText, tidy
from inglenook.storage.parsing.html import read_html
from inglenook.storage.parsing.safe_xml import parse_xml
from inglenook.storage.parsing.text_encoding import decode_text
from inglenook.storage.parsing.zip_package import ZipPackage

MAX_CHUNK_DEPTH = 3

_SKIPPED = frozenset(("Fallback", "del", "moveFrom", "instrText", "delText", "rt", "pPrChange", "rPrChange"))
_NOTES = {
    "footnoteReference": "footnotes",
    "endnoteReference": "endnotes",
    "commentReference": "comments",
}
_SPACES = {"tab": "\t", "br": "\n", "cr": "\n", "noBreakHyphen": "-", "ptab": "\t"}
_OFF = frozenset(("0", "false", "off"))

Line = tuple[str, int | None]
"""A paragraph and, for a heading, its level from 0."""


@dataclass(slots=True)
class WordText:
    """What a Word document holds."""

    flow: FlowText
    title: str | None
    notes: list[str] = field(default_factory=list)


def read_docx(data: bytes, limits: ParsingLimits) -> WordText:
    """Read a document.

    Raises:
        DamagedDocumentError: it cannot be read as a Word document.
        DocumentTooLargeError: it inflates, or has more text, than allowed.
    """
    flow = FlowText(limits.max_text_chars)
    found = _Findings()
    parts = WordParts(ZipPackage(data))
    _read_into(flow, parts, found, limits, depth=0)
    title = parts.title or next((h.title for h in flow.headings if h.level == 0), None)
    title = title or next((h.title for h in flow.headings if h.level == 1), None)
    return WordText(flow, title, found.sentences())


@dataclass(slots=True)
class _Findings:
    """What is said about a document besides its text."""

    hidden_chars: int = 0
    unread_chunks: int = 0
    damaged_parts: int = 0

    def sentences(self) -> list[str]:
        """Return the notes for the user."""
        result = []
        if self.hidden_chars:
            result.append(f"Hidden text ({self.hidden_chars:,} characters) was left out.")
        if self.unread_chunks:
            result.append(f"{self.unread_chunks} embedded documents of other types were not read.")
        if self.damaged_parts:
            result.append(
                f"{self.damaged_parts} parts, such as notes or headers, are damaged and were left out."
            )
        return result


def _read_into(
    flow: FlowText, parts: WordParts, found: _Findings, limits: ParsingLimits, *, depth: int
) -> None:
    styles = parts.styles()
    notes = {}
    for kind in _NOTES.values():
        part = next(iter(parts.relations.of_kind(kind)), None)
        notes[kind] = _read_story(parts, part, styles, found).by_id if part else {}
    for name in parts.relations.of_kind("header"):
        for text, _ in _read_story(parts, name, styles, found).lines:
            flow.add(text)
    body = _Body(parts, styles, found, notes, flow, limits, depth)
    parse_xml(parts.package.pieces(parts.main), body)
    body.finish()
    for name in parts.relations.of_kind("footer"):
        for text, _ in _read_story(parts, name, styles, found).lines:
            flow.add(text)


def _read_story(parts: WordParts, name: str, styles: Styles, found: _Findings) -> _Story:
    """Read a part beside the body, as far as it is sound."""
    story = _Story(styles, found)
    try:
        parse_xml(parts.package.pieces(name), story)
    except DamagedDocumentError:
        found.damaged_parts += 1
    return story


@dataclass(slots=True)
class _Paragraph:
    """A paragraph that is being read, and what comes after it."""

    pieces: list[str] = field(default_factory=list)
    level: int | None = None
    after: list[Line] = field(default_factory=list)


class _Story:
    """Collects the paragraphs and rows of one part. A text box lies inside a paragraph, so paragraphs nest."""

    def __init__(self, styles: Styles, found: _Findings) -> None:
        self.lines: list[Line] = []
        self.by_id: dict[str, list[Line]] = {}
        self._styles = styles
        self._found = found
        self._path: list[str] = []
        self._skipped_at: int | None = None
        self._paragraphs: list[_Paragraph] = []
        self._rows: list[list[list[str]]] = []
        self._is_hidden = False

    def start(self, namespace: str, name: str, attributes: Mapping[str, str]) -> None:
        """An element begins."""
        self._path.append(name)
        if self._skipped_at is not None:
            return
        if name in _SKIPPED and not self._is_in("rPr"):
            self._skipped_at = len(self._path)
            return
        match name:
            case "p":
                self._paragraphs.append(_Paragraph())
            case "tr":
                self._rows.append([])
            case "tc" if self._rows:
                self._rows[-1].append([])
            case "r":
                self._is_hidden = False
            case "vanish" if self._path[-3:-1] == ["r", "rPr"]:
                self._is_hidden = attributes.get("val", "1").lower() not in _OFF
            case "pStyle" if self._paragraphs:
                self._paragraphs[-1].level = self._styles.level(attributes.get("val", ""))
            case "outlineLvl" if self._paragraphs and attributes.get("val", "").isdecimal():
                level = int(attributes["val"])
                self._paragraphs[-1].level = level + 1 if level < 9 else None
            case "footnote" | "endnote" | "comment":
                # Separators are notes of a type of their own.
                self.lines = self.by_id.setdefault(attributes.get("id", ""), [])
            case "relIds" | "altChunk":
                self.refer(name, attributes)
            case _ if name in _NOTES:
                self.refer(name, attributes)
            case _ if name in _SPACES:
                self._take(_SPACES[name])

    def end(self, namespace: str, name: str) -> None:
        """An element ends."""
        if self._skipped_at is not None:
            if self._skipped_at == len(self._path):
                self._skipped_at = None
        elif name == "p" and self._paragraphs:
            paragraph = self._paragraphs.pop()
            self._add("".join(paragraph.pieces), paragraph.level, paragraph.after)
        elif name == "tr" and self._rows:
            self._end_row([" ".join(cell) for cell in self._rows.pop()])
        elif name == "tbl" and not self._rows:
            self.end_table()
        elif name == "r":
            self._is_hidden = False
        self._path.pop()

    def text(self, text: str) -> None:
        """A piece of text; only that of "t" elements is the document's."""
        if self._skipped_at is None and self._path and self._path[-1] == "t":
            self._take(text)

    def refer(self, name: str, attributes: Mapping[str, str]) -> None:
        """A note, a diagram or an alternative chunk is referred to; only the body follows that up."""

    def line(self, text: str, level: int | None) -> None:
        """A paragraph is complete."""
        self.lines.append((text, level))

    def row(self, cells: list[str]) -> None:
        """A row of a table is complete."""
        self.lines.append((CELL_SEPARATOR.join(cells), None))

    def end_table(self) -> None:
        """A table is complete."""

    def follow(self, lines: list[Line]) -> None:
        """Let lines follow the paragraph that is being read."""
        if self._paragraphs:
            self._paragraphs[0].after += lines
        else:
            self._flush(lines)

    def _take(self, text: str) -> None:
        if self._is_hidden:
            self._found.hidden_chars += len(text.strip())
        elif self._paragraphs and not self._is_in("pPr"):
            self._paragraphs[-1].pieces.append(text)

    def _add(self, text: str, level: int | None, after: list[Line]) -> None:
        if self._paragraphs:
            # A text box: after the paragraph it is anchored to.
            self._paragraphs[0].after += [(text, None), *after]
        elif self._rows and self._rows[-1]:
            self._rows[-1][-1] += [
                tidy(part) for part in (text, *(line for line, _ in after)) if part.strip()
            ]
        else:
            self._flush([(text, level), *after])

    def _end_row(self, cells: list[str]) -> None:
        if self._paragraphs:
            self._paragraphs[0].after.append((CELL_SEPARATOR.join(cells), None))
        elif self._rows and self._rows[-1]:
            self._rows[-1][-1].append(CELL_SEPARATOR.join(cells))
        else:
            self.row(cells)

    def _flush(self, lines: list[Line]) -> None:
        for text, level in lines:
            if text.strip():
                self.line(text, level)

    def _is_in(self, name: str) -> bool:
        return name in self._path[-4:-1]


class _Body(_Story):
    """The main part: follows up what it refers to, and writes into the flow."""

    def __init__(
        self,
        parts: WordParts,
        styles: Styles,
        found: _Findings,
        notes: Mapping[str, Mapping[str, list[Line]]],
        flow: FlowText,
        limits: ParsingLimits,
        depth: int,
    ) -> None:
        super().__init__(styles, found)
        self._parts = parts
        self._notes = notes
        self._flow = flow
        self._limits = limits
        self._depth = depth

    def line(self, text: str, level: int | None) -> None:
        """A paragraph is complete."""
        self._flow.add(text, level)

    def row(self, cells: list[str]) -> None:
        """A row of a table is complete."""
        self._flow.add_row(cells)

    def end_table(self) -> None:
        """A table is complete."""
        self._flow.end_table()

    def refer(self, name: str, attributes: Mapping[str, str]) -> None:
        """Follow up a reference."""
        if name == "altChunk":
            self._read_chunk(self._parts.relations.target(attributes.get("id", "")))
        elif name == "relIds":
            target = self._parts.relations.target(attributes.get("dm", ""))
            if target in self._parts.package:
                self.follow(_read_story(self._parts, target, self._styles, self._found).lines)
        else:
            self.follow(list(self._notes[_NOTES[name]].get(attributes.get("id", ""), ())))

    def finish(self) -> None:
        """The part ended."""
        if self._paragraphs or self._rows:
            raise DamagedDocumentError("This document breaks off. Save or download it again.")

    def _read_chunk(self, name: str) -> None:
        """Read another document that stands inside this one."""
        if name not in self._parts.package or self._depth >= MAX_CHUNK_DEPTH:
            self._found.unread_chunks += 1
            return
        data = self._parts.package.read(name)
        try:
            if is_docx(data):
                inner = WordParts(ZipPackage(data))
                _read_into(self._flow, inner, self._found, self._limits, depth=self._depth + 1)
            elif is_html(data):
                page = read_html(data, self._limits.max_text_chars, flow=self._flow)
                self._found.hidden_chars += page.hidden_chars
            elif name.lower().endswith(".txt"):
                for paragraph in decode_text(data).text.split("\n\n"):
                    self._flow.add(paragraph)
            else:
                self._found.unread_chunks += 1
        except DamagedDocumentError:
            self._found.unread_chunks += 1
