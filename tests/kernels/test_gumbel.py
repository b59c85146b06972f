"""Keyed noise."""

import numpy as np
import pytest
import torch

from inglenook.kernels import gumbel
from inglenook.kernels.gumbel import gumbel_argmax, gumbel_noise, mix


def test_mix_gives_splitmix64s_published_first_outputs():
    # The first outputs of SplitMix64 with seed 1234567 as its authors publish them.
    gamma = 0x9E3779B97F4A7C15

    got = [mix(1234567 + (i + 1) * gamma) for i in range(3)]

    assert got == [6457827717110365317, 3203168211198807973, 9817491932198370423]


def test_noise_of_a_token_does_not_depend_on_the_other_tokens():
    everyone = gumbel_noise(7, 0, 12, torch.arange(1000))

    some = gumbel_noise(7, 0, 12, torch.tensor([999, 3, 500]))

    assert torch.equal(some, everyone[[999, 3, 500]])


def test_noise_changes_with_each_part_of_its_key():
    ids = torch.arange(64)
    base = gumbel_noise(1, 2, 3, ids)

    others = [gumbel_noise(9, 2, 3, ids), gumbel_noise(1, 9, 3, ids), gumbel_noise(1, 2, 9, ids)]

    assert all((base != other).all() for other in others)


def test_noise_has_the_mean_and_variance_of_a_gumbel_distribution():
    noise = gumbel_noise(0, 0, 0, torch.arange(200_000))

    assert torch.isfinite(noise).all()
    assert abs(float(noise.mean()) - 0.57722) < 0.01
    assert abs(float(noise.var()) - 1.64493) < 0.03


def test_tensor_arithmetic_equals_the_integer_definition():
    base = mix(mix(mix(2**64 - 1) + 5) + 77)
    bits = [mix(base + (t + 1) * 0x9E3779B97F4A7C15) for t in (0, 1, 151_935)]
    uniform = torch.tensor([((b >> 11) + 0.5) * 2.0**-53 for b in bits], dtype=torch.float64)

    noise = gumbel_noise(2**64 - 1, 5, 77, torch.tensor([0, 1, 151_935]))

    assert torch.equal(noise, -torch.log(-torch.log(uniform)))


def by_the_definition(logits, temperature, ids, **key):
    scaled = (logits.astype(np.float64) - float(logits.max())) / temperature
    return int((scaled + gumbel_noise(**key, token_ids=torch.from_numpy(ids)).numpy()).argmax())


@pytest.mark.parametrize("size", [1, 2, 50, 3000])
@pytest.mark.parametrize("temperature", [1e-5, 1e-3, 0.1, 0.7, 1.0, 5.0, 100.0])
def test_the_race_has_the_winner_of_all_noise(size, temperature, monkeypatch):
    monkeypatch.setattr(gumbel, "_BLOCK", 1000)
    rng = np.random.default_rng(size)
    for number, spread in enumerate([0.0, 1e-3, 1.0, 5.0, 30.0, 1e30] * 4):
        logits = (rng.standard_normal(size) * spread).astype(np.float32)
        if number % 3 == 1:
            logits = np.round(logits)  # many equals
        if number % 3 == 2:
            logits[1::2] = -np.inf
        ids = np.sort(rng.choice(10 * size, size, replace=False)) if number % 2 else np.arange(size)
        key = {"seed": 2**64 - 1 - number, "choice": number % 2, "position": number}

        got = gumbel_argmax(logits, temperature, **key, token_ids=ids if number % 2 else None)

        assert got == by_the_definition(logits, temperature, ids, **key)


def test_the_race_needs_the_noise_of_few_tokens_only(monkeypatch):
    asked = []

    def counted(seed, choice, position, token_ids):
        asked.append(len(token_ids))
        return gumbel_noise(seed, choice, position, token_ids)

    monkeypatch.setattr(gumbel, "gumbel_noise", counted)
    logits = np.random.default_rng(0).standard_normal(50_000).astype(np.float32)

    for position in range(50):
        gumbel_argmax(logits, 0.7, seed=1, choice=0, position=position)

    assert sum(asked) < 200


def test_bounds_lie_just_below_the_complement_of_each_uniform_number():
    base = mix(77)
    ids = np.arange(5000)

    bounds = gumbel._complements(base, ids)

    exact = np.array([1 - gumbel._uniform(base, int(t)) for t in ids])
    assert (bounds <= exact * (1 + 1e-7)).all()
    assert (exact - bounds < 2.0**-31 + 1e-7 * exact).all()
