"""Keyed noise."""

import torch

from inglenook.kernels.gumbel import gumbel_noise, mix


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
