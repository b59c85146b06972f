"""Text that a PDF page holds but does not show: invisible, of no size, or white on nothing.

Such text is put there for machines to read. An invisible layer over a picture is another matter: it is what text
recognition wrote, and says what the picture shows. White text on a filled shape or a picture is shown, too.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Iterator

import pypdfium2  # type: ignore[import-untyped]  # it ships no types
from pypdfium2 import raw

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
    for count, item in enumerate(_objects(page.raw)):
        if count > _MAX_OBJECTS:
            return set()
        kind = raw.FPDFPageObj_GetType(item)
        if kind == raw.FPDF_PAGEOBJ_TEXT:
            if raw.FPDFTextObj_GetTextRenderMode(item) == raw.FPDF_TEXTRENDERMODE_INVISIBLE:
                invisible.add(_address(item))
            elif _is_white(item):
                white.append((_address(item), _bounds(item)))
            elif _is_tiny(item):
                hidden.add(_address(item))
        elif kind == raw.FPDF_PAGEOBJ_IMAGE or kind == raw.FPDF_PAGEOBJ_SHADING:
            has_picture = True
            shapes.append(_bounds(item))
        elif kind == raw.FPDF_PAGEOBJ_PATH and not _is_white(item):
            shapes.append(_bounds(item))
    if not has_picture:
        hidden |= invisible
    return hidden | {address for address, box in white if not any(_overlap(box, shape) for shape in shapes)}


def _objects(page: object) -> Iterator[object]:
    for i in range(raw.FPDFPage_CountObjects(page)):
        yield from _with_inner(raw.FPDFPage_GetObject(page, i), 1)


def _with_inner(item: object, depth: int) -> Iterator[object]:
    if not item:
        return
    yield item
    if depth < _MAX_DEPTH and raw.FPDFPageObj_GetType(item) == raw.FPDF_PAGEOBJ_FORM:
        for i in range(raw.FPDFFormObj_CountObjects(item)):
            yield from _with_inner(raw.FPDFFormObj_GetObject(item, i), depth + 1)


def _address(item: object) -> int:
    return ctypes.cast(item, ctypes.c_void_p).value or 0  # type: ignore[arg-type]  # a pointer of ctypes


def _is_white(item: object) -> bool:
    red, green, blue, alpha = (ctypes.c_uint() for _ in range(4))
    if not raw.FPDFPageObj_GetFillColor(item, red, green, blue, alpha):
        return False
    return alpha.value == 0 or min(red.value, green.value, blue.value) >= _MIN_WHITE


def _is_tiny(item: object) -> bool:
    size = ctypes.c_float()
    matrix = raw.FS_MATRIX()
    if not raw.FPDFTextObj_GetFontSize(item, size) or not raw.FPDFPageObj_GetMatrix(item, matrix):
        return False
    scale = math.sqrt(abs(matrix.a * matrix.d - matrix.b * matrix.c))
    if not 0 < size.value * scale < _MIN_FONT_SIZE:
        return False
    left, bottom, right, top = _bounds(item)
    # Spaces are often of no size, and hide nothing.
    return left < right and bottom < top


def _bounds(item: object) -> _Box:
    left, bottom, right, top = (ctypes.c_float() for _ in range(4))
    if not raw.FPDFPageObj_GetBounds(item, left, bottom, right, top):
        return 0.0, 0.0, 0.0, 0.0
    return left.value, bottom.value, right.value, top.value


def _overlap(one: _Box, other: _Box) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]
