"""A quotation that begins in one passage and ends in the next: passages are cut at a length, and pages where they end. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from inglenook.storage.parsing.quotes import find_quote
from inglenook.storage.records import Hit

Part = tuple[int, tuple[int, int]]
"""The index of a passage and the range of its text."""

_MOST_BETWEEN = 3


def spanning_parts(quotation: str, passages: Sequence[Hit]) -> list[Part]:
    """Return the end of one passage and the beginning of the one below it that say a quotation together; [] if none do."""
    for first, upper in enumerate(passages):
        for second, lower in enumerate(passages):
            cut = _cut(upper, lower)
            if cut is None:
                continue
            found = find_quote(f"{upper.chunk.text[:cut].rstrip()}\n{lower.chunk.text}", quotation)
            end_of_upper = len(upper.chunk.text[:cut].rstrip())
            if found is not None and found[0] < end_of_upper < found[1]:
                return [(first, (found[0], end_of_upper)), (second, (0, found[1] - end_of_upper - 1))]
    return []


def _cut(upper: Hit, lower: Hit) -> int | None:
    """Return where the text of `upper` ends that `lower` goes on with; they may overlap. None where it does not."""
    one, other = upper.chunk, lower.chunk
    if one.version_id != other.version_id:
        return None
    if other.place.page_index == one.place.page_index + 1:
        return len(one.text)
    start = other.place.char_start - one.place.char_start
    is_next = other.place.page_index == one.place.page_index and 0 < start <= len(one.text) + _MOST_BETWEEN
    return start if is_next else None
