"""Draws as a card makes them, interpreted: the same tokens as the sampler's, whatever is drawn together."""

import interpreted_triton  # noqa: F401 - first, so that Triton interprets
import pytest
import torch

from inglenook.engine.cards.draw import Draw
from inglenook.engine.cards.plain_drawer import PlainDrawer
from inglenook.engine.cards.triton_drawer import TritonDrawer
from inglenook.engine.request import SamplingParams

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

FREE = SamplingParams(temperature=0.8)
GREEDY = SamplingParams(temperature=0.0, top_p=0.5)
TOP_P = SamplingParams(temperature=0.7, top_p=0.9)
TOP_K = SamplingParams(temperature=1.2, top_k=5, min_p=0.05)


def drawer(*, takes_filters: bool = True) -> TritonDrawer:
    return TritonDrawer(torch.device("cpu"), takes_filters=takes_filters)


def test_rows_of_all_kinds_get_the_samplers_tokens_one_step_after_another() -> None:
    ours = drawer()
    logits = torch.randn(4, 300, generator=torch.Generator().manual_seed(4)) * 2

    for position, kinds in enumerate(([FREE, GREEDY], [FREE, TOP_P, GREEDY, TOP_K], [GREEDY])):
        draws = [Draw(params, 2**62 + row, row, position) for row, params in enumerate(kinds)]
        rows = logits[: len(draws)]
        assert ours.draw(rows, draws) == PlainDrawer().draw(rows, draws)


def test_filters_are_left_to_the_host_where_the_card_is_slow_at_them() -> None:
    slow = drawer(takes_filters=False)

    assert [slow.takes(Draw(params, 0, 0, 0)) for params in (FREE, GREEDY, TOP_P, TOP_K)] == [
        True,
        True,
        False,
        False,
    ]
    assert all(drawer().takes(Draw(params, 0, 0, 0)) for params in (FREE, GREEDY, TOP_P, TOP_K))


def test_more_rows_than_before_make_room() -> None:
    ours = drawer()
    logits = torch.randn(70, 20, generator=torch.Generator().manual_seed(4))
    draws = [Draw(FREE, 1, 0, row) for row in range(70)]
    ours.draw(logits[:1], draws[:1])

    assert ours.draw(logits, draws) == PlainDrawer().draw(logits, draws)
