"""What a sentence claims, and whether a text holds it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inglenook.app.answers.claims import Ground, claims_of, readings, terms


@pytest.mark.parametrize(
    ("sentence", "numbers", "names", "quotations"),
    [
        ("The tower is 34 metres high.", ("34",), (), ()),
        ("Mara Voss built it in 1,204 days.", ("1,204",), ("Voss",), ()),
        ("It was built by Mara Voss.", (), ("Mara", "Voss"), ()),
        ("1. **Paris** is the capital.", (), (), ()),
        ('He wrote "no entry after dark" there.', (), (), ("no entry after dark",)),
        ("The A4 paper costs 5kg.", ("5",), ("A4",), ()),
        ("I think I'm done.", (), (), ()),
        ("", (), (), ()),
    ],
)
def test_numbers_names_and_quotations_are_found(
    sentence: str, numbers: tuple[str, ...], names: tuple[str, ...], quotations: tuple[str, ...]
) -> None:
    claims = claims_of(sentence)

    assert (claims.names, claims.quotations) == (names, quotations)
    assert tuple(n for n in claims.numbers if n in numbers) == numbers


@pytest.mark.parametrize(
    ("sentence", "text"),
    [
        ("It has 1,234 pages.", "There are 1234 pages."),
        ("It has 1234 pages.", "Es hat 1.234 Seiten."),
        ("It costs 3.50.", "Preis: 3,50 Euro"),
        ("It has 3 doors.", "It has three doors."),
        ("It was the 21st.", "on the 21st of May"),
        ("Written by José Álvarez.", "jose alvarez wrote it"),
        ('It says "a  quiet—place".', "In it stands: a quiet-place."),
        ("The towers of Zorb stand.", "Zorb's towers"),
        ("It weighs 5 kg.", "a weight of 5kg"),
    ],
)
def test_the_same_claim_in_another_writing_is_held(sentence: str, text: str) -> None:
    assert Ground(text).missing(claims_of(sentence)).count == 0


@pytest.mark.parametrize(
    ("sentence", "text"),
    [
        ("It has 35 doors.", "It has 34 doors."),
        ("It costs 3.51.", "It costs 3.50."),
        ("It was built by Voss.", "It was built by Vossen."),
        ('It says "no entry after dark".', "Entry is allowed after dark."),
        ("It opened in 1990.", "It opened in 19901."),
    ],
)
def test_another_claim_is_missing(sentence: str, text: str) -> None:
    assert Ground(text).missing(claims_of(sentence)).count == 1


@given(st.integers(0, 10**12))
def test_a_number_is_read_with_and_without_separators(number: int) -> None:
    assert readings(f"{number:,}") & readings(str(number))


@given(st.text(max_size=200), st.text(max_size=200))
def test_any_text_has_claims_and_holds_its_own(sentence: str, text: str) -> None:
    claims = claims_of(sentence)

    assert Ground(text).missing(claims).count <= claims.count
    assert terms(sentence) is not None


def test_words_without_weight_are_no_terms_and_endings_are_cut() -> None:
    assert terms("The bridges of the document were closed.") == {"bridg", "clos"}
