"""Where a passage stands is known on pages that are rotated, cropped, in columns, or set sideways."""

from __future__ import annotations

from pathlib import Path

import pytest
from cited_places import overlap
from placed_pdf import LAYOUTS, write_placed
from small_pdf import pdf_file

from inglenook.storage.parsing.client import ParserClient
from inglenook.storage.parsing.quotes import find_quote

_DIRECTIONS = {"right": "1 0 0 1", "up": "0 1 -1 0", "left": "-1 0 0 -1", "down": "0 -1 1 0"}


def test_a_sentence_is_marked_where_it_stands_in_every_layout(tmp_path: Path, parser: ParserClient) -> None:
    path = tmp_path / "placed.pdf"
    sentences = write_placed(path)

    pages = parser.parse(path).pages

    for page in pages:
        sentence = next(s for s in sentences if s.page_index == page.index and len(s.boxes) > 1)
        found = find_quote(page.text, sentence.text)
        assert found is not None, LAYOUTS[page.index]
        picture = parser.render_page(path, page.index, scale=0.2, highlight=found)
        assert overlap(picture.rects, sentence.boxes) > 0.85, LAYOUTS[page.index]


@pytest.mark.parametrize("rotate", [0, 90, 180, 270])
@pytest.mark.parametrize("direction", _DIRECTIONS)
def test_text_is_read_from_its_beginning_whichever_way_it_runs(
    tmp_path: Path, parser: ParserClient, rotate: int, direction: str
) -> None:
    path = tmp_path / "sideways.pdf"
    matrix = _DIRECTIONS[direction]
    content = (
        f"BT /F1 10 Tf {matrix} 300 300 Tm (The tower of Zorb is high.) Tj ET "
        f"BT /F1 10 Tf {matrix} 340 340 Tm (None is higher.) Tj ET"
    )
    _write(path, content.encode(), rotate)

    document = parser.parse(path)

    assert document.pages[0].text.splitlines() == ["The tower of Zorb is high.", "None is higher."]
    first = document.chunks[0].rects[0]
    assert sorted((first.right - first.left, first.bottom - first.top)) == pytest.approx([9, 154], abs=1)


def _write(path: Path, content: bytes, rotate: int) -> None:
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Count 1 /Kids [4 0 R] >>",
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Courier >>",
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Rotate %d /Contents 5 0 R "
        b"/Resources << /Font << /F1 3 0 R >> >> >>" % rotate,
        b"<< /Length %d >>\nstream\n%s\nendstream" % (len(content), content),
    ]
    path.write_bytes(pdf_file(objects))
