"""Guessing by looking up earlier text, and when it is worth its cost."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inglenook.engine.speculative.prompt_lookup import MAX_DRAFTS, PromptLookup


def free(number):
    return 0.0


def dear(number):
    """A processor that computes as fast as it reads: each draft takes two fifths of a step."""
    return 0.4 * number


def offer(text, cost=free):
    return PromptLookup().propose(text, cost)


def test_what_followed_the_latest_words_before_is_offered():
    assert offer([1, 2, 3, 4, 5, 6, 7, 2, 3, 4])[:4] == [5, 6, 7, 2]


def test_the_longest_match_decides_and_then_the_latest():
    assert offer([9, 2, 3, 4, 50, 51, 1, 2, 3, 4, 60, 61, 9, 2, 3, 4])[0] == 50
    assert offer([2, 3, 4, 50, 51, 2, 3, 4, 60, 61, 7, 2, 3, 4])[0] == 60


def test_nothing_is_offered_without_a_match_of_three():
    assert offer([1, 2, 3, 4]) == []
    assert offer([1, 2, 7, 1, 2]) == []
    assert offer([1]) == offer([]) == []


def test_a_period_goes_on_as_long_as_is_asked_for():
    assert offer([1, 2] * 4) == ([1, 2] * 8)[:MAX_DRAFTS]
    assert offer([5] * 6) == [5] * MAX_DRAFTS


def test_more_is_offered_the_longer_the_match_where_drafts_cost_time():
    lookup = PromptLookup()
    lookup.observe(15, 15, 0.0)  # the budget is there
    story = list(range(100))

    counts = [lookup._best_number(likelihood, dear) for likelihood in (0.45, 0.7, 0.95)]

    assert counts == sorted(counts)
    assert counts[0] < counts[-1]
    assert len(offer([*story, *story[20:40]], dear)) == 1  # the first budget pays for one


def test_an_offer_grows_as_guesses_come_true_and_ends_when_they_fail():
    story = list(range(300))
    lookup, text, sizes = PromptLookup(), [*story, *story[:12]], []
    for _ in range(12):
        guesses = lookup.propose(text, dear)
        sizes.append(len(guesses))
        lookup.observe(len(guesses), len(guesses), dear(len(guesses)))
        text += [*guesses, story[(text[-1] + len(guesses) + 1) % 300]]
    assert sizes[0] == 1
    assert max(sizes) >= 11

    wrong = 0
    for _ in range(20):
        text += story[100:112]
        guesses = lookup.propose(text, dear)
        wrong += bool(guesses)
        lookup.observe(len(guesses), 0, dear(len(guesses)))

    assert 1 <= wrong < 8


def decode(lookup, text, truth, cost):
    """Write `truth` after `text`; returns the time in steps without drafts."""
    time, written = 0.0, 0
    while written < len(truth):
        guesses = lookup.propose(text, cost)[: len(truth) - written - 1]
        accepted = 0
        while accepted < len(guesses) and guesses[accepted] == truth[written + accepted]:
            accepted += 1
        lookup.observe(len(guesses), accepted, cost(len(guesses)))
        time += 1 + cost(len(guesses))
        text += truth[written : written + accepted + 1]
        written += accepted + 1
    return time


@pytest.mark.parametrize("letters", [2, 3, 5, 24, 1000])
@pytest.mark.parametrize("price", [0.05, 0.2, 0.4, 1.0, 3.0])
def test_random_text_of_any_number_of_letters_is_written_as_fast_within_three_hundredths(letters, price):
    for seed in range(10):
        rng = random.Random(seed)
        prompt = [rng.randrange(letters) for _ in range(400)]
        truth = [rng.randrange(letters) for _ in range(192)]

        time = decode(PromptLookup(), prompt, truth, lambda number: price * number)

        assert time < 192 / 0.97


@given(
    text=st.lists(st.integers(0, 3), min_size=30, max_size=200),
    price=st.floats(0.01, 4),
    length=st.integers(32, 150),
)
def test_no_text_costs_more_than_the_budget(text, price, length):
    truth = (text * 6)[7 : 7 + length]

    time = decode(PromptLookup(), list(text), truth, lambda number: price * number)

    assert time <= length + 0.5 + 0.01 * length + 1e-6


def test_a_quotation_is_written_several_times_as_fast():
    rng = random.Random(0)
    passage = [rng.randrange(1000) for _ in range(1500)]

    time = decode(PromptLookup(), [*passage, 7, *passage[:20]], passage[20:212], lambda number: 0.15 * number)

    assert 192 / time > 2.5


def test_growing_text_gives_the_same_offers_as_whole_text():
    rng = random.Random(0)
    text = [rng.randrange(4) for _ in range(200)]
    growing = PromptLookup()

    for length in range(1, 200):
        assert growing.propose(text[:length], free) == offer(text[:length])


def test_a_long_prompt_is_looked_at_in_parts():
    text = [*range(10_000), 1, 2, 3, 9_001, 9_002, 9_003]
    lookup = PromptLookup()

    offers = [lookup.propose(text, free)[:1] for _ in range(3)]

    assert offers == [[], [], [9_004]]
