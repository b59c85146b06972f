"""PDF by PDFium: the text of each page with its rectangles, and a page's picture.

PDFium counts characters; `PageText` maps the normalised text back to them, and PDFium gives the rectangles of a range
of characters, so nothing is kept for each character. Rectangles are converted by PDFium's own page-to-device
transform, which knows rotation and crop, and so match the picture by construction. PDFium is not thread-safe; it is
used only by the one thread of the parser process.
"""

from __future__ import annotations

import ctypes
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

import pypdfium2  # type: ignore[import-untyped]  # it ships no types
from pypdfium2 import raw

from inglenook.storage.parsing import pdfium_calls as pdfium
from inglenook.storage.parsing.document import ParsedPage, ParsingLimits, Rect
from inglenook.storage.parsing.errors import (
    DamagedDocumentError,
    DocumentTooLargeError,
    PasswordRequiredError,
    WrongPasswordError,
)
from inglenook.storage.parsing.hidden_text import hidden_objects
from inglenook.storage.parsing.page_text import PageText
from inglenook.storage.parsing.rectangles import merge_lines

MAX_PAGE_CHARS = 2_000_000

# Whole numbers per point in PDFium's transform, whose results are whole.
_STEPS = 64
_MAX_DEVICE_SIZE = 1 << 28
# How far a line is marked above and below what it stands on, in sizes of its font, even where its letters do not reach
# so far: near enough to the ink of capitals alone as well as to a box by the font's metrics.
_ASCENT, _DESCENT = 0.72, 0.12
_SAMPLED_ANGLES = 50
_LINE = re.compile(r"\S[^\n]*")
_Box = tuple[float, float, float, float]  # left, top, right, bottom in the PDF's own coordinates: y upwards
_FORM_TYPES_XFA = (raw.FORMTYPE_XFA_FULL, raw.FORMTYPE_XFA_FOREGROUND)


class PdfFile:
    """An open PDF. Close it after use; pages are loaded one at a time.

    Raises:
        PasswordRequiredError, WrongPasswordError: it is encrypted.
        DamagedDocumentError: PDFium cannot read it.
        DocumentTooLargeError: it has too many pages.
    """

    def __init__(self, data: bytes, *, password: str | None, limits: ParsingLimits) -> None:
        try:
            self._document = pypdfium2.PdfDocument(data, password=password)
        except pypdfium2.PdfiumError as error:
            raise _open_error(error.err_code, password) from error
        self.num_pages = len(self._document)
        if self.num_pages > limits.max_pages:
            self.close()
            raise DocumentTooLargeError(
                f"This PDF has {self.num_pages:,} pages; the limit is {limits.max_pages:,}. Split it and add the parts."
            )
        if self.num_pages == 0:
            self.close()
            raise DamagedDocumentError("This PDF has no pages. Export or download it again.")

    def close(self) -> None:
        """Free what PDFium holds of the document."""
        self._document.close()

    @property
    def title(self) -> str | None:
        """The title that the document states, if any."""
        return " ".join(PageText(self._document.get_metadata_value("Title")).text.split())[:300] or None

    @property
    def is_xfa_form(self) -> bool:
        """Whether the real content is an XFA form, which PDFium shows only a placeholder of."""
        return self._document.get_formtype() in _FORM_TYPES_XFA

    @property
    def num_attachments(self) -> int:
        """How many files are attached to the document; they are not read."""
        return int(self._document.count_attachments())

    def label(self, index: int) -> str | None:
        """Give the printed number of a page, if the document defines one."""
        return PageText(self._document.get_page_label(index)).text[:40] or None

    def load_page(self, index: int) -> PdfPage:
        """Load a page and its text; close it after use.

        Raises:
            DamagedDocumentError: this page cannot be loaded; others may.
        """
        try:
            page = self._document[index]
        except pypdfium2.PdfiumError as error:
            raise DamagedDocumentError(f"Page {index + 1} of {self.num_pages} cannot be read.") from error
        try:
            return PdfPage(page, index, self.label(index))
        except pypdfium2.PdfiumError as error:
            page.close()
            raise DamagedDocumentError(f"Page {index + 1} of {self.num_pages} cannot be read.") from error

    def init_forms(self) -> None:
        """Make pages loaded from now on draw the fields of forms in their pictures."""
        self._document.init_forms()


@dataclass(frozen=True, slots=True)
class Pixels:
    """RGBA pixels of a page and the pixels per point they were drawn with."""

    width: int
    height: int
    scale: float
    data: bytes


