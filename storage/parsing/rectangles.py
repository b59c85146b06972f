"""Merge the rectangles of a passage's characters to one for each line."""

from __future__ import annotations

from collections.abc import Iterable

from inglenook.storage.parsing.document import Rect

# A gap wider than this many line heights is a gutter between columns or cells, not a space between words.
_MAX_GAP_HEIGHTS = 2.0


def merge_lines(rects: Iterable[Rect], *, is_vertical: bool = False) -> tuple[Rect, ...]:
    """Join rectangles that follow one another on one line; order is kept, empty ones are left out.

    `is_vertical` says that the lines run up or down, as on a page that is displayed on its side.
    """
    if is_vertical:
        return tuple(map(_turned, merge_lines(map(_turned, rects))))
    merged: list[Rect] = []
    for rect in rects:
        if rect.right <= rect.left or rect.bottom <= rect.top:
            continue
        if merged and _is_same_line(merged[-1], rect):
            last = merged[-1]
            merged[-1] = Rect(
                min(last.left, rect.left),
                min(last.top, rect.top),
                max(last.right, rect.right),
                max(last.bottom, rect.bottom),
            )
        else:
            merged.append(rect)
    return tuple(merged)


def _is_same_line(first: Rect, second: Rect) -> bool:
    heights = (first.bottom - first.top, second.bottom - second.top)
    overlap = min(first.bottom, second.bottom) - max(first.top, second.top)
    gap = max(first.left, second.left) - min(first.right, second.right)
    return overlap > min(heights) / 2 and gap < _MAX_GAP_HEIGHTS * max(heights)


def _turned(rect: Rect) -> Rect:
    return Rect(rect.top, rect.left, rect.bottom, rect.right)
