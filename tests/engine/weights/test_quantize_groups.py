"""Groups that optimum-quanto quantises: how far they are from the weights, and what is refused."""

from __future__ import annotations

import importlib.util

import pytest
import torch

from inglenook.engine.errors import LibraryError, ModelFileError, UnsupportedModelError
from inglenook.engine.weights import quantize_groups
from inglenook.engine.weights.quantize_groups import (
    GROUP_SIZES,
    WEIGHT_TYPES,
    Quanto,
    WeightType,
    format_of,
    widest_group,
)
from inglenook.kernels.dequantize import dequantize
from inglenook.kernels.weight_tensor import FORMATS, WeightTensor

CASES = [(weights, group) for weights in WEIGHT_TYPES for group in GROUP_SIZES]


@pytest.fixture(scope="module")
def quanto() -> Quanto:
    return Quanto()


def round_trip(quanto: Quanto, rows: torch.Tensor, weights: WeightType, group: int) -> torch.Tensor:
    data = quanto.quantize(rows, weights, group, "w")
    return dequantize(WeightTensor(FORMATS[format_of(weights, group)], tuple(rows.shape), data))


@pytest.mark.parametrize(("weights", "group"), CASES)
def test_every_weight_is_within_half_a_step(quanto: Quanto, weights: WeightType, group: int) -> None:
    w = torch.randn(40, 384, generator=torch.Generator().manual_seed(group))
    w *= torch.logspace(2, -4, 40)[:, None]

    got = round_trip(quanto, w, weights, group)

    groups, error = w.view(-1, group), (got - w).abs().view(-1, group)
    peak = groups.abs().amax(1, keepdim=True)
    if weights == "qfloat8":
        # three bits of fraction; the smallest steps are those of subnormal numbers
        bound = groups.abs() / 16 + peak / 448 / 512
    else:
        levels = 15 if weights == "qint4" else 127
        width = groups.amax(1, keepdim=True) - groups.amin(1, keepdim=True) if weights == "qint4" else peak
        bound = width / levels / 2
    # and the scale's own rounding to fp16, which below 2^-14 has steps of 2^-24; of the shift a half of one
    assert (error <= bound * 1.002 + peak * 2**-11 + 2**-24 * (448 / 16 if weights == "qfloat8" else 8)).all()


@pytest.mark.parametrize(("weights", "group"), CASES)
def test_no_weight_at_the_end_of_a_group_is_cut_off(quanto: Quanto, weights: WeightType, group: int) -> None:
    """Scales far below the normal numbers of fp16 would lose up to half of their group if they were rounded down."""
    w = torch.linspace(-1, 1, group).repeat(30, 1) * torch.logspace(-2, -5, 30)[:, None]

    got = round_trip(quanto, w, weights, group)

    step = 2 / 15 if weights == "qint4" else 1 / 127 if weights == "qint8" else 1 / 16
    ends = torch.tensor([0, group - 1])
    assert ((got - w)[:, ends].abs() <= 0.51 * step * w[:, ends].abs() + 2**-24 * 10).all()


@pytest.mark.parametrize(("weights", "group"), CASES)
def test_zeros_and_equal_weights_stay_what_they_are(quanto: Quanto, weights: WeightType, group: int) -> None:
    w = torch.zeros(3, group)
    w[1] = 0.5

    got = round_trip(quanto, w, weights, group)

    assert torch.equal(got[0], w[0])
    torch.testing.assert_close(got[1], w[1], rtol=1e-3, atol=0)


@pytest.mark.parametrize(("weights", "group"), CASES)
def test_a_single_group_is_quantised_as_among_others(quanto: Quanto, weights: WeightType, group: int) -> None:
    w = torch.randn(4, group, generator=torch.Generator().manual_seed(3))

    alone = round_trip(quanto, w[2:3].clone(), weights, group)

    assert torch.equal(alone, round_trip(quanto, w, weights, group)[2:3])


@pytest.mark.parametrize("value", [torch.nan, torch.inf, -torch.inf])
def test_numbers_that_are_none_are_refused(quanto: Quanto, value: float) -> None:
    w = torch.ones(2, 64)
    w[1, 3] = value

    with pytest.raises(ModelFileError, match="w has numbers that are infinite or none"):
        quanto.quantize(w, "qint8", 64, "w")


def test_numbers_beyond_the_scales_are_refused(quanto: Quanto) -> None:
    w = torch.full((2, 64), 1e9)

    for weights in WEIGHT_TYPES:
        with pytest.raises(UnsupportedModelError, match="w has weights above 65,504"):
            quanto.quantize(w, weights, 64, "w")


def test_the_widest_group_that_divides_a_row_is_taken() -> None:
    assert [widest_group(n, 128) for n in (4096, 576, 96, 100, 32)] == [128, 64, 32, 0, 32]
    assert widest_group(4096, 32) == 32


def test_without_the_package_the_command_that_installs_it_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _name: None)

    with pytest.raises(
        LibraryError, match=r"which is not installed.* -m pip install 'optimum-quanto>=0\.2\.7"
    ):
        Quanto()


def test_without_pip_the_way_by_another_computer_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _name: None)
    monkeypatch.setattr(quantize_groups, "pip_is_installed", lambda: False)

    with pytest.raises(LibraryError, match=r"has no pip .* 'inglenook models import FOLDER' here"):
        Quanto()


def test_a_package_that_does_not_load_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(name: str) -> None:
        raise ImportError(f"cannot import {name}")

    monkeypatch.setattr(importlib, "import_module", fail)

    with pytest.raises(LibraryError, match=r"does not load: cannot import optimum\.quanto\.tensor\. "):
        Quanto()
