"""Texts are cut into pages of whole lines, and keep their line numbers and headings."""

from __future__ import annotations

import time

import pytest

from inglenook.storage.parsing.plain_text import (
    PAGE_CHARS,
    Outline,
    TextPages,
    clean_text,
    find_headings,
)


def _pages(text: str) -> TextPages:
    return TextPages(text, Outline(find_headings(text)))


def test_line_ends_and_controls_are_unified() -> None:
    assert clean_text("a\r\nb\rc\x0cd\x00e\tf") == "a\nb\nc d e\tf"


def test_a_short_text_is_one_page() -> None:
    pages = _pages("one\ntwo\nthree\n\n")

    assert len(pages) == 1
    page = pages.page(0)
    assert (page.text, page.first_line, page.last_line) == ("one\ntwo\nthree", 1, 3)
    assert pages.lines(0, 4, 7) == (2, 2)
    assert pages.lines(0, 0, 5) == (1, 2)


def test_pages_end_at_blank_lines_and_number_lines_over_the_whole_file() -> None:
    paragraph = "\n".join(["a line of some words"] * 30)
    text = "\n\n".join([paragraph] * 20)
    pages = _pages(text)

    lines = text.split("\n")
    assert len(pages) > 2
    for index in range(len(pages)):
        page = pages.page(index)
        assert page.first_line is not None
        assert page.last_line is not None
        assert PAGE_CHARS / 2 < len(page.text) <= 2 * PAGE_CHARS or index == len(pages) - 1
        assert "\n".join(lines[page.first_line - 1 : page.last_line]).strip("\n") == page.text.strip("\n")


def test_a_line_without_end_is_cut() -> None:
    pages = _pages("x" * (5 * PAGE_CHARS))

    assert [len(pages.page(i).text) for i in range(len(pages))] == [
        2 * PAGE_CHARS,
        2 * PAGE_CHARS,
        PAGE_CHARS,
    ]
    assert pages.page(2).first_line == 1


def test_no_character_is_lost_between_pages() -> None:
    text = "\n".join(f"{'word ' * (i % 97)}{i}" for i in range(3000))
    pages = _pages(text)

    joined = "\n".join(pages.page(i).text for i in range(len(pages)))
    assert joined.split() == text.split()


def test_headings_are_found_outside_of_code() -> None:
    text = "# One #\ntext\n```sh\n# a comment\n```\n### Three  \n~~~\n# no\n```\n~~~\n#nospace\n## Two\n"

    assert [(h.level, h.title) for h in find_headings(text)] == [(1, "One"), (3, "Three"), (2, "Two")]


def test_a_place_knows_the_headings_above_it() -> None:
    text = "intro\n# A\n## B\ntext\n## C\n# D\n"
    outline = Outline(find_headings(text))

    assert outline.path_at(0) == ()
    assert outline.path_at(text.index("text")) == ("A", "B")
    assert outline.path_at(text.index("## C") + 3) == ("A", "C")
    assert outline.path_at(len(text)) == ("D",)


@pytest.mark.parametrize("line", ["#", "# " + "#" * 50, "`" * 50, " ", "# a" + " " * 50 + "x", "## a"])
def test_a_million_marks_take_no_time(line: str) -> None:
    text = clean_text(line * 20_000 + (line + "\n") * 20_000)

    # The claim is about work that grows with the length alone, so other programs on the machine do not count.
    started_s = time.process_time()
    _pages(text)

    assert time.process_time() - started_s < 3
