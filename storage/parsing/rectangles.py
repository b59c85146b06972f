"""Merge the rectangles of a passage's characters to one for each line."""

from __future__ import annotations

from collections.abc import Iterable

from inglenook.storage.parsing.document import Rect

# A gap wider than this many line heights is a gutter between columns or cells, not a space between words.
_MAX_GAP_HEIGHTS = 2.0

_Box = tuple[float, float, float, float]  # left, top, right, bottom, with either direction of y


def merge_lines(rects: Iterable[_Box], *, is_vertical: bool = False) -> tuple[Rect, ...]:
    """Join rectangles that follow one another on one line; order is kept, empty ones are left out.

    `is_vertical` says that the lines run up or down, as on a page that is displayed on its side.
    """
    if is_vertical:
        return tuple(map(_turned, merge_lines(map(_turned, rects))))
    merged: list[_Box] = []
    last: _Box | None = None
    for rect in rects:
        left, top, right, bottom = rect
        if right <= left or bottom <= top:
            continue
        if last is not None:
            last_left, last_top, last_right, last_bottom = last
            overlap = min(last_bottom, bottom) - max(last_top, top)
            gap = max(last_left, left) - min(last_right, right)
            height, last_height = bottom - top, last_bottom - last_top
            if overlap > min(height, last_height) / 2 and gap < _MAX_GAP_HEIGHTS * max(height, last_height):
                last = merged[-1] = (
                    min(last_left, left),
                    min(last_top, top),
                    max(last_right, right),
                    max(last_bottom, bottom),
                )
                continue
        last = rect
        merged.append(rect)
    return tuple(Rect(*rect) for rect in merged)


def _turned(rect: _Box) -> Rect:
    return Rect(rect[1], rect[0], rect[3], rect[2])
