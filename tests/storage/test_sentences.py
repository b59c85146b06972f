"""Sentences, headings, list items and rows are parted; the lines of a paragraph are not."""

from __future__ import annotations

import time
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inglenook.storage.sentences import is_heading, is_row, split_reply, split_sentences


def parts(text: str) -> list[str]:
    return [text[start:end] for start, end in split_sentences(text, 0, len(text))]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # Headings
        (
            "The refrigerant circuit\nThe outdoor unit holds 1.2 kilograms of refrigerant R290.\nNever top it up.",
            ["The refrigerant circuit", "The outdoor unit holds 1.2 kilograms of refrigerant R290.", "Never top it up."],
        ),
        (
            "3. Maintenance\nFilters\nClean the filter twice a year with lukewarm water.",
            ["3. Maintenance", "Filters", "Clean the filter twice a year with lukewarm water."],
        ),
        (
            "Wartung\nReinigen Sie den Filter zweimal im Jahr mit lauwarmem Wasser.",
            ["Wartung", "Reinigen Sie den Filter zweimal im Jahr mit lauwarmem Wasser."],
        ),
        ("保养\n每年用温水清洗过滤器两次，不要使用肥皂。", ["保养", "每年用温水清洗过滤器两次，不要使用肥皂。"]),
        ("الصيانة\nنظف المرشح مرتين في السنة بالماء الفاتر دون صابون.", ["الصيانة", "نظف المرشح مرتين في السنة بالماء الفاتر دون صابون."]),
        ("# Birds\nherons", ["# Birds", "herons"]),
        # List items
        (
            "You need:\n- a spanner of 13 mm\n- two seals\n• grease",
            ["You need:", "- a spanner of 13 mm", "- two seals", "• grease"],
        ),
        ("1. Open the valve\n2. Close it again\n", ["1. Open the valve", "2. Close it again"]),
        ("a) Open the valve\nb) Close it", ["a) Open the valve", "b) Close it"]),
        # Rows of tables
        ("Year | Sales\n2019 | 12\n2020 | 15", ["Year | Sales", "2019 | 12", "2020 | 15"]),
        ("name\tage\nAda\t36", ["name\tage", "Ada\t36"]),
        (
            "Net sales 14,694 13,967\nCost of sales (11,969) (11,724)\nGross profit 2,725 2,243",
            ["Net sales 14,694 13,967", "Cost of sales (11,969) (11,724)", "Gross profit 2,725 2,243"],
        ),
    ],
)  # fmt: skip
def test_lines_that_end_on_purpose_are_parted(text: str, expected: list[str]) -> None:
    assert parts(text) == expected


@pytest.mark.parametrize(
    "paragraph",
    [
        "The outdoor unit of the pump holds rather\nmore refrigerant than the one of the older\nModel did, and weighs less.",
        "It was built by the firm of\nBraithwaite and Sons of Lower Zorb in the\nCounty of Mell, where it stood until 1901.",
        "Der Filter sitzt unter der Haube und wird\nMonat für Monat mit lauwarmem Wasser und\nSeife gereinigt.",
        "the sales grew to 1,200 in 2019 and to\n1,400 in 2020, and have fallen since",
        "The Treaty (signed in Paris, London and\nVienna) ended the war.",
    ],
)
def test_lines_of_a_paragraph_are_not(paragraph: str) -> None:
    assert parts(paragraph) == [paragraph]


def test_every_line_of_a_reply_is_meant() -> None:
    reply = "It holds:\nR290, and\n1.2 kg of it. Never\ntop it up"

    assert [reply[a:b] for a, b in split_reply(reply, 0, len(reply))] == [
        "It holds:", "R290, and", "1.2 kg of it.", "Never", "top it up",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Safety\nKeep children away from the unit.", True),
        ("3. Maintenance\nClean the filter twice a year.", True),
        ("Safety", False),
        ("Keep children away.\nSafety", False),
        ("- a spanner\n- two seals", False),
        ("1. Open the valve\n2. Close it", False),
        ("Net sales 14,694 13,967\nCost of sales 11,969 11,724", False),
        ("2019\nIt was a good year for the works.", False),
        ("You need:\na spanner of 13 mm", False),
        ("founded in 1871\nThe mill was closed in 1901.", False),
    ],
)
def test_heading_is_a_short_line_with_something_below(text: str, expected: bool) -> None:
    end = text.find("\n") if "\n" in text else len(text)

    assert is_heading(text, 0, end) is expected


def test_row_has_cells_or_numbers_at_its_end() -> None:
    assert is_row("Ada | 36")
    assert is_row("Net sales $14,694 (13,967)")
    assert not is_row("It rose from 3 to 5.")
    assert not is_row("Chapter 3")


@given(st.text(alphabet="aB. \n|-1•。:#", max_size=200))
def test_parts_are_ranges_in_order_that_leave_out_only_white_space(text: str) -> None:
    ranges = list(split_sentences(text, 0, len(text)))

    assert "".join("".join(text[a:b].split()) for a, b in ranges) == "".join(text.split())
    assert all(a < b for a, b in ranges)
    assert all(b <= c for (_, b), (c, _) in pairwise(ranges))


@pytest.mark.parametrize(
    "text", ["word\n" * 40_000, "a" * 400_000, "Aa\n" * 100_000, " | \n" * 50_000, "1 " * 200_000]
)
def test_long_texts_take_time_by_their_length_alone(text: str) -> None:
    started = time.process_time()

    assert list(split_sentences(text, 0, len(text)))

    assert time.process_time() - started < 5
