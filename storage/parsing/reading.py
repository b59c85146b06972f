"""Read one document's bytes: decide what it is, go through its pages, chunk them. Runs in the parser process.

Pages are handed on as they are done, so memory holds one page's work at a time. A page that cannot be read costs that
page and a note, never the document; a document without any text is an error that says why.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from inglenook.storage.chunking import ChunkLimits, TokenOffsets, chunk_page
from inglenook.storage.parsing import file_type, frames
from inglenook.storage.parsing.csv_rows import find_separator, row_groups
from inglenook.storage.parsing.document import DocumentKind, PagePicture, ParsedPage, ParsingLimits
from inglenook.storage.parsing.docx import read_docx
from inglenook.storage.parsing.errors import (
    DamagedDocumentError,
    DocumentTooLargeError,
    NoTextError,
    UnsupportedTypeError,
)
from inglenook.storage.parsing.html import read_html
from inglenook.storage.parsing.opening import too_large
from inglenook.storage.parsing.page_quality import is_garbled
from inglenook.storage.parsing.pdf import PdfFile, PdfPage
from inglenook.storage.parsing.plain_text import Heading, Outline, TextPages, clean_text, find_headings
from inglenook.storage.parsing.second_reader import SecondReader
from inglenook.storage.parsing.text_encoding import DecodedText, declared_encoding, decode_text

_MARKDOWN_SUFFIXES = frozenset((".md", ".markdown"))
_TABLE_SUFFIXES = frozenset((".csv", ".tsv", ".tab"))
_WEB_SUFFIXES = frozenset((".htm", ".html", ".xhtml"))

OnPage = Callable[[frames.PageDone, int], None]
"""Receives each page with its chunks as it is done, and the number of pages in all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """What is known of a document when all its pages were handed on."""

    kind: DocumentKind
    num_pages: int
    title: str | None
    encoding: str | None = None
    is_encoding_guessed: bool = False
    notes: tuple[str, ...] = ()


