"""Text that a PDF page holds but does not show: invisible, of no size, or white on nothing.

Such text is put there for machines to read. An invisible layer over a picture is another matter: it is what text
recognition wrote, and says what the picture shows. White text on a filled shape or a picture is shown, too.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator

import pypdfium2  # type: ignore[import-untyped]  # it ships no types
from pypdfium2 import raw

from inglenook.storage.parsing import pdfium_calls as pdfium

_MIN_FONT_SIZE = 1.0
_MIN_WHITE = 250
_MAX_DEPTH = 3
_MAX_OBJECTS = 20_000
_Box = tuple[float, float, float, float]  # left, bottom, right, top


def hidden_objects(page: pypdfium2.PdfPage) -> set[int]:
    """Return the addresses of the page's text objects that are not shown, as `FPDFText_GetTextObject` gives them."""
    hidden: set[int] = set()
    invisible: set[int] = set()
    white: list[tuple[int, _Box]] = []
    shapes: list[_Box] = []
    has_picture = False
    look = _Look()
    for count, item in enumerate(_objects(pdfium.address_of(page.raw))):
        if count > _MAX_OBJECTS:
            return set()
        kind = pdfium.object_type(item)
        if kind == raw.FPDF_PAGEOBJ_TEXT:
            if pdfium.render_mode(item) == raw.FPDF_TEXTRENDERMODE_INVISIBLE:
                invisible.add(item)
            elif look.is_white(item):
                white.append((item, look.bounds(item)))
            elif look.is_tiny(item):
                hidden.add(item)
        elif kind == raw.FPDF_PAGEOBJ_IMAGE or kind == raw.FPDF_PAGEOBJ_SHADING:
            has_picture = True
            shapes.append(look.bounds(item))
        elif kind == raw.FPDF_PAGEOBJ_PATH and not look.is_white(item):
            shapes.append(look.bounds(item))
    if not has_picture:
        hidden |= invisible
    return hidden | {address for address, box in white if not any(_overlap(box, shape) for shape in shapes)}


def _objects(page: int) -> Iterator[int]:
    for i in range(pdfium.count_page_objects(page)):
        item = pdfium.page_object(page, i)
        if item:
            yield item
            if pdfium.object_type(item) == raw.FPDF_PAGEOBJ_FORM:
                yield from _inner(item, 1)


def _inner(form: int, depth: int) -> Iterator[int]:
    if depth >= _MAX_DEPTH:
        return
    for i in range(pdfium.count_form_objects(form)):
        item = pdfium.form_object(form, i)
        if item:
            yield item
            if pdfium.object_type(item) == raw.FPDF_PAGEOBJ_FORM:
                yield from _inner(item, depth + 1)


class _Look:
    """Asks PDFium about one object after another, into the same few numbers: a page may have many thousands."""

    def __init__(self) -> None:
        self._color = (ctypes.c_uint * 4)()
        self._edges = (ctypes.c_float * 4)()
        self._to_color = _places(self._color)
        self._to_edges = _places(self._edges)

    def is_white(self, item: int) -> bool:
        if not pdfium.fill_color(item, *self._to_color):
            return False
        red, green, blue, alpha = self._color
        return alpha == 0 or (red >= _MIN_WHITE and green >= _MIN_WHITE and blue >= _MIN_WHITE)

    def is_tiny(self, item: int) -> bool:
        if not 0 < pdfium.em_of(item) < _MIN_FONT_SIZE:
            return False
        left, bottom, right, top = self.bounds(item)
        # Spaces are often of no size, and hide nothing.
        return left < right and bottom < top

    def bounds(self, item: int) -> _Box:
        if not pdfium.object_bounds(item, *self._to_edges):
            return 0.0, 0.0, 0.0, 0.0
        left, bottom, right, top = self._edges
        return left, bottom, right, top


def _places(array: ctypes.Array[ctypes.c_uint] | ctypes.Array[ctypes.c_float]) -> tuple[int, ...]:
    """Return the address of each of four numbers of 4 bytes."""
    start = ctypes.addressof(array)
    return start, start + 4, start + 8, start + 12


def _overlap(one: _Box, other: _Box) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]
