"""PDFs of which it is known where every sentence stands: rotated, cropped, in two columns, and all of these.

Text is set in Courier, whose letters are all .6 of the font's size wide, so a box needs no font file: from the start of
the sentence to its end, and from the depth of a "g" to the height of a "T" (.157 and .629 in Courier's own metrics,
taken as .2 and .7 to be those of a common font). Boxes are given in points of the page as it is displayed.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from pathlib import Path

from small_pdf import pdf_file

Box = tuple[float, float, float, float]  # left, top, right, bottom as displayed

WIDTH, HEIGHT = 612.0, 792.0
SIZE = 10.0
_CHAR, _ASCENT, _DESCENT, _LEADING = 0.6 * SIZE, 0.7 * SIZE, 0.2 * SIZE, 16.0
_WORDS = "the grey heron stands quietly by Zorb's mill, waiting for young eels among yellow flags".split()  # noqa: SIM905


@dataclass(frozen=True, slots=True)
class PlacedSentence:
    """A sentence of a page and the boxes of its lines."""

    page_index: int
    text: str
    boxes: tuple[Box, ...]


@dataclass(frozen=True, slots=True)
class Layout:
    """How a page is laid out: rotation in degrees, what is cropped off (left, bottom, right, top), columns."""

    rotate: int = 0
    crop: Box | None = None
    columns: int = 1


LAYOUTS = tuple(
    Layout(rotate, crop, columns)
    for rotate in (0, 90, 180, 270)
    for crop in (None, (40.0, 60.0, 590.0, 760.0))
    for columns in (1, 2)
)


def write_placed(path: Path, layouts: tuple[Layout, ...] = LAYOUTS, seed: int = 0) -> list[PlacedSentence]:
    """Write one page for each layout, full of sentences; return where each stands."""
    rng = random.Random(seed)
    bodies: list[bytes] = []
    sentences: list[PlacedSentence] = []
    for page_index, layout in enumerate(layouts):
        shown: list[bytes] = []
        number = 0
        for column in range(layout.columns):
            # Columns of some 36 letters with a gutter, or one of 74.
            x0, letters = (76.0, 74) if layout.columns == 1 else (76.0 + column * 250.0, 36)
            line, row = "", 0
            parts: dict[int, list[tuple[int, int, int]]] = {}
            texts: dict[int, str] = {}
            lines: list[str] = []
            for _ in range(9):
                number += 1
                words = [f"S{page_index}x{number}", *rng.choices(_WORDS, k=rng.randint(6, 14))]
                texts[number] = " ".join(words) + "."
                for word in texts[number].split(" "):
                    if line and len(line) + 1 + len(word) > letters:
                        lines.append(line)
                        line, row = "", row + 1
                    start = len(line) + 1 if line else 0
                    line = f"{line} {word}" if line else word
                    pieces = parts.setdefault(number, [])
                    if pieces and pieces[-1][0] == row:
                        pieces[-1] = (row, pieces[-1][1], len(line))
                    else:
                        pieces.append((row, start, len(line)))
            lines.append(line)
            shown += [
                b"BT /F1 %g Tf 1 0 0 1 %g %g Tm (%s) Tj ET"
                % (SIZE, x0, 730 - _LEADING * i, text.encode("ascii"))
                for i, text in enumerate(lines)
            ]
            for which, pieces in parts.items():
                boxes = [
                    (
                        x0 + _CHAR * a,
                        730 - _LEADING * r - _DESCENT,
                        x0 + _CHAR * b,
                        730 - _LEADING * r + _ASCENT,
                    )
                    for r, a, b in pieces
                ]
                sentences.append(
                    PlacedSentence(page_index, texts[which], tuple(_displayed(box, layout) for box in boxes))
                )
        bodies.append(b"\n".join(shown))
    _write(path, bodies, layouts)
    return sentences


def _displayed(box: Box, layout: Layout) -> Box:
    """Turn a box of the page's own coordinates (left, bottom, right, top) into one of the displayed page."""
    left, bottom, right, top = layout.crop or (0.0, 0.0, WIDTH, HEIGHT)
    x0, y0, x1, y1 = box[0] - left, box[1] - bottom, box[2] - left, box[3] - bottom
    width, height = right - left, top - bottom
    if layout.rotate == 90:
        return y0, x0, y1, x1
    if layout.rotate == 180:
        return width - x1, y0, width - x0, y1
    if layout.rotate == 270:
        return height - y1, width - x1, height - y0, width - x0
    return x0, height - y1, x1, height - y0


def _write(path: Path, bodies: list[bytes], layouts: tuple[Layout, ...]) -> None:
    kids = b" ".join(b"%d 0 R" % (4 + 2 * i) for i in range(len(bodies)))
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Count %d /Kids [%s] >>" % (len(bodies), kids),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Courier /Encoding /WinAnsiEncoding >>",
    ]
    for i, (body, layout) in enumerate(zip(bodies, layouts, strict=True)):
        crop = b" /CropBox [%g %g %g %g]" % layout.crop if layout.crop else b""
        objects.append(
            b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 %g %g]%s /Rotate %d /Contents %d 0 R "
            b"/Resources << /Font << /F1 3 0 R >> >> >>" % (WIDTH, HEIGHT, crop, layout.rotate, 5 + 2 * i)
        )
        objects.append(b"<< /Length %d >>\nstream\n%s\nendstream" % (len(body), body))
    path.write_bytes(pdf_file(objects))
