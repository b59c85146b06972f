"""Context and blocks from the free memory of every place that a model will lie in."""

import pytest
from random_models import small_spec

from inglenook.engine import memory_plan
from inglenook.engine.errors import InvalidRequestError, NotEnoughMemoryError
from inglenook.engine.kv_cache import kv_groups
from inglenook.engine.memory import MemoryState, estimate_need, format_bytes, kv_bytes
from inglenook.engine.memory_plan import MemoryPlace, memory_places, plan_memory
from inglenook.engine.torch_backend import TORCH_BACKENDS

SPEC = small_spec(context_length=32_768)
GROUPS = kv_groups(SPEC, "float16")
WEIGHTS = 10**8


class TwoPlaces:
    """A back end whose models lie half on a card and half in this computer."""

    name, device = "cuda", "cuda"

    def __init__(self, card_bytes: int) -> None:
        self._card_bytes = card_bytes

    def memory_places(self, spec):
        return (
            MemoryPlace("the card", WEIGHTS, GROUPS, self._card_bytes),
            MemoryPlace("this computer", WEIGHTS, GROUPS, None),
        )


def need(tokens: int) -> int:
    return estimate_need(WEIGHTS, kv_bytes(GROUPS, tokens), SPEC.vocab_size)


def plan(backend, monkeypatch, computer_bytes: int, wanted: int | None = None, reserved: int = 0):
    monkeypatch.setattr(memory_plan, "memory_state", lambda: MemoryState(10**12, computer_bytes))
    return plan_memory("tiny", SPEC, 0, backend, wanted=wanted, reserved_bytes=reserved)


def test_the_smallest_place_decides_on_the_context(monkeypatch) -> None:
    by_card = plan(TwoPlaces(need(8192)), monkeypatch, 10**12)
    by_computer = plan(TwoPlaces(10**12), monkeypatch, need(4096) + 500, reserved=500)

    assert (by_card.context_length, by_computer.context_length) == (8192, 4096)
    assert "8,192 tokens instead of the model's 32,768" in by_card.notices[0]
    assert by_card.num_blocks == 8192 // 16
    assert plan(TwoPlaces(10**12), monkeypatch, 10**12).num_blocks == 4 * 32_768 // 16


def test_the_place_that_is_too_small_is_named_with_both_numbers(monkeypatch) -> None:
    words = f"The part of tiny on the card needs {format_bytes(need(2048))}, {format_bytes(10**8)} are free"

    with pytest.raises(NotEnoughMemoryError, match=words):
        plan(TwoPlaces(10**8), monkeypatch, 10**12)
    with pytest.raises(NotEnoughMemoryError, match="on this computer needs"):
        plan(TwoPlaces(10**12), monkeypatch, 10**8, wanted=4096)
    with pytest.raises(InvalidRequestError, match="at most 32,768, the limit of tiny; got 40,000"):
        plan(TwoPlaces(10**12), monkeypatch, 10**12, wanted=40_000)


def test_an_ordinary_back_end_has_one_place() -> None:
    backend = TORCH_BACKENDS["reference"]()

    (place,) = memory_places(SPEC, 0, backend)

    assert (place.name, place.free_bytes) == ("cpu", None)
    assert place.weight_bytes == 4 * SPEC.num_parameters
