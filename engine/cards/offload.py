"""Partial offload: the last layers and the head on a card, the first layers in the native kernels on the processor.

A step runs on the processor first, whose hidden states then go to the card; so each layer's keys and values lie where the
layer runs, and the large matrix of the head is read at the card's speed. Which layers lie where changes the speed and
the rounding, nothing else.
"""

from __future__ import annotations

import dataclasses

import torch

from inglenook.engine.backend import Progress, WeightSource
from inglenook.engine.batch import Batch
from inglenook.engine.cards.cuda_backend import NAME, CudaBackend
from inglenook.engine.cards.cuda_model import CudaModel
from inglenook.engine.cards.draw import Drawer
from inglenook.engine.errors import UnsupportedModelError
from inglenook.engine.kv_cache import KVGroup, KVTensors
from inglenook.engine.memory_plan import MemoryPlace
from inglenook.engine.models.spec import ModelSpec
from inglenook.engine.native_backend import NativeBackend, NativeModel
from inglenook.engine.weights.names import tensor_shapes
from inglenook.kernels.weight_tensor import WeightTensor


class OffloadBackend:
    """The last `card_layers` layers on `card`, which takes hidden states; the rest on `host`, which hands them on."""

    name = NAME
    rows_are_exact = False

    def __init__(
        self,
        card: CudaBackend,
        host: NativeBackend,
        source: WeightSource,
        spec: ModelSpec,
        card_layers: int,
        reason: str,
        notice: str,
    ) -> None:
        if not 0 < card_layers < spec.num_layers:
            raise UnsupportedModelError(
                f"card_layers must be 1 to {spec.num_layers - 1} for a model of {spec.num_layers} layers, "
                f"got {card_layers}."
            )
        self.device = card.device
        self.reason = reason
        self.notice = notice  # for people, with the numbers
        self._card, self._host = card, host
        self._first = spec.num_layers - card_layers
        self._card_source_bytes = LayersSource(source, spec, self._first, spec.num_layers).size_bytes
        self._host_source_bytes = LayersSource(source, spec, 0, self._first).size_bytes

    def kv_groups(self, spec: ModelSpec) -> tuple[KVGroup, ...]:
        """The KV groups of the whole model, in the card's dtype."""
        return self._card.kv_groups(spec)

    def estimate_weight_bytes(self, spec: ModelSpec, source_bytes: int) -> int:
        """Of both together."""
        return sum(place.weight_bytes for place in self.memory_places(spec))

    def memory_places(self, spec: ModelSpec) -> tuple[MemoryPlace, ...]:
        """The card and the processor, each with what it will hold."""
        card, host = (part_spec(spec, *part) for part in self._parts(spec))
        on_card = self._card.estimate_weight_bytes(card, self._card_source_bytes)
        on_host = self._host.estimate_weight_bytes(host, self._host_source_bytes)
        return (
            MemoryPlace("the card", on_card, self._card.kv_groups(card), self._card.free_bytes()),
            MemoryPlace("this computer", on_host, self._host.kv_groups(host), None),
        )

    def step_tokens(self, spec: ModelSpec) -> int:
        """As many as the processor's part takes: it is the slower one."""
        return self._host.step_tokens(part_spec(spec, *self._parts(spec)[1]))

    def load(self, spec: ModelSpec, source: WeightSource, progress: Progress) -> OffloadModel:
        """Load the processor's part, then the card's; see `Backend`."""
        card_part, host_part = self._parts(spec)
        host_source, card_source = (LayersSource(source, spec, *part) for part in (host_part, card_part))
        total = host_source.size_bytes + card_source.size_bytes
        host = self._host.load(
            part_spec(spec, *host_part), host_source, lambda done, _: progress(done, total)
        )
        try:
            before = host_source.size_bytes
            card = self._card.load(
                part_spec(spec, *card_part), card_source, lambda done, _: progress(before + done, total)
            )
        except BaseException:
            host.close()
            raise
        return OffloadModel(spec, card, host, self.kv_groups(spec))

    def _parts(self, spec: ModelSpec) -> tuple[tuple[int, int], tuple[int, int]]:
        return (self._first, spec.num_layers), (0, self._first)


