"""A long conversation in parts: whole turns where they fit, and nothing lost where they do not."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from inglenook.app.context.summary_parts import parts_of


@given(st.lists(st.text("ab \n", max_size=400), max_size=12), st.integers(64, 300))
def test_nothing_is_lost_and_every_part_fits(texts: list[str], room: int) -> None:
    parts = parts_of(texts, room, len)

    letters = [character for character in "".join(texts) if character in "ab"]
    assert [character for character in "".join(parts) if character in "ab"] == letters
    assert all(len(part) <= max(room, 2 * 64) for part in parts)


def test_turns_stay_whole_and_as_few_parts_are_made_as_may_be() -> None:
    assert parts_of(["a" * 30, "b" * 30, "c" * 30], 62, len) == [f"{'a' * 30}\n\n{'b' * 30}", "c" * 30]


def test_a_turn_longer_than_a_part_is_cut_between_words() -> None:
    parts = parts_of(["word " * 200], 300, len)

    assert len(parts) == 4
    assert all(part.startswith("word ") and part.endswith("word ") for part in parts)
