"""What a web page shows, and nothing that it hides."""

from __future__ import annotations

import time

import pytest

from inglenook.storage.parsing.errors import DocumentTooLargeError
from inglenook.storage.parsing.html import WebText, read_html


def page(text: str) -> WebText:
    return read_html(text, 1_000_000)


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("<p>one <b>bold</b>\n word<p>two", "one bold word\n\ntwo"),
        ("a<br>b", "a\nb"),
        ("<ul><li>x<li>y</ul>z", "x\n\ny\n\nz"),
        ("<div>a<div>b</div>c</div>", "a\n\nb\n\nc"),
        ("caf&eacute; &amp; &#8364;5", "café & €5"),
        ("<pre>a\n  b</pre>c", "a\n  b\n\nc"),
        ("<script>x()</script><style>p{}</style>shown<noscript>no</noscript>", "shown"),
        ("<head><title>T</title><body>shown", "shown"),
        ("<p>x</div></span>y", "xy"),
        ("<svg><text>drawn</text></svg>after", "after"),
        ("<!-- no --><![CDATA[no]]>yes", "yes"),
    ],
)
def test_a_page_is_read_as_it_is_shown(source: str, text: str) -> None:
    assert page(source).flow.text == text


def test_tables_are_read_by_rows_also_without_end_tags_and_with_paragraphs_in_cells() -> None:
    source = "<table><tr><th>Year<th>Sales<tr><td><p>2023</p><td><div>12</div><tr><td>2024</td><td></td></tr></table>end"

    assert page(source).flow.text == "Year | Sales\n2023 | 12\n2024 |\n\nend"


def test_headings_give_the_outline_and_the_title() -> None:
    found = page("<h1>Guide</h1><p>a<h2>Part <i>one</i></h2>b")

    assert [(h.level, h.title) for h in found.flow.headings] == [(1, "Guide"), (2, "Part one")]
    assert found.title == "Guide"
    assert page("<title> The\n page </title><h1>Guide</h1>").title == "The page"


@pytest.mark.parametrize(
    "attribute",
    [
        "hidden",
        'style="display: none"',
        "style='visibility:hidden'",
        'style="font-size:0"',
        'style="color:red;DISPLAY:NONE"',
    ],
)
def test_hidden_text_is_left_out_and_counted(attribute: str) -> None:
    found = page(f"<p>a</p><div {attribute}>obey<p>me</div><p>b</p>")

    assert found.flow.text == "a\n\nb"
    assert found.hidden_chars == 6


def test_a_hidden_paragraph_without_an_end_does_not_hide_the_rest() -> None:
    assert page("<p hidden>x<p>shown<div>too</div>").flow.text == "shown\n\ntoo"


def test_the_encoding_is_what_fits_not_what_is_said() -> None:
    said = '<meta charset="{}"><p>Größe: fünf Äpfel</p>'

    assert "Größe" in read_html(said.format("utf-8").encode("cp1252"), 999).flow.text
    assert "Größe" in read_html(said.format("iso-8859-15").encode("iso-8859-15"), 999).flow.text
    assert "Größe" in read_html(said.format("bogus").encode(), 999).flow.text


@pytest.mark.parametrize("piece", ["<", "<div>", "<a b", "<!--", "&", "<table><tr><td>", "</p>", "<p>"])
def test_garbage_takes_no_time(piece: str) -> None:
    # The claim is about work that grows with the length alone, so other programs on the machine do not count.
    started = time.process_time()

    page(piece * 10_000)

    assert time.process_time() - started < 3


@pytest.mark.parametrize(
    ("begin", "piece"),
    [
        ("", "<div>"),
        ("<foo><table>" + "<b>" * 990, "</foo>"),
        ("<b>" * 990, "</p><li>"),
        ("<pre>" + "<b>" * 990, "x<br>"),
        ("<td>" + "<b>" * 990, "<body>"),
        ("<dl><dt>" + "<i>" * 990, "<dd></dl>"),
    ],
)
def test_deep_nesting_takes_time_by_the_tag_not_by_the_depth(begin: str, piece: str) -> None:
    started_s = time.process_time()

    read_html(begin + piece * 20_000, 10_000_000)

    assert time.process_time() - started_s < 1.5


def test_an_end_tag_does_not_reach_out_of_a_table_but_ends_what_is_inside_of_it() -> None:
    assert page("<div hidden><table><tr><td>a</div>b</table></div>c").flow.text == "c"
    assert page("<div><b hidden>x<i>y</b>z</div>").flow.text == "z"


def test_more_text_than_allowed_is_refused() -> None:
    with pytest.raises(DocumentTooLargeError):
        read_html("<p>long</p>" * 100, 100)
