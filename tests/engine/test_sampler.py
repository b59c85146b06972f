"""Choosing a token from logits."""

import math

import numpy as np
import pytest
import torch

from inglenook.engine.errors import ModelFileError
from inglenook.engine.request import SamplingParams
from inglenook.engine.sampler import sample
from inglenook.kernels.gumbel import gumbel_noise


def draw(logits, *, position=0, seed=0, **params):
    return sample(torch.tensor(logits), SamplingParams(**params), seed=seed, choice=0, position=position)


def drawn(logits, count=400, **params):
    return {draw(logits, position=p, **params) for p in range(count)}


def of(*probabilities):
    return [math.log(p) for p in probabilities]


@pytest.mark.parametrize("temperature", [0, 1e-6])
def test_a_temperature_near_zero_takes_the_best_token(temperature):
    assert draw([0.0, 3.0, 1.0], temperature=temperature) == 1


def test_equal_scores_go_to_the_lowest_id():
    assert draw([1.0, 5.0, 5.0, 5.0], temperature=0) == 1


def test_a_tiny_temperature_does_not_overflow():
    assert drawn([60000.0, 59999.0, -60000.0], temperature=1e-4) == {0}


def test_top_k_keeps_exactly_k_of_equal_scores_lowest_ids_first():
    assert drawn([1.0, 1.0, 1.0, 1.0], temperature=1, top_k=2) == {0, 1}


def test_top_p_keeps_the_token_that_crosses_it():
    assert drawn(of(0.5, 0.3, 0.15, 0.05), temperature=1, top_p=0.6) == {0, 1}


def test_top_p_always_keeps_one():
    assert drawn(of(0.5, 0.3, 0.2), temperature=1, top_p=0.01) == {0}


def test_min_p_is_relative_to_the_best_token():
    assert drawn(of(0.5, 0.3, 0.15, 0.05), temperature=1, min_p=0.25) == {0, 1, 2}


def test_filters_that_reach_beyond_the_first_candidates_are_exact():
    flat = [0.0] * 3000

    assert len(drawn(flat, count=800, temperature=1, top_p=0.9)) > 550
    assert max(drawn(flat, count=800, temperature=1, top_p=0.5)) < 1501


def test_forbidden_tokens_are_never_drawn():
    assert drawn([-math.inf, 0.0, -math.inf, 0.0], temperature=5) == {1, 3}


def test_the_same_key_draws_the_same_token_and_other_positions_draw_others():
    flat = [0.0] * 50
    first = [draw(flat, position=p, temperature=1, seed=3) for p in range(20)]

    assert first == [draw(flat, position=p, temperature=1, seed=3) for p in range(20)]
    assert len(set(first)) > 5
    assert first != [draw(flat, position=p, temperature=1, seed=4) for p in range(20)]


@pytest.mark.parametrize("bad", [[math.nan, 1.0], [1.0, math.inf], [-math.inf, -math.inf]])
def test_logits_that_are_not_numbers_are_refused(bad):
    for temperature in (0, 1):
        with pytest.raises(ModelFileError, match="not numbers"):
            draw(bad, temperature=temperature)


@pytest.mark.parametrize("params", [{}, {"top_k": 5}, {"top_p": 0.9}, {"min_p": 0.05}])
@pytest.mark.slow
def test_draws_follow_the_softmax_by_chi_square(params):
    generator = np.random.default_rng(1)
    logits = generator.normal(size=8).astype(np.float32)
    temperature, count = 0.8, 8_000
    probabilities = np.exp(logits.astype(np.float64) / temperature)
    probabilities /= probabilities.sum()
    order = np.argsort(-probabilities)
    keep = np.ones(8, bool)
    if "top_k" in params:
        keep[order[5:]] = False
    if "top_p" in params:
        keep[order[np.cumsum(probabilities[order]) - probabilities[order] >= 0.9]] = False
    if "min_p" in params:
        keep &= probabilities >= 0.05 * probabilities.max()
    expected = np.where(keep, probabilities, 0)
    expected /= expected.sum()

    tokens = [draw(logits, position=p, temperature=temperature, seed=11, **params) for p in range(count)]

    counts = np.bincount(tokens, minlength=8)
    assert counts[~keep].sum() == 0
    statistic = ((counts - expected * count) ** 2 / (expected * count + 1e-300))[keep].sum()
    assert statistic < 24.3  # 0.1 % point of chi-square with 7 degrees of freedom


def by_the_plain_formula(logits, params, **key):
    """A whole sort, every filter on all tokens, noise for all that are kept."""
    scaled = (logits.astype(np.float64) - float(logits.max())) / params.temperature
    order = np.lexsort((np.arange(len(logits)), -scaled))[: params.top_k or len(logits)]
    probabilities = np.exp(scaled[order]) / np.exp(scaled[order]).sum()
    keep = np.cumsum(probabilities) - probabilities < params.top_p
    keep &= probabilities >= params.min_p * probabilities[0]
    keep[0] = True
    ids = np.sort(order[keep])
    noise = gumbel_noise(**key, token_ids=torch.from_numpy(ids)).numpy()
    return int(ids[(scaled[ids] + noise).argmax()])


@pytest.mark.parametrize(
    "filters",
    [
        {},
        {"top_k": 40},
        {"top_p": 0.9},
        {"top_p": 0.999},
        {"min_p": 0.05},
        {"top_k": 900, "top_p": 0.95, "min_p": 0.001},
    ],
    ids=str,
)
@pytest.mark.parametrize("temperature", [0.3, 0.7, 1.5])
def test_draws_are_those_of_the_plain_formula(filters, temperature):
    rng = np.random.default_rng(5)
    params = SamplingParams(temperature=temperature, **filters)
    for position in range(6):
        logits = (rng.standard_normal(49_152) * 3).astype(np.float32)
        logits[position::5] = -np.inf
        key = {"seed": 9, "choice": 1, "position": position}

        assert sample(logits, params, **key) == by_the_plain_formula(logits, params, **key)