class PdfPage:
    """A loaded page: its text, the rectangles of a range of it, its picture."""

    def __init__(self, page: pypdfium2.PdfPage, index: int, label: str | None) -> None:
        self._page = page
        self._text_page = _upright_text(page)
        self._text = pdfium.address_of(self._text_page.raw)
        width, height = page.get_size()
        # A size of 0 or of a galaxy is damage; the text of such a page can still be read.
        self.width, self.height = (side if 0 < side < 1e6 else 612.0 for side in (width, height))
        self._display = _Display(page, self.width, self.height)
        self._visible = self._display.visible()
        self.num_hidden_chars = 0
        self._content = PageText(self._visible_characters())
        self.parsed = ParsedPage(
            index=index, label=label, text=self._content.text, width=self.width, height=self.height
        )

    def close(self) -> None:
        """Free what PDFium holds of the page."""
        self._text_page.close()
        self._page.close()

    def rects(self, start: int, end: int) -> tuple[Rect, ...]:
        """Give the rectangles of `text[start:end]`, one for each line, as displayed."""
        raw_start, raw_end = self._content.raw_range(start, end)
        # Leading spaces were normalised away, so the first character is one that has a direction.
        angle = max(0.0, raw.FPDFText_GetCharAngle(self._text_page.raw, raw_start))
        # There may be one for each letter, so they are merged on the page itself, and then placed. Which way y runs
        # is nothing to a merger.
        boxes = [(left, bottom, right, top) for left, top, right, bottom in
                 self._raw_boxes(raw_start, raw_end - raw_start)]  # fmt: skip
        lines = merge_lines(boxes, is_vertical=abs(math.cos(angle)) < abs(math.sin(angle)))
        return tuple(map(self._display.rect, self._line_boxes(start, end, lines)))

    def _line_boxes(self, start: int, end: int, lines: Sequence[Rect]) -> list[Sequence[float]]:
        """Give each line the height of its font in place of its letters', so that "noon" is marked as high as "Tilly"."""
        result: list[Sequence[float]] = list(lines)
        place = 0
        for match in _LINE.finditer(self._content.text, start, end):
            position, _ = self._content.raw_range(match.start(), match.start() + 1)
            x, y, em = self._origin(position)
            if not em:
                continue
            angle = max(0.0, raw.FPDFText_GetCharAngle(self._text_page.raw, position))
            up = (em * math.sin(angle), em * math.cos(angle))  # PDFium's angles run clockwise
            xs = [x + share * up[0] for share in (-_DESCENT, _ASCENT)]
            ys = [y + share * up[1] for share in (-_DESCENT, _ASCENT)]
            for index in range(place, len(lines)):
                left, bottom, right, top = lines[index]
                if left - em < x < right + em and bottom - em / 2 < y < top + em / 2:
                    result[index] = (min(left, *xs), min(bottom, *ys), max(right, *xs), max(top, *ys))
                    place = index + 1
                    break
        return result

    def _origin(self, position: int) -> tuple[float, float, float]:
        """Give where a character stands on its line, and the size of its font on the page, 0 where that is unknown."""
        item = pdfium.text_object(self._text, position)
        x, y = ctypes.c_double(), ctypes.c_double()
        if not item or not raw.FPDFText_GetCharOrigin(self._text_page.raw, position, x, y):
            return 0.0, 0.0, 0.0
        return x.value, y.value, pdfium.em_of(item)

    def has_picture(self) -> bool:
        """Say whether the page shows any picture, as a scan does."""
        objects = self._page.get_objects(filter=[raw.FPDF_PAGEOBJ_IMAGE], max_depth=3)
        return next(iter(objects), None) is not None

    def draw(self, scale: float, max_pixels: int) -> Pixels:
        """Draw the page at `scale` pixels per point, or less where that would be more than `max_pixels`."""
        area = self.width * self.height
        scale = min(
            scale, (max_pixels / area) ** 0.5, max_pixels / (self.width + 1), max_pixels / (self.height + 1)
        )
        bitmap = self._page.render(scale=scale, rev_byteorder=True, prefer_bgrx=True, limit_image_cache=True)
        try:
            rows = memoryview(bitmap.buffer).cast("B")
            row_bytes = bitmap.width * 4
            if bitmap.stride == row_bytes:
                data = bytes(rows[: row_bytes * bitmap.height])
            else:
                starts = range(0, bitmap.stride * bitmap.height, bitmap.stride)
                data = b"".join(rows[start : start + row_bytes] for start in starts)
            return Pixels(bitmap.width, bitmap.height, scale, data)
        finally:
            bitmap.close()

    def _visible_characters(self) -> str:
        """Give one character for each of PDFium's; those outside of the page are blanked, as no reader sees them."""
        handle = self._text_page.raw
        count = raw.FPDFText_CountChars(handle)
        if count > MAX_PAGE_CHARS:
            raise DocumentTooLargeError(
                f"A page of this PDF has {count:,} characters; the limit is {MAX_PAGE_CHARS:,}. Split the document."
            )
        codes = _characters(handle, max(0, count))
        if self._is_any_outside(0, -1):
            codes = [32 if self._is_any_outside(position, 1) else code for position, code in enumerate(codes)]
        hidden = hidden_objects(self._page)
        if hidden:
            codes = [self._blanked(position, code, hidden) for position, code in enumerate(codes)]
        return "".join([chr(code) if code <= 0x10FFFF else "\x00" for code in codes])

    def _blanked(self, position: int, code: int, hidden: set[int]) -> int:
        if pdfium.text_object(self._text, position) not in hidden:
            return code
        self.num_hidden_chars += code > 32
        return 32

    def _is_any_outside(self, position: int, count: int) -> bool:
        left, top, right, bottom = self._visible
        return any(
            box[2] < left or box[0] > right or box[1] < bottom or box[3] > top
            for box in self._raw_boxes(position, count)
        )

    def _raw_boxes(self, position: int, count: int) -> list[_Box]:
        """Give the boxes of characters in the PDF's own coordinates; PDFium joins those of one text object."""
        edges = (ctypes.c_double * 4)()
        start = ctypes.addressof(edges)
        text_page, get_rect = self._text, pdfium.text_rect
        boxes: list[_Box] = []
        for i in range(raw.FPDFText_CountRects(self._text_page.raw, position, count)):
            if get_rect(text_page, i, start, start + 8, start + 16, start + 24):
                boxes.append(tuple(edges))
        return boxes


