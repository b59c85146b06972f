"""A quotation is found although its passage ends in the middle of it."""

from __future__ import annotations

import pytest
from passages import passage

from inglenook.app.answers.citations import attach, verified_ranges
from inglenook.storage.records import Hit

PAGE = (
    "The charter was read. No ship of the harbour may leave at night without a lamp at the bow. All agreed."
)
CUT = PAGE.index("may leave")
QUESTION = "What does the charter say of ships?"
REPLY = 'It says "No ship of the harbour may leave at night without a lamp".'


def cut_at(first_end: int, second_start: int) -> list[Hit]:
    """The page in two passages of one page."""
    first = passage(PAGE[:first_end].rstrip(), page=1, start=0)
    second = passage(PAGE[second_start:], page=1, start=second_start)
    return [second, first]


@pytest.mark.parametrize(
    "hits",
    [
        cut_at(CUT, CUT),
        cut_at(CUT + 9, CUT - 20),
        [passage(PAGE[:CUT], page=1), passage(PAGE[CUT:], page=2)],
        [passage("Something else.", page=0), passage(PAGE[CUT:], page=2), passage(PAGE[:CUT], page=1)],
    ],
)
def test_both_halves_of_a_quotation_are_cited_and_verified(hits: list[Hit]) -> None:
    cited = [source for source in attach(REPLY, hits, QUESTION) if source.is_cited]

    said = " ".join(" ".join(source.quote.split()) for source in cited)
    assert said == "No ship of the harbour may leave at night without a lamp"
    assert list(verified_ranges(REPLY, cited).values()) == [True]


@pytest.mark.parametrize(
    "hits",
    [
        [passage(PAGE[CUT:], page=1), passage(PAGE[:CUT], page=2)],
        [passage(PAGE[:CUT], page=1), passage(PAGE[CUT:], page=5)],
        [passage(PAGE[:CUT], page=1), passage(PAGE[CUT:], page=2, document=2)],
        [passage(PAGE[:CUT], page=1, start=0), passage(PAGE[CUT:], page=1, start=900)],
    ],
)
def test_halves_that_do_not_follow_each_other_are_no_quotation(hits: list[Hit]) -> None:
    assert not any(source.is_cited for source in attach(REPLY, hits, QUESTION))
