"""What a step of so many rows takes, as measured while working."""

import random

import pytest

from inglenook.engine.step_cost import StepCost


def known(**seconds):
    cost = StepCost()
    for rows, value in seconds.items():
        cost.observe(int(rows[1:]), value)
    return cost


def test_times_between_known_ones_are_interpolated_and_beyond_them_the_line_goes_on():
    cost = known(n5=3.0, n1=1.0)

    assert cost.ratio(3, 1) == 2.0
    assert cost.ratio(9, 1) == 5.0
    assert cost.delay(9, 1) == 4.0


def test_a_row_that_was_never_measured_is_thought_to_be_cheap_so_that_it_is_tried():
    assert StepCost().delay(2, 1) == 0.25
    assert StepCost().delay(10, 8) == 0.5
    assert known(n4=2.0).delay(6, 4) == 0.5


def test_below_all_that_is_known_the_line_goes_on_but_never_beneath_a_rows_share():
    cost = known(n2=2.0, n3=3.9)

    assert cost.ratio(2, 1) == 2.0


def test_more_rows_are_never_thought_to_be_faster():
    assert known(n1=1.0, n5=0.8).ratio(5, 1) == 1.0
    assert known(n1=1.0, n5=0.8).delay(9, 1) == 0.0


def test_a_single_outlier_moves_an_average_little():
    cost = known(n1=1.0, n5=2.0)

    cost.observe(5, 100.0)

    assert 2.0 < cost.ratio(5, 1) < 2.2


@pytest.mark.parametrize("slower", [0.3, 1.0, 4.0])
def test_ratios_are_learnt_while_all_times_drift(slower):
    """A context grows, or another program takes the processor: what is seldom measured must not stay behind."""
    rng, cost = random.Random(1), StepCost()
    true = {1: 1.0, 5: 1.6, 16: 3.0}
    for rows, seconds in true.items():
        cost.observe(rows, seconds)
    for number in range(200):
        drift = 1 + (slower - 1) * number / 200
        rows = rng.choice([1] * 8 + [5])
        cost.observe(rows, true[rows] * drift * rng.uniform(0.9, 1.1))

    assert cost.ratio(5, 1) == pytest.approx(1.6, rel=0.2)
    assert cost.ratio(16, 1) == pytest.approx(3.0, rel=0.4)
