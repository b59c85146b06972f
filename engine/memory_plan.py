"""How long a context and how many KV blocks a model gets, from the free memory of every place that it will lie in.

A place is this computer's memory, or a card's. The estimate is that of `memory.py`; a context that does not fit is halved
down to 2,048 tokens, and a model that does not fit even then is refused with the numbers, before anything is loaded.
"""

from __future__ import annotations

from dataclasses import dataclass

from inglenook.engine.backend import Backend
from inglenook.engine.errors import InvalidRequestError
from inglenook.engine.kv_cache import KVGroup, num_blocks_for
from inglenook.engine.memory import check_fit, estimate_need, kv_bytes, memory_state
from inglenook.engine.models.spec import ModelSpec

SHORTEST_CONTEXT = 2048  # below this a model is refused rather than shortened further
_SPARE_CONTEXTS = 4  # sequences of full length that the pool may hold when memory allows


@dataclass(frozen=True, slots=True)
class MemoryPlace:
    """Where a part of a model will lie: `free_bytes` None is this computer's memory, less what others were promised."""

    name: str
    weight_bytes: int
    groups: tuple[KVGroup, ...]
    free_bytes: int | None


@dataclass(frozen=True, slots=True)
class MemoryPlan:
    """The context in tokens, blocks of each KV group, and sentences for people."""

    context_length: int
    num_blocks: int
    notices: tuple[str, ...]


def plan_memory(
    name: str,
    spec: ModelSpec,
    source_bytes: int,
    backend: Backend,
    *,
    wanted: int | None,
    reserved_bytes: int,
) -> MemoryPlan:
    """Choose context and blocks; `wanted` None may be shortened, `reserved_bytes` were promised to other models.

    Raises:
        InvalidRequestError: `wanted` is more than the model's own context.
        NotEnoughMemoryError: it does not fit, with the place that is too small.
    """
    own = spec.context_length
    context = wanted or own
    if context > own:
        raise InvalidRequestError(
            f"context_length must be at most {own:,}, the limit of {name}; got {context:,}."
        )
    computer = max(0, memory_state().free_bytes - reserved_bytes)
    places = [
        (place, computer if place.free_bytes is None else place.free_bytes)
        for place in memory_places(spec, source_bytes, backend)
    ]

    def need(place: MemoryPlace, tokens: int) -> int:
        return estimate_need(place.weight_bytes, kv_bytes(place.groups, tokens), spec.vocab_size)

    notices = []
    if wanted is None:
        while context > SHORTEST_CONTEXT and any(need(place, context) > free for place, free in places):
            context = max(SHORTEST_CONTEXT, context // 2)
        if context < own:
            notices.append(
                f"The context is {context:,} tokens instead of the model's {own:,}, so that it fits the free memory."
            )
    for place, free in places:
        what = name if len(places) == 1 else f"The part of {name} on {place.name}"
        check_fit(what, need(place, context), free)
    blocks = num_blocks_for(context)
    spare = min(
        (free - need(place, 0)) // 4 // max(1, sum(group.block_bytes for group in place.groups))
        for place, free in places
    )
    return MemoryPlan(context, max(blocks, min(_SPARE_CONTEXTS * blocks, spare)), tuple(notices))


def memory_places(spec: ModelSpec, source_bytes: int, backend: Backend) -> tuple[MemoryPlace, ...]:
    """Where a back end puts a model: as it says, else all of it on its device."""
    own = getattr(backend, "memory_places", None)
    if own is not None:
        places: tuple[MemoryPlace, ...] = own(spec)
        return places
    free = getattr(backend, "free_bytes", None)  # the card's
    weights = backend.estimate_weight_bytes(spec, source_bytes)
    return (MemoryPlace(backend.device, weights, backend.kv_groups(spec), None if free is None else free()),)
