"""Which cards and how many layers: chosen from what a model needs and what is free, or as asked.

In this order: one card that holds all of it; as few cards as hold it together; the last layers on one card and the rest on
the processor; the processor alone. The numbers are estimates of `memory.py`; whoever asks for a number gets it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from inglenook.engine.backend import WeightSource
from inglenook.engine.kv_cache import KVDtype, kv_groups
from inglenook.engine.memory import LISTED_CONTEXT, format_bytes, kv_bytes
from inglenook.engine.models.spec import ModelSpec

# work space of the kernels and graphs, at least, beside weights, buffers of a step and KV cache
CARD_RUNTIME_BYTES = 400_000_000
_LOADED_BYTES = 2  # of an element of a matrix that is not quantised


@dataclass(frozen=True, slots=True, kw_only=True)
class CardOptions:
    """What was asked for: None leaves it to the estimate. `context_length` is what the KV cache must hold."""

    num_cards: int | None = None
    card_layers: int | None = None
    context_length: int | None = None

    @property
    def asked(self) -> str:
        """What was asked for, "" for nothing."""
        found = {"num_cards": self.num_cards, "card_layers": self.card_layers}
        return " and ".join(f"{name} {value}" for name, value in found.items() if value is not None)


@dataclass(frozen=True, slots=True)
class CardNeed:
    """Bytes on a card: of each layer with its keys and values, of the head, of the embedding, and of every card."""

    layers: tuple[int, ...]
    head: int
    embedding: int
    runtime: int = CARD_RUNTIME_BYTES

    @property
    def whole(self) -> int:
        """All of the model on one card."""
        return self.part(len(self.layers)) + self.embedding

    def part(self, layers: int) -> int:
        """The last `layers` layers and the head."""
        return sum(self.layers[len(self.layers) - layers :]) + self.head + self.runtime

    def share(self, cards: int) -> int:
        """One of several cards that divide everything but the embedding."""
        divided = sum(self.layers) + self.head
        return -(-divided // cards) + self.embedding + self.runtime


@dataclass(frozen=True, slots=True)
class Placement:
    """How many cards (0: none), how many layers they hold, and the reason as a sentence without its full stop."""

    num_cards: int
    card_layers: int
    reason: str

    @property
    def sentence(self) -> str:
        """The reason as a sentence for people."""
        return f"{self.reason[0].upper()}{self.reason[1:]}."


def card_need(
    spec: ModelSpec, source: WeightSource, kv_dtype: KVDtype, context: int | None, *, alone_bytes: int = 0
) -> CardNeed:
    """What a model needs on a card, quantised matrices at the width that they have in the file.

    alone_bytes: what `memory.estimate_need` says of it without a KV cache, so that both agree on what fits.
    """
    sizes = [0] * spec.num_layers
    whole = {"head": 0, "embedding": 0}
    for name in source.names:
        tensor = source.tensor(name)
        is_plain = tensor.format.block_size == 1 and len(tensor.shape) == 2
        size = tensor.shape[0] * tensor.shape[1] * _LOADED_BYTES if is_plain else tensor.size_bytes
        if name.startswith("layers."):
            sizes[int(name.split(".", 2)[1])] += size
        elif name in whole:
            whole[name] = size
    tokens = min(spec.context_length, context or LISTED_CONTEXT)
    kv = kv_bytes(kv_groups(spec, kv_dtype), tokens) // spec.num_layers
    head = whole["embedding"] if spec.tied_head else whole["head"]
    # tied, the head is the embedding: on one card it is there once
    embedding = 0 if spec.tied_head else whole["embedding"]
    runtime = max(CARD_RUNTIME_BYTES, alone_bytes - sum(sizes) - head - embedding)
    return CardNeed(tuple(size + kv for size in sizes), head, embedding, runtime)


def place(need: CardNeed, free_bytes: Sequence[int], options: CardOptions) -> Placement:
    """Choose; `free_bytes` of each card, at least one."""
    total = len(need.layers)
    wanted = options.card_layers
    if options.num_cards is not None and options.num_cards > 1:
        return Placement(options.num_cards, total, f"{options.num_cards} cards were asked for")
    if wanted is not None:
        reason = f"{wanted} of {total} layers were asked for on the card, the rest are on the processor"
        return Placement(min(1, wanted), min(wanted, total), reason)
    one, needs = free_bytes[0], f"it needs {format_bytes(need.whole)}"
    if need.whole <= one:
        return Placement(1, total, f"{needs}, and {format_bytes(one)} of the card are free")
    if options.num_cards is None:
        for cards in range(2, len(free_bytes) + 1):
            least = min(free_bytes[:cards])
            if need.share(cards) <= least:
                reason = (
                    f"{needs}, {format_bytes(one)} of one card are free, and {cards} cards hold it together"
                )
                return Placement(cards, total, reason)
    layers = next((n for n in range(total - 1, 0, -1) if need.part(n) <= one), 0)
    if not layers:
        return Placement(
            0, 0, f"{needs}, and {format_bytes(one)} of the card are free: too few for one layer"
        )
    reason = (
        f"{needs}, and {format_bytes(one)} of the card are free: {layers} of {total} layers are on the card, "
        "the rest on the processor"
    )
    return Placement(1, layers, reason)