def _upright_text(page: pypdfium2.PdfPage) -> pypdfium2.PdfTextPage:
    """Load a page's text as if most of it were displayed upright.

    PDFium puts words together as they are displayed, and on a page on its side it may take a line from its end.
    """
    text_page = page.get_textpage()
    count = raw.FPDFText_CountChars(text_page.raw)
    if count < 1:
        return text_page
    angles = [
        -round(raw.FPDFText_GetCharAngle(text_page.raw, position) / (math.pi / 2)) % 4
        for position in range(0, count, max(1, count // _SAMPLED_ANGLES))
    ]
    turns, displayed = max(set(angles), key=angles.count), raw.FPDFPage_GetRotation(page.raw)
    if turns == displayed:
        return text_page
    text_page.close()
    raw.FPDFPage_SetRotation(page.raw, turns)
    try:
        return page.get_textpage()
    finally:
        raw.FPDFPage_SetRotation(page.raw, displayed)


def _characters(text_page: object, count: int) -> list[int]:
    """Give the code of each character as PDFium counts them.

    All at once where it leaves none out, which it does with those that have no code: then there are as many as it
    counts, and none that takes two places.
    """
    buffer = (ctypes.c_ushort * (2 * count + 2))()
    written = raw.FPDFText_GetText(text_page, 0, count, buffer) - 1
    if written == count:
        codes = list(buffer[:count])
        if not any(0xD800 <= code < 0xE000 for code in set(codes)):
            return codes
    address = pdfium.address_of(text_page)
    return [pdfium.text_unicode(address, position) for position in range(count)]


class _Display:
    """The transform from a page's own coordinates to points of the displayed page, rotated and cropped."""

    def __init__(self, page: pypdfium2.PdfPage, width: float, height: float) -> None:
        steps = min(_STEPS, _MAX_DEVICE_SIZE / max(width, height))
        self._page = page.raw
        self._steps = steps
        self._size = (round(width * steps), round(height * steps))
        # The transform is affine: three points far apart fix it.
        (x0, y0), (x1, y1), (x2, y2) = (self._probe(*point) for point in ((0, 0), (width, 0), (0, height)))
        self._x = ((x1 - x0) / width, (x2 - x0) / height, x0)
        self._y = ((y1 - y0) / width, (y2 - y0) / height, y0)

    def rect(self, box: Sequence[float]) -> Rect:
        """Give a rectangle of the page's own coordinates, by two corners, as displayed."""
        left, top, right, bottom = box
        xs = sorted(self._x[0] * x + self._x[1] * y + self._x[2] for x, y in ((left, top), (right, bottom)))
        ys = sorted(self._y[0] * x + self._y[1] * y + self._y[2] for x, y in ((left, top), (right, bottom)))
        return Rect(round(xs[0], 2), round(ys[0], 2), round(xs[1], 2), round(ys[1], 2))

    def visible(self) -> _Box:
        """Give what is displayed, in the page's own coordinates."""
        corners = []
        for corner in ((0, 0), self._size):
            x, y = ctypes.c_double(), ctypes.c_double()
            raw.FPDF_DeviceToPage(self._page, 0, 0, *self._size, 0, *corner, ctypes.byref(x), ctypes.byref(y))
            corners.append((x.value, y.value))
        (x1, y1), (x2, y2) = corners
        return min(x1, x2), max(y1, y2), max(x1, x2), min(y1, y2)

    def _probe(self, x: float, y: float) -> tuple[float, float]:
        device_x, device_y = ctypes.c_int(), ctypes.c_int()
        raw.FPDF_PageToDevice(
            self._page, 0, 0, *self._size, 0, x, y, ctypes.byref(device_x), ctypes.byref(device_y)
        )
        return device_x.value / self._steps, device_y.value / self._steps


def _open_error(code: int | None, password: str | None) -> Exception:
    if code == raw.FPDF_ERR_PASSWORD:
        if password is None:
            return PasswordRequiredError("This PDF is encrypted. Enter its password to read it.")
        return WrongPasswordError("This password does not open the PDF. Enter it again.")
    if code == raw.FPDF_ERR_SECURITY:
        return DamagedDocumentError(
            "This PDF is protected in a way that cannot be read. Save it again without protection."
        )
    return DamagedDocumentError("This PDF is damaged and cannot be read. Export or download it again.")
