"""Quotes are sentences, rows and items, never the headings above them."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from passages import passage

from inglenook.app.answers.citations import as_source, attach, verified_ranges
from inglenook.app.answers.quoting import QuotedPassage

CIRCUIT = (
    "The refrigerant circuit\nThe outdoor unit holds 1.2 kilograms of refrigerant R290.\nNever top it up.\n"
    "Electrical supply\nThe unit needs a fuse of 16 A."
)


@pytest.mark.parametrize(
    ("text", "reply", "quotes"),
    [
        (
            CIRCUIT,
            "The outdoor unit holds 1.2 kilograms of refrigerant R290.",
            ["The outdoor unit holds 1.2 kilograms of refrigerant R290."],
        ),
        (
            CIRCUIT,
            "It holds 1.2 kilograms of R290, and the unit needs a fuse of 16 A.",
            ["The outdoor unit holds 1.2 kilograms of refrigerant R290.", "The unit needs a fuse of 16 A."],
        ),
        (
            "Tools\nYou need, before you begin:\n- a spanner of 13 mm\n- two seals of 20 mm\n- grease",
            "You need a spanner of 13 mm.",
            ["- a spanner of 13 mm"],
        ),
        (
            "Results\nNet sales 14,694 13,967\nCost of sales 11,969 11,724\nGross profit 2,725 2,243",
            "The gross profit was 2,725.",
            ["Gross profit 2,725 2,243"],
        ),
        ("Year | Sales\n2019 | 12\n2020 | 15", "Sales in 2020 were 15.", ["2020 | 15"]),
    ],
)
def test_quotes_hold_what_is_claimed_and_no_heading(text: str, reply: str, quotes: list[str]) -> None:
    sources = [source for source in attach(reply, [passage(text)]) if source.is_cited]

    assert sorted(source.quote for source in sources) == sorted(quotes)
    assert all(verified_ranges(reply, sources).values())


def test_known_headings_are_never_quoted_however_they_are_marked() -> None:
    hit = passage("## Zorb & Sons ##\nfounded in 1871\n\nThe mill was closed in 1901.")
    hit = replace(hit, chunk=replace(hit.chunk, heading_path=("Firms", "Zorb & Sons")))

    for reply in ("Zorb & Sons was founded in 1871.", "Zorb & Sons closed the mill in 1901."):
        sources = [source for source in attach(reply, [hit]) if source.is_cited]

        assert not any("Zorb" in source.quote for source in sources)
        assert {source.heading for source in sources} == {"Firms\nZorb & Sons"}
        # The name stands in the heading, which counts as ground.
        assert verified_ranges(reply, sources) == {(0, len(reply)): True}


def test_heading_kept_is_the_one_that_the_quote_stands_under() -> None:
    quoted = QuotedPassage(passage(CIRCUIT))

    (supply,) = quoted.quotes("A fuse of 16 A.")

    assert quoted.heading(supply[0]) == "Electrical supply"
    assert quoted.heading(CIRCUIT.index("Never")) == "The refrigerant circuit"
    assert quoted.heading(0) == ""


def test_whole_passage_is_quoted_without_the_heading_it_begins_with() -> None:
    source = as_source(passage(CIRCUIT, start=50))

    assert source.quote == CIRCUIT.removeprefix("The refrigerant circuit\n")
    assert source.place.char_start == 50 + len("The refrigerant circuit\n")
    assert source.heading == "The refrigerant circuit"
    assert as_source(passage("Only a title")).quote == "Only a title"


@given(st.text(alphabet="aB. \n|-1•:#", max_size=120), st.text(alphabet="aB1. ", max_size=30))
def test_every_quote_is_a_stretch_of_the_passage(text: str, sentence: str) -> None:
    quoted = QuotedPassage(passage(text))

    for start, end in (*quoted.quotes(sentence), quoted.whole()):
        assert 0 <= start <= end <= len(text)
        assert quoted.place((start, end)).char_end - quoted.place((start, end)).char_start == end - start
        quoted.heading(start)
