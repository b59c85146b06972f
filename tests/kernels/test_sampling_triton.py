"""Sampling, interpreted, beside the engine's sampler."""

import interpreted_triton  # noqa: F401 - first, so that Triton interprets
import pytest
import torch

from inglenook.engine.request import SamplingParams
from inglenook.engine.sampler import sample
from inglenook.kernels.gumbel import noise_base
from inglenook.kernels.sampling_triton import draw_parts, draw_rows, sample_rows

# infinities that NumPy warns of in the interpreter are meant
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

FILTERS = [
    {},
    {"temperature": 0.0},
    {"top_k": 20, "top_p": 0.9, "min_p": 0.01, "temperature": 0.7},
]
MORE_FILTERS = [
    {"top_k": 1},
    {"top_k": 7},
    {"top_p": 0.6},
    {"top_p": 1e-6},
    {"min_p": 0.2},
]


def on_the_card(logits: torch.Tensor, params: SamplingParams, positions: list[int]) -> list[int]:
    rows = len(positions)
    out = torch.full((rows,), -7)
    sample_rows(
        logits,
        torch.tensor([noise_base(11, 2, position) for position in positions]),
        torch.full((rows,), params.temperature, dtype=torch.float64),
        torch.full((rows,), params.top_k, dtype=torch.int32),
        torch.full((rows,), params.top_p, dtype=torch.float64),
        torch.full((rows,), params.min_p, dtype=torch.float64),
        out,
    )
    return out.tolist()


@pytest.mark.parametrize(
    "options", [*FILTERS, *(pytest.param(o, marks=pytest.mark.slow) for o in MORE_FILTERS)], ids=str
)
def test_the_draw_is_the_engine_samplers_own(options: dict) -> None:
    params = SamplingParams(**{"temperature": 1.0, "top_k": 0, "top_p": 1.0, "min_p": 0.0} | options)
    logits = torch.randn(3, 2500, generator=torch.Generator().manual_seed(1)) * 3
    logits[1] = (logits[1] * 2).round() / 2  # many ties
    logits[2, ::3] = -torch.inf

    drawn = on_the_card(logits, params, [5, 6, 7])

    assert drawn == [
        sample(row, params, seed=11, choice=2, position=position)
        for row, position in zip(logits, [5, 6, 7], strict=True)
    ]


def without_filters(logits: torch.Tensor, temperatures: list[float], positions: list[int]) -> list[int]:
    rows, parts = logits.shape[0], draw_parts(logits.shape[1])
    out = torch.full((rows,), -7)
    draw_rows(
        logits,
        torch.tensor([noise_base(11, 2, position) for position in positions]),
        torch.tensor(temperatures, dtype=torch.float64),
        out,
        torch.full((rows * parts,), torch.nan, dtype=torch.float64),
        torch.full((rows * parts,), -1, dtype=torch.int32),
    )
    return out.tolist()


def test_rows_shared_by_programs_give_the_samplers_draws_at_temperatures_of_their_own() -> None:
    logits = torch.randn(4, 2500, generator=torch.Generator().manual_seed(2)) * 3
    logits[1] = (logits[1] * 2).round() / 2
    logits[2, ::3] = -torch.inf
    logits[3, 1024:] = -torch.inf  # whole parts are forbidden
    temperatures, positions = [0.7, 0.0, 1.3, 0.1], [5, 6, 7, 8]

    drawn = without_filters(logits, temperatures, positions)

    assert drawn == [
        sample(row, SamplingParams(temperature=t), seed=11, choice=2, position=p)
        for row, t, p in zip(logits, temperatures, positions, strict=True)
    ]


@pytest.mark.parametrize("bad", [torch.nan, torch.inf, -torch.inf])
def test_shared_rows_without_finite_best_give_minus_one(bad: float) -> None:
    logits = torch.zeros(2, 1500)
    logits[0, 1100] = bad
    if bad == -torch.inf:
        logits[0] = bad

    assert without_filters(logits, [0.0, 0.0], [0, 0]) == [-1, 0]


@pytest.mark.slow
def test_draws_follow_the_distribution() -> None:
    params = SamplingParams(temperature=1.0, top_k=0, top_p=1.0, min_p=0.0)
    wanted = torch.tensor([0.5, 0.3, 0.15, 0.05])
    rows = 400

    drawn = torch.tensor(on_the_card(wanted.log().expand(rows, 4).contiguous(), params, list(range(rows))))

    counts = torch.bincount(drawn, minlength=4).double()
    chi_square = float(((counts - rows * wanted) ** 2 / (rows * wanted)).sum())
    assert chi_square < 16.27  # 3 degrees of freedom, p = 0.001; the seed is fixed


@pytest.mark.parametrize("bad", [torch.nan, torch.inf])
def test_a_row_without_finite_best_gives_minus_one(bad: float) -> None:
    logits = torch.zeros(2, 10)
    logits[0, 4] = bad

    drawn = on_the_card(logits, SamplingParams(temperature=0.0), [0, 0])

    assert drawn == [-1, 0]
