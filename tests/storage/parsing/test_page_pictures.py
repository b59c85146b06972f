"""Rectangles stand on the passage in the picture of its page: rotated, cropped, in columns, over two lines."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from inglenook.storage.parsing.client import ParserClient
from inglenook.storage.parsing.document import PagePicture, ParsingLimits, Rect
from inglenook.storage.parsing.errors import DamagedDocumentError, UnsupportedTypeError
from inglenook.storage.parsing.quotes import find_quote

MakePdf = Callable[..., Path]

SCALE = 2.0


def _is_dark(picture: PagePicture, x: int, y: int) -> bool:
    return picture.pixels[(y * picture.width + x) * 4] < 128


def _dark_box(picture: PagePicture, rect: Rect, margin: float) -> Rect | None:
    """Give the box, in points, of the dark pixels in a rectangle and a margin around it."""
    left, right = (round(v * picture.scale) for v in (rect.left - margin, rect.right + margin))
    top, bottom = (round(v * picture.scale) for v in (rect.top - margin, rect.bottom + margin))
    dark = [
        (x, y)
        for y in range(max(0, top), min(picture.height, bottom))
        for x in range(max(0, left), min(picture.width, right))
        if _is_dark(picture, x, y)
    ]
    if not dark:
        return None
    xs, ys = [x for x, _ in dark], [y for _, y in dark]
    scale = picture.scale
    return Rect(min(xs) / scale, min(ys) / scale, (max(xs) + 1) / scale, (max(ys) + 1) / scale)


def _overlap(first: Rect, second: Rect) -> float:
    """Give intersection over union."""

    def area(left: float, top: float, right: float, bottom: float) -> float:
        return max(0.0, right - left) * max(0.0, bottom - top)

    shared = area(
        max(first.left, second.left),
        max(first.top, second.top),
        min(first.right, second.right),
        min(first.bottom, second.bottom),
    )
    return shared / (area(*first) + area(*second) - shared)


def _picture(parser: ParserClient, path: Path, quote: str) -> PagePicture:
    document = parser.parse(path)
    place = find_quote(document.pages[0].text, quote)
    assert place is not None
    return parser.render_page(path, 0, scale=SCALE, highlight=place, sha256=document.sha256)


@pytest.mark.parametrize("rotate", [0, 90, 180, 270])
@pytest.mark.parametrize("crop", [None, (60, 100, 500, 760)])
def test_the_rectangle_sits_on_the_ink_of_the_passage(
    parser: ParserClient,
    make_pdf: MakePdf,
    page_spec: type,
    rotate: int,
    crop: tuple[float, float, float, float] | None,
) -> None:
    # The lone passage has no other ink near it, so its ink's box is known from the picture alone.
    lines = [(100, 700, "Another line at the top."), (180, 400, "HEEDLE PASSAGE"), (100, 150, "The end.")]
    path = make_pdf(page_spec(lines, rotate=rotate, crop=crop, font_size=20))

    picture = _picture(parser, path, "heedle passage")

    assert len(picture.rects) == 1
    ink = _dark_box(picture, picture.rects[0], 25)
    assert ink is not None
    assert _overlap(ink, picture.rects[0]) > 0.85


def test_the_picture_has_the_size_of_the_displayed_page(
    parser: ParserClient, make_pdf: MakePdf, page_spec: type
) -> None:
    path = make_pdf(page_spec([(100, 700, "Words.")], rotate=90, crop=(60, 100, 500, 760)))

    picture = parser.render_page(path, 0, scale=2)

    assert (picture.width, picture.height, picture.scale) == (1320, 880, 2)
    assert len(picture.pixels) == 1320 * 880 * 4
    page = parser.parse(path).pages[0]
    assert (page.width, page.height) == (660, 440)


def test_a_passage_over_two_lines_has_two_rectangles(
    parser: ParserClient, make_pdf: MakePdf, page_spec: type
) -> None:
    path = make_pdf(page_spec([(72, 700, "It crosses inter-"), (72, 684, "national borders.")]))

    picture = _picture(parser, path, "crosses international borders")

    assert len(picture.rects) == 2
    assert picture.rects[0].bottom <= picture.rects[1].top + 2
    assert all(_dark_box(picture, rect, 0) for rect in picture.rects)


def test_a_passage_in_a_column_does_not_reach_over_the_gutter(
    parser: ParserClient, make_pdf: MakePdf, page_spec: type
) -> None:
    left = [(72, 700 - 14 * i, f"Left line {i} goes on.") for i in range(5)]
    right = [(330, 700 - 14 * i, f"Right line {i} goes on.") for i in range(5)]

    picture = _picture(parser, make_pdf(page_spec(left + right)), "Left line 2 goes on. Left line 3 goes on.")

    assert len(picture.rects) == 2
    assert all(rect.right < 330 for rect in picture.rects)


def test_chunks_bring_the_rectangles_of_their_page(
    parser: ParserClient, make_pdf: MakePdf, page_spec: type
) -> None:
    path = make_pdf(page_spec([(72, 700, "First line of text."), (72, 684, "Second line of text.")]))
    (chunk,) = parser.parse(path).chunks

    picture = parser.render_page(path, 0, highlight=(chunk.start, chunk.end))

    assert chunk.rects == picture.rects
    assert len(chunk.rects) == 2


def test_a_giant_page_is_drawn_smaller(make_pdf: MakePdf, page_spec: type) -> None:
    path = make_pdf(page_spec([(72, 700, "Words.")], width=14_400, height=14_400))
    with ParserClient(limits=ParsingLimits(max_picture_pixels=1_000_000)) as client:
        picture = client.render_page(path, 0, scale=20)

    assert picture.width * picture.height <= 1_010_000
    assert picture.scale < 0.1


def test_a_page_that_is_not_there_is_refused(
    parser: ParserClient, make_pdf: MakePdf, page_spec: type
) -> None:
    with pytest.raises(DamagedDocumentError, match="1 pages, and page 8 was asked for"):
        parser.render_page(make_pdf(page_spec([(72, 700, "Words.")])), 7)


def test_a_text_has_no_picture(parser: ParserClient, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"words")

    with pytest.raises(UnsupportedTypeError, match="as text"):
        parser.render_page(tmp_path / "a.txt", 0)


def test_a_scale_out_of_range_is_a_fault_of_the_caller(parser: ParserClient, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"0\.05 to 20, got 100"):
        parser.render_page(tmp_path, 0, scale=100)


def test_a_passage_beyond_the_text_is_left_out(
    parser: ParserClient, make_pdf: MakePdf, page_spec: type
) -> None:
    path = make_pdf(page_spec([(72, 700, "Words.")]))

    assert parser.render_page(path, 0, highlight=(100, 200)).rects == ()
    assert len(parser.render_page(path, 0, highlight=(-5, 2000)).rects) == 1
