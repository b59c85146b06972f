"""Each sentence's passages are found by overlap and checked in code."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from passages import passage, stored

from inglenook.app.answers.citations import (
    attach,
    is_supported,
    shown_citations,
    verified_ranges,
    with_checked_only,
)
from inglenook.app.answers.quoting import narrowed
from inglenook.storage.parsing.document import Rect
from inglenook.storage.records import FORGOTTEN, NewSource, Place

ZORB = passage("A note on Zorb. The tower of Zorb is 34 metres high. It is closed.", page=3)
MELL = passage("The tower of Mell is 57 metres high. Mara Voss built it in 1871.", page=5)


def cited(sources: list[NewSource]) -> list[NewSource]:
    return [source for source in sources if source.is_cited]


def test_a_sentence_is_given_its_passage_with_the_exact_place_of_the_quote() -> None:
    reply = "Well. The tower of Zorb is 34 metres high."

    (source,) = cited(attach(reply, [MELL, ZORB]))

    assert source.quote == "The tower of Zorb is 34 metres high."
    assert (source.place.page_index, source.place.page_label) == (3, "4")
    assert source.place.char_start == 100 + len("A note on Zorb. ")
    assert source.place.char_end - source.place.char_start == len(source.quote)
    assert source.answer_range is not None
    assert reply[slice(*source.answer_range)] == "The tower of Zorb is 34 metres high."
    assert verified_ranges(reply, [source]) == {source.answer_range: True}


def test_a_wrong_number_is_not_cited_and_the_passage_is_kept_as_found() -> None:
    reply = "The tower of Zorb is 35 metres high."

    sources = attach(reply, [ZORB, MELL])

    assert [(source.is_cited, source.place.page_index) for source in sources] == [(False, 3), (False, 5)]
    assert verified_ranges(reply, sources) == {}


def test_a_short_answer_is_read_with_its_question() -> None:
    # Both pages have the number; only one speaks of what was asked.
    other = passage("In Pell, 34 metres of rope are kept.", page=7)

    sources = attach("It is 34 metres.", [other, ZORB], "How high is the tower of Zorb?")

    assert [source.place.page_index for source in cited(sources)] == [3]


def test_a_sentence_without_support_has_no_citation() -> None:
    assert not cited(attach("I do not know. Bananas grow in Ecuador.", [ZORB, MELL]))


def test_a_sentence_that_joins_two_passages_cites_both_and_is_verified_by_them_together() -> None:
    reply = "Zorb has a tower of 34 metres, Mell has a tower of 57 metres."

    sources = attach(reply, [ZORB, MELL])

    assert {source.place.page_index for source in cited(sources)} == {3, 5}
    assert list(verified_ranges(reply, sources).values()) == [True]


def test_a_quote_grows_until_it_holds_what_the_passage_can_hold() -> None:
    (source,) = cited(attach("The tower of Mell, 57 metres high, is by Mara Voss.", [MELL]))

    assert source.quote == MELL.chunk.text


def test_passages_that_no_sentence_rests_on_are_kept_uncited() -> None:
    sources = attach("The tower of Zorb is 34 metres high.", [ZORB, MELL])

    assert [(source.is_cited, source.place.page_index) for source in sources] == [(True, 3), (False, 5)]
    assert sources[1].quote == MELL.chunk.text


def test_shown_citations_number_places_in_order_and_once() -> None:
    reply = (
        "The tower of Mell is 57 metres high. The tower of Zorb is 34 metres high. Mell's tower is 57 metres."
    )

    shown = shown_citations(reply, [stored(source) for source in attach(reply, [ZORB, MELL])])

    assert [(c.number, c.source.place.page_index, c.is_verified) for c in shown] == [
        (1, 5, True),
        (2, 3, True),
    ]


def test_a_forgotten_quote_verifies_nothing() -> None:
    reply = "The tower of Zorb is high."
    source = cited(attach(reply, [ZORB]))[0]

    (shown,) = shown_citations(reply, [stored(source, quote=FORGOTTEN)])

    assert not shown.is_verified


def test_what_an_older_program_cited_without_ground_is_shown_as_found() -> None:
    reply = "The tower of Zorb is 34 metres high. The tower of Mell is 99 metres high."
    good = stored(cited(attach(reply, [ZORB]))[0])
    bad = replace(good, id=2, answer_range=(37, len(reply)))
    forgotten = replace(bad, id=3, quote=FORGOTTEN, answer_range=(0, 36))

    checked = with_checked_only(reply, [good, bad])

    assert [(source.is_cited, source.answer_range) for source in checked] == [(True, (0, 36)), (False, None)]
    assert with_checked_only(reply, [forgotten])[0].is_cited


def test_lines_and_rectangles_are_narrowed_with_the_quote() -> None:
    rectangles = tuple(Rect(0.0, float(i), 1.0, float(i + 1)) for i in range(3))
    place = Place(0, None, 10, 25, first_line=7, last_line=9, rectangles=rectangles)

    part = narrowed(place, "one\ntwo\nthree", 4, 7)

    assert (part.char_start, part.char_end) == (14, 17)
    assert (part.first_line, part.last_line) == (8, 8)
    assert part.rectangles == rectangles[1:2]


@pytest.mark.parametrize("reply", ["", "   \n", "**", "1.", "?!"])
def test_a_reply_of_nothing_has_no_citations(reply: str) -> None:
    assert not cited(attach(reply, [ZORB]))


def test_without_passages_there_are_no_sources() -> None:
    assert attach("The tower of Zorb is 34 metres high.", []) == []


@given(st.text(max_size=300), st.lists(st.text(min_size=1, max_size=200), max_size=4))
def test_every_quote_is_a_stretch_of_its_passage_at_its_place(reply: str, texts: list[str]) -> None:
    passages = [passage(text, page=page) for page, text in enumerate(texts)]

    for source in attach(reply, passages, "a question"):
        text = texts[source.place.page_index]
        start, end = source.place.char_start - 100, source.place.char_end - 100
        assert source.quote == text[start:end]
        if source.is_cited:
            assert source.answer_range is not None
            assert reply[slice(*source.answer_range)]


def test_support_is_of_the_whole_sentence() -> None:
    assert is_supported("It was built by Mara Voss in 1871.", MELL.chunk.text)
    assert not is_supported("It was built by Mara Voss in 1872.", MELL.chunk.text)
    assert replace(MELL, score=0.0).chunk is MELL.chunk
