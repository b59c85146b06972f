"""Tables as groups of rows, each with the header above it."""

from __future__ import annotations

import pytest

from inglenook.storage.parsing.csv_rows import find_separator, row_groups
from inglenook.storage.parsing.document import ParsedPage


def groups(text: str, separator: str = ",", max_tokens: int = 1000) -> list[ParsedPage]:
    return list(
        row_groups(
            text, separator, count_tokens=lambda row: len(row.split()), max_tokens=max_tokens, max_chars=2000
        )
    )


@pytest.mark.parametrize(
    ("text", "is_named", "separator"),
    [
        ("a,b\n1,2\n", True, ","),
        ("a;b;c\n1,5;2,5;3,5\n", True, ";"),
        ("a\tb\n1\t2\n", True, "\t"),
        ("name|age\nAda|36\n", True, "|"),
        ("just one column\nand another\n", True, None),
        ("", True, None),
        ("a,b\n1,2\n", False, None),
        ("a,b,c\n" * 5, False, ","),
        ("Dear all, as you know,\nwe meet today.\n\nYours, truly, me,\nA\nB\n", False, None),
        ('id,text\n1,"x, y"\n2,"line\nbreak, too"\n', True, ","),
    ],
)
def test_the_separator_is_what_gives_equal_rows(text: str, is_named: bool, separator: str | None) -> None:
    assert find_separator(text, is_named=is_named) == separator


def test_every_group_repeats_the_header_and_knows_its_lines() -> None:
    text = "name,year\n" + "".join(f"person{i},{1900 + i}\n" for i in range(5))

    pages = groups(text, max_tokens=10)

    assert pages[0].text == "name | year\nperson0 | 1900"
    assert all(page.text.startswith("name | year\n") for page in pages)
    assert [(page.first_line, page.last_line) for page in pages] == [(2, 2), (3, 3), (4, 4), (5, 5), (6, 6)]


def test_quoted_line_breaks_and_blank_rows_keep_the_count_of_lines() -> None:
    pages = groups('a,b\n1,"x\ny"\n\n,\n2,z\n')

    assert [page.text for page in pages] == ["a | b\n1 | x y\n2 | z"]
    assert (pages[0].first_line, pages[0].last_line) == (2, 6)


def test_numbers_are_no_header_and_stay_as_they_are_written() -> None:
    pages = groups("1,123456789012345,007\n2,1e5,008\n")

    assert [page.text for page in pages] == ["1 | 123456789012345 | 007\n2 | 1e5 | 008"]


def test_a_header_alone_is_a_table_and_an_unclosed_quote_is_no_trouble() -> None:
    assert [page.text for page in groups("name,year\n")] == ["name | year"]
    assert groups('a,b\n1,"open\n2,3\n')[0].text == "a | b\n1 | open 2,3"
    assert groups("") == []