class Reader:
    """Reads documents with one set of limits and one tokenizer."""

    def __init__(
        self,
        *,
        limits: ParsingLimits,
        chunk_limits: ChunkLimits,
        token_offsets: TokenOffsets,
        on_page: OnPage,
    ) -> None:
        self._limits = limits
        self._chunk_limits = chunk_limits
        self._token_offsets = token_offsets
        self._on_page = on_page

    def read(
        self, data: bytes, *, title: str, suffix: str = "", password: str | None, encoding: str | None = None
    ) -> Summary:
        """Read a document from end to end; raises the errors of `errors.py`.

        The content decides what it is; `suffix`, of the file's name, only among what is text.
        """
        if file_type.is_pdf(data):
            return self._read_pdf(data, title, password)
        if file_type.is_docx(data):
            return self._read_docx(data, title)
        if file_type.is_html(data):
            return self._read_html(data, title, encoding)
        foreign = file_type.foreign_type(data)
        if foreign is not None:
            raise UnsupportedTypeError(
                f"This is {foreign}, which cannot be read yet. Save or print it as PDF and add that."
            )
        if suffix in _WEB_SUFFIXES:
            return self._read_html(data, title, encoding)
        return self._read_text(data, title, suffix, encoding)

    def _read_pdf(self, data: bytes, title: str, password: str | None) -> Summary:
        second = SecondReader(data, password)
        try:
            pdf = PdfFile(data, password=password, limits=self._limits)
        except DamagedDocumentError as error:
            return self._read_damaged_pdf(second, title, error)
        try:
            counts = _PageCounts()
            for index in range(pdf.num_pages):
                self._read_pdf_page(pdf, second, index, title, counts)
            counts.raise_if_no_text(pdf.num_pages)
            return Summary(
                kind="pdf", num_pages=pdf.num_pages, title=pdf.title, notes=tuple(_pdf_notes(pdf, counts))
            )
        finally:
            pdf.close()

    def _read_damaged_pdf(self, second: SecondReader, title: str, error: DamagedDocumentError) -> Summary:
        """Read what another reader makes of a file that PDFium refuses; raise PDFium's error where that is nothing."""
        num_pages = min(second.num_pages, self._limits.max_pages)
        counts = _PageCounts()
        texts: list[str] = []
        for index in range(num_pages):
            texts.append(second.text(index))
            counts.add_text(texts[-1], self._limits)
        if not counts.text_chars:
            raise error
        for index, text in enumerate(texts):
            page = ParsedPage(index=index, text=text)
            chunks = chunk_page(
                page, title=title, token_offsets=self._token_offsets, limits=self._chunk_limits
            )
            self._on_page(frames.PageDone(page=page, chunks=tuple(chunks)), num_pages)
        note = "This PDF is damaged: its text could be read, but its pages cannot be shown."
        return Summary(kind="pdf", num_pages=num_pages, title=None, notes=(note,))

    def _read_pdf_page(
        self, pdf: PdfFile, second: SecondReader, index: int, title: str, counts: _PageCounts
    ) -> None:
        try:
            page = pdf.load_page(index)
        except DamagedDocumentError:
            counts.damaged += 1
            self._on_page(frames.PageDone(page=ParsedPage(index=index), chunks=()), pdf.num_pages)
            return
        try:
            parsed, is_bad = _best_text(page, second)
            counts.add_text(parsed.text, self._limits)
            counts.hidden_chars += page.num_hidden_chars
            if not parsed.text:
                counts.empty += 1
                counts.pictures += page.has_picture()
            counts.garbled += is_bad
            chunks = chunk_page(
                parsed,
                title=title,
                token_offsets=self._token_offsets,
                limits=self._chunk_limits,
                # The second reader knows no places.
                locate=page.rects if parsed is page.parsed else None,
            )
            self._on_page(frames.PageDone(page=parsed, chunks=tuple(chunks)), pdf.num_pages)
        finally:
            page.close()

    def _read_docx(self, data: bytes, title: str) -> Summary:
        word = read_docx(data, self._limits)
        if not word.flow.text:
            raise NoTextError(
                "This document holds no text. If it shows pictures of text, save it as PDF with OCR."
            )
        return self._read_lines(
            word.flow.text,
            title,
            "docx",
            word.flow.headings,
            own_title=word.title,
            notes=tuple(word.notes),
        )

    def _read_html(self, data: bytes, title: str, encoding: str | None) -> Summary:
        decoded = self._decoded(data, encoding, declared_encoding(data))
        page = read_html(decoded.text, self._limits.max_text_chars)
        if not page.flow.text:
            raise NoTextError(
                "This web page shows no text by itself; scripts would make it. Print it as PDF and add that."
            )
        notes = (
            (f"Hidden text ({page.hidden_chars:,} characters) was left out.",) if page.hidden_chars else ()
        )
        return self._read_lines(
            page.flow.text,
            title,
            "html",
            page.flow.headings,
            decoded=decoded,
            own_title=page.title,
            notes=notes,
        )

    def _read_text(self, data: bytes, title: str, suffix: str, encoding: str | None) -> Summary:
        decoded = self._decoded(data, encoding)
        text = clean_text(decoded.text)
        if not text.strip():
            raise NoTextError("This file holds only blank lines. Check that it was saved completely.")
        if suffix in _MARKDOWN_SUFFIXES:
            return self._read_lines(text, title, "markdown", find_headings(text), decoded=decoded)
        separator = find_separator(text, is_named=suffix in _TABLE_SUFFIXES)
        if separator is not None:
            return self._read_table(text, title, separator, decoded)
        return self._read_lines(text, title, "text", [], decoded=decoded)

    def _read_table(self, text: str, title: str, separator: str, decoded: DecodedText) -> Summary:
        limits = self._chunk_limits
        groups = [
            *row_groups(
                text,
                separator,
                count_tokens=lambda row: len(self._token_offsets(row)),
                max_tokens=limits.target_tokens,
                max_chars=limits.max_chars,
            )
        ]
        for page in groups:
            place = (page.first_line or 1, page.last_line or 1)
            chunks = chunk_page(
                page,
                title=title,
                token_offsets=self._token_offsets,
                limits=limits,
                lines=lambda start, end, place=place: place,  # type: ignore[misc]
            )
            self._on_page(frames.PageDone(page=page, chunks=tuple(chunks)), len(groups))
        return Summary(
            kind="csv",
            num_pages=len(groups),
            title=None,
            encoding=decoded.encoding,
            is_encoding_guessed=decoded.is_guess,
        )

    def _read_lines(
        self,
        text: str,
        title: str,
        kind: DocumentKind,
        headings: list[Heading],
        *,
        decoded: DecodedText | None = None,
        own_title: str | None = None,
        notes: tuple[str, ...] = (),
    ) -> Summary:
        """Cut a text without pages into pages of some lines."""
        outline = Outline(headings)
        pages = TextPages(text, outline)
        for index in range(len(pages)):
            self._read_text_page(pages, index, outline, title)
        return Summary(
            kind=kind,
            num_pages=len(pages),
            title=own_title or next((heading.title for heading in headings if heading.level == 1), None),
            encoding=decoded.encoding if decoded else None,
            is_encoding_guessed=decoded.is_guess if decoded else False,
            notes=notes,
        )

    def _decoded(self, data: bytes, encoding: str | None, declared: str | None = None) -> DecodedText:
        if len(data) > self._limits.max_text_file_bytes:
            raise too_large(len(data), self._limits.max_text_file_bytes)
        return decode_text(data, encoding=encoding, declared=declared)

    def _read_text_page(self, pages: TextPages, index: int, outline: Outline, title: str) -> None:
        page = pages.page(index)
        offset = pages.starts[index]
        end = offset + len(page.text)
        chunks = chunk_page(
            page,
            title=title,
            token_offsets=self._token_offsets,
            limits=self._chunk_limits,
            heading_at=lambda position: outline.path_at(offset + position),
            heading_starts=[start - offset for start in outline.starts_between(offset, end)],
            lines=lambda start, stop: pages.lines(index, start, stop),
        )
        self._on_page(frames.PageDone(page=page, chunks=tuple(chunks)), len(pages))


