"""The calls of PDFium that are made for every object and letter of a page, with addresses in place of pointers.

ctypes makes an object for each typed pointer that is given or returned, which costs twice the call itself. An address
is a plain number. What a call writes goes into an array of the caller's, named by its address.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable

from pypdfium2 import raw  # type: ignore[import-untyped]  # it ships no types

_ADDRESS = ctypes.c_void_p
_INT = ctypes.c_int


def address_of(pointer: object) -> int:
    """Return the address that a typed pointer of pypdfium2 holds, 0 for none."""
    return ctypes.cast(pointer, _ADDRESS).value or 0  # type: ignore[arg-type]  # a pointer of ctypes


def _plain(function: object, result: type, *arguments: type) -> Callable[..., int]:
    return ctypes.CFUNCTYPE(result, *arguments)(address_of(function))


count_page_objects = _plain(raw.FPDFPage_CountObjects, _INT, _ADDRESS)
page_object = _plain(raw.FPDFPage_GetObject, _ADDRESS, _ADDRESS, _INT)
count_form_objects = _plain(raw.FPDFFormObj_CountObjects, _INT, _ADDRESS)
form_object = _plain(raw.FPDFFormObj_GetObject, _ADDRESS, _ADDRESS, ctypes.c_ulong)
object_type = _plain(raw.FPDFPageObj_GetType, _INT, _ADDRESS)
render_mode = _plain(raw.FPDFTextObj_GetTextRenderMode, _INT, _ADDRESS)
fill_color = _plain(raw.FPDFPageObj_GetFillColor, _INT, _ADDRESS, _ADDRESS, _ADDRESS, _ADDRESS, _ADDRESS)
font_size = _plain(raw.FPDFTextObj_GetFontSize, _INT, _ADDRESS, _ADDRESS)
object_matrix = _plain(raw.FPDFPageObj_GetMatrix, _INT, _ADDRESS, _ADDRESS)
object_bounds = _plain(raw.FPDFPageObj_GetBounds, _INT, _ADDRESS, _ADDRESS, _ADDRESS, _ADDRESS, _ADDRESS)
text_object = _plain(raw.FPDFText_GetTextObject, _ADDRESS, _ADDRESS, _INT)
text_rect = _plain(raw.FPDFText_GetRect, _INT, _ADDRESS, _INT, _ADDRESS, _ADDRESS, _ADDRESS, _ADDRESS)
text_unicode = _plain(raw.FPDFText_GetUnicode, ctypes.c_uint, _ADDRESS, _INT)

# Written anew by each call; PDFium is used by one thread.
_size = ctypes.c_float()
_matrix = (ctypes.c_float * 6)()


def em_of(item: int) -> float:
    """Return the size of a text object's font as it stands on the page, 0 where it has none."""
    if not font_size(item, ctypes.addressof(_size)) or not object_matrix(item, ctypes.addressof(_matrix)):
        return 0.0
    a, b, c, d, _, _ = _matrix
    return float(_size.value * math.sqrt(abs(a * d - b * c)))
