"""RMS norm, interpreted, beside the reference."""

import interpreted_triton  # noqa: F401 - first, so that Triton interprets
import pytest
import torch
from kernel_tolerances import assert_close

from inglenook.kernels.rms_norm import rms_norm
from inglenook.kernels.rms_norm_triton import add_rms_norm, rms_norm_rows

EPS = 1e-5


def numbers(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def reference(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    return rms_norm(x.double(), weight.double(), EPS)


@pytest.mark.parametrize("columns", [1, 63, 64, 577])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
def test_rows_are_normalised(columns: int, dtype: torch.dtype) -> None:
    x, weight = numbers(3, columns), numbers(columns, seed=1)
    out = torch.full((3, columns), torch.nan, dtype=dtype)

    add_rms_norm(x, weight, EPS, out)

    assert_close("rms_norm", out, reference(x, weight), dtype)


@pytest.mark.parametrize("has_post", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
def test_a_branch_joins_the_residual_stream_before_the_norm(has_post: bool, dtype: torch.dtype) -> None:
    x, branch, weight, post = (
        numbers(5, 40),
        numbers(5, 40, seed=1).to(dtype),
        numbers(40, seed=2),
        numbers(40, seed=3),
    )
    joined = x.double() + 0.5 * (reference(branch, post) if has_post else branch.double())
    out = torch.full((5, 40), torch.nan, dtype=dtype)

    add_rms_norm(x, weight, EPS, out, branch=branch, post_weight=post if has_post else None, factor=0.5)

    assert_close("rms_norm", x, joined, torch.float32)
    assert_close("rms_norm", out, reference(joined, weight), dtype)


def test_without_a_weight_the_stream_itself_is_written() -> None:
    x, out = numbers(2, 30), torch.full((2, 30), torch.nan)

    add_rms_norm(x, None, EPS, out)

    assert torch.equal(out, x)


def test_slices_of_wider_rows_are_normalised_in_place() -> None:
    wide, weight = numbers(4, 90), numbers(30, seed=1)
    expected = reference(wide[:, 30:60], weight)
    before = wide.clone()

    rms_norm_rows(wide[:, 30:60], weight, EPS)

    assert_close("rms_norm", wide[:, 30:60], expected, torch.float32)
    assert torch.equal(wide[:, :30], before[:, :30])
    assert torch.equal(wide[:, 60:], before[:, 60:])


def test_no_rows_are_no_work() -> None:
    memory = torch.full((2, 8), 7.0)

    add_rms_norm(torch.empty(0, 8), torch.ones(8), EPS, memory[:0])

    assert torch.equal(memory, torch.full((2, 8), 7.0))