def render(data: bytes, job: frames.RenderJob, limits: ParsingLimits) -> PagePicture:
    """Draw a page of a PDF, with the rectangles of a passage of it."""
    if not file_type.is_pdf(data):
        raise UnsupportedTypeError("Only pages of a PDF have pictures. Show this document as text.")
    pdf = PdfFile(data, password=job.password, limits=limits)
    try:
        if not 0 <= job.page_index < pdf.num_pages:
            raise DamagedDocumentError(
                f"This PDF has {pdf.num_pages} pages, and page {job.page_index + 1} was asked for. Add the file again."
            )
        pdf.init_forms()
        page = pdf.load_page(job.page_index)
        try:
            pixels = page.draw(job.scale, limits.max_picture_pixels)
            # Ranges of a text that the second reader gave mean nothing in that of PDFium.
            has_places = _best_text(page, SecondReader(data, job.password))[0] is page.parsed
            start, end = max(0, job.start), min(job.end, len(page.parsed.text)) if has_places else 0
            return PagePicture(
                page_index=job.page_index,
                label=page.parsed.label,
                num_pages=pdf.num_pages,
                width=pixels.width,
                height=pixels.height,
                scale=pixels.scale,
                pixels=pixels.data,
                rects=page.rects(start, end) if start < end else (),
            )
        finally:
            page.close()
    finally:
        pdf.close()


def _best_text(page: PdfPage, second: SecondReader) -> tuple[ParsedPage, bool]:
    """Return a page with the text that reads as writing, PDFium's or another reader's, and whether neither does."""
    if not is_garbled(page.parsed.text):
        return page.parsed, False
    other = second.text(page.parsed.index)
    if not other or is_garbled(other):
        return page.parsed, True
    return replace(page.parsed, text=other), False


@dataclass(slots=True)
class _PageCounts:
    """What the pages of a PDF turned out to be."""

    empty: int = 0
    garbled: int = 0
    hidden_chars: int = 0
    pictures: int = 0
    damaged: int = 0
    text_chars: int = 0

    def add_text(self, text: str, limits: ParsingLimits) -> None:
        self.text_chars += len(text)
        if self.text_chars > limits.max_text_chars:
            raise DocumentTooLargeError(
                f"This document has more than {limits.max_text_chars:,} characters of text, the limit. "
                "Split it and add the parts."
            )

    def raise_if_no_text(self, num_pages: int) -> None:
        if self.damaged == num_pages:
            raise DamagedDocumentError(
                f"None of the {num_pages} pages of this PDF can be read. Export or download it again."
            )
        if self.text_chars:
            return
        if self.pictures:
            raise NoTextError(
                f"No text on {num_pages} of {num_pages} pages: they are pictures, as a scanner makes them. "
                "Run the file through text recognition (OCR) and add the result."
            )
        raise NoTextError(
            f"No text on {num_pages} of {num_pages} pages: they are blank or drawn. Export it again with text."
        )


def _pdf_notes(pdf: PdfFile, counts: _PageCounts) -> list[str]:
    notes: list[str] = []
    total = pdf.num_pages
    if counts.damaged:
        notes.append(f"{counts.damaged} of {total} pages are damaged and were left out.")
    if counts.pictures:
        notes.append(f"{counts.pictures} of {total} pages are pictures without text and cannot be searched.")
    if counts.garbled:
        notes.append(
            f"{counts.garbled} of {total} pages have text that reads as garbled: their fonts do not say which letters "
            "they show. Text recognition (OCR) would read them."
        )
    if counts.hidden_chars:
        notes.append(f"Hidden text ({counts.hidden_chars:,} characters) was left out.")
    if pdf.is_xfa_form:
        notes.append("This is an XFA form; its fields cannot be read. Print it to PDF and add that.")
    if pdf.num_attachments:
        notes.append(
            f"{pdf.num_attachments} attached files were not read. Save them from the PDF and add them."
        )
    return notes
