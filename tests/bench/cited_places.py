"""How well the rectangles of a citation lie on the sentence: pages from a generator that knows its boxes.

Each sentence is quoted as a citation does it: found on its page, and its range drawn by the parser. The figure is the
area that rectangles and boxes share, of the area that either covers.
"""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Sequence
from pathlib import Path

from placed_pdf import LAYOUTS, Box, write_placed

from inglenook.storage.parsing.client import ParserClient
from inglenook.storage.parsing.quotes import find_quote


def overlap(found: Sequence[Box], known: Sequence[Box]) -> float:
    """Return intersection over union of two lists of boxes, each without overlaps of its own."""
    shared = sum(
        max(0.0, min(a[2], b[2]) - max(a[0], b[0])) * max(0.0, min(a[3], b[3]) - max(a[1], b[1]))
        for a in found
        for b in known
    )
    area = sum((box[2] - box[0]) * (box[3] - box[1]) for box in (*found, *known))
    return shared / (area - shared) if area > shared else 0.0


def place_figures(per_page: int = 3) -> dict[str, object]:
    """Measure `per_page` sentences of each layout."""
    values: dict[int, list[float]] = {}
    with tempfile.TemporaryDirectory() as folder, ParserClient() as parser:
        path = Path(folder) / "placed.pdf"
        sentences = write_placed(path)
        pages = parser.parse(path).pages
        for page_index in range(len(LAYOUTS)):
            own = [sentence for sentence in sentences if sentence.page_index == page_index]
            for sentence in own[:: max(1, len(own) // per_page)]:
                found = find_quote(pages[page_index].text, sentence.text)
                if found is None:
                    values.setdefault(page_index, []).append(0.0)
                    continue
                picture = parser.render_page(path, page_index, scale=0.2, highlight=found)
                values.setdefault(page_index, []).append(overlap(picture.rects, sentence.boxes))
    every = [value for each in values.values() for value in each]
    worst = min(values, key=lambda page: min(values[page]))
    return {
        "places": len(every),
        "iou_mean": round(statistics.mean(every), 3),
        "iou_least": round(min(every), 3),
        "iou_worst_layout": str(LAYOUTS[worst]),
    }