class OffloadModel:
    """A model in two parts. Used from one thread at a time, but `cancel`."""

    def __init__(
        self, spec: ModelSpec, card: CudaModel, host: NativeModel, groups: tuple[KVGroup, ...]
    ) -> None:
        self.spec = spec
        self.kv: tuple[KVTensors, ...] = ()
        self.weight_bytes = card.weight_bytes + host.weight_bytes
        self._card, self._host = card, host
        self._groups = groups
        windows = [group.window for group in groups]
        first = host.spec.num_layers
        # which of the model's groups each part has, in the part's own order
        self._host_groups, self._card_groups = (
            [windows.index(w) for w in sorted(set(part))]
            for part in (spec.sliding_windows[:first], spec.sliding_windows[first:])
        )

    @property
    def drawer(self) -> Drawer:
        """What draws tokens where the logits end."""
        return self._card.drawer

    def prepare(self, progress: Progress) -> None:
        """Compile the kernels; see `CudaModel.prepare`."""
        self._card.prepare(progress)

    def allocate_kv(self, num_blocks: tuple[int, ...]) -> None:
        """Allocate KV tensors of both parts, in place of any earlier ones."""
        self.kv = ()
        self._host.allocate_kv(tuple(num_blocks[g] for g in self._host_groups))
        self._card.allocate_kv(tuple(num_blocks[g] for g in self._card_groups))
        parts: list[list[KVTensors]] = [[] for _ in self._groups]
        for numbers, model in ((self._card_groups, self._card), (self._host_groups, self._host)):
            for number, kv in zip(numbers, model.kv, strict=True):
                parts[number].append(kv)
        self.kv = tuple(SplitKV(group, tuple(own)) for group, own in zip(self._groups, parts, strict=True))

    def cancel(self) -> None:
        """Make the step in flight, or the next one, end early on the processor. From any thread."""
        self._host.cancel()

    def forward(self, batch: Batch) -> torch.Tensor:
        """Run one step; see `BackendModel`. Raises as `NativeModel.forward`."""
        rows = torch.arange(len(batch.token_ids))
        groups = tuple(batch.groups[g] for g in self._host_groups)
        hidden = self._host.forward(dataclasses.replace(batch, logits_rows=rows, groups=groups))
        groups = tuple(batch.groups[g] for g in self._card_groups)
        return self._card.forward(dataclasses.replace(batch, groups=groups), hidden)

    def close(self) -> None:
        """Give all memory back. Closing twice is fine."""
        self._card.close()
        self._host.close()
        self.kv = ()


class SplitKV(KVTensors):
    """KV tensors of one group whose layers lie in several places; blocks have the same numbers in all."""

    def __init__(self, group: KVGroup, parts: tuple[KVTensors, ...]) -> None:
        first = parts[0]
        super().__init__(group, first.k, first.v, first.k_scale, first.v_scale)
        self._parts = parts

    def copy_blocks(self, pairs: list[tuple[int, int]]) -> None:
        """Copy whole blocks (source, destination) in every layer of the group."""
        for part in self._parts:
            part.copy_blocks(pairs)

    def blank(self, blocks: list[int]) -> None:
        """Overwrite blocks with zeros in every layer of the group."""
        for part in self._parts:
            part.blank(blocks)


class LayersSource:
    """Layers [first, end) of a `WeightSource` as layers 0, 1, ... of a part; with the head if they are the last ones."""

    def __init__(self, source: WeightSource, spec: ModelSpec, first: int, end: int) -> None:
        self._source, self._first = source, first
        self._has_head = end == spec.num_layers
        self._is_tied = spec.tied_head
        own = part_spec(spec, first, end)
        wanted = "head" if self._has_head else "embedding"
        self._names = tuple(n for n in tensor_shapes(own) if n not in ("head", "embedding") or n == wanted)

    @property
    def names(self) -> tuple[str, ...]:
        """All canonical names of the part."""
        return self._names

    @property
    def size_bytes(self) -> int:
        """Bytes of the part's tensors in their file formats."""
        return sum(self.tensor(name).size_bytes for name in self._names)

    def tensor(self, name: str) -> WeightTensor:
        """The tensor of a name of the part; see `WeightSource`."""
        if name == "head" and self._is_tied:
            return self._source.tensor("embedding")
        if name.startswith("layers."):
            _, number, rest = name.split(".", 2)
            name = f"layers.{int(number) + self._first}.{rest}"
        return self._source.tensor(name)

    def close(self) -> None:
        """Close the whole source."""
        self._source.close()


def part_spec(spec: ModelSpec, first: int, end: int) -> ModelSpec:
    """Layers [first, end) as a model. The last ones have a head of their own, the others count theirs as tied."""
    return dataclasses.replace(
        spec,
        num_layers=end - first,
        sliding_windows=spec.sliding_windows[first:end],
        unrotated_layers=tuple(i - first for i in spec.unrotated_layers if first <= i < end),
        tied_head=end < spec.num_layers,
    )
