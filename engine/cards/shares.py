"""How a model is divided among several cards: whole heads, and runs of the feed-forward network's columns.

Each card has its share of the heads (rows of q, k and v, columns of o), of the feed-forward network (rows of gate and up,
columns of down) and of the vocabulary (rows of the head); sums over cards follow o and down. Shares need not be equal:
the first cards have the larger ones. Quantised columns are cut between their blocks only. Where there are more cards
than KV heads, a KV head is kept by several cards, each with some of its query heads.

Shoeybi et al., "Megatron-LM", 2019.
"""

from __future__ import annotations

import dataclasses
import itertools
import math

import numpy as np

from inglenook.engine.backend import WeightSource
from inglenook.engine.errors import UnsupportedModelError
from inglenook.engine.models.spec import ModelSpec
from inglenook.engine.weights.names import tensor_shapes
from inglenook.kernels.weight_tensor import WeightTensor

_COLUMNS = 32  # of the feed-forward network, at least, where they can be cut that wide


@dataclasses.dataclass(frozen=True, slots=True)
class Share:
    """What one of `count` cards has: query heads, KV heads, columns of the feed-forward network, rows of the head."""

    rank: int
    count: int
    heads: range
    kv_heads: range
    columns: range
    vocabulary: range

    def spec(self, spec: ModelSpec) -> ModelSpec:
        """The model as this card sees it; its vocabulary is whole, and its head a matrix of its own."""
        return dataclasses.replace(
            spec,
            num_heads=len(self.heads),
            num_kv_heads=len(self.kv_heads),
            intermediate_size=len(self.columns),
            tied_head=False,
        )


def plan_shares(spec: ModelSpec, source: WeightSource, count: int) -> tuple[Share, ...]:
    """Divide a model among `count` cards.

    Raises:
        UnsupportedModelError: it cannot be divided so; the message has the numbers.
    """
    if spec.qk_norm == "whole":
        raise UnsupportedModelError(
            "This model normalises queries over all heads, which several cards would have to do together. Use one card."
        )
    heads = _head_shares(spec, _block(source, spec, "o"), count)
    block = _block(source, spec, "down")
    unit = math.lcm(block, _COLUMNS) if spec.intermediate_size % math.lcm(block, _COLUMNS) == 0 else block
    columns = _divide(spec.intermediate_size, unit, count)
    if columns is None:
        raise UnsupportedModelError(
            f"The feed-forward network has {spec.intermediate_size // unit} runs of {unit} columns, which "
            f"{count} cards cannot share. Use fewer cards."
        )
    rows = -(-spec.vocab_size // count)
    vocabulary = [range(r * rows, min((r + 1) * rows, spec.vocab_size)) for r in range(count)]
    parts = zip(heads, columns, vocabulary, strict=True)
    return tuple(Share(r, count, h, kv, c, v) for r, ((h, kv), c, v) in enumerate(parts))


def replication(spec: ModelSpec, count: int) -> str:
    """A sentence where KV heads are kept by more than one card, else ""."""
    if count <= spec.num_kv_heads:
        return ""
    return (
        f"each of the {spec.num_kv_heads} KV heads is kept by {count // spec.num_kv_heads} of {count} cards"
    )


class ShareSource:
    """One card's part of a `WeightSource`, under the same names; "head" is there for tied models too."""

    def __init__(self, source: WeightSource, spec: ModelSpec, share: Share) -> None:
        self._source, self._spec, self._share = source, spec, share
        self._shapes = tensor_shapes(share.spec(spec))

    @property
    def names(self) -> tuple[str, ...]:
        """All canonical names of this card."""
        return tuple(self._shapes)

    @property
    def size_bytes(self) -> int:
        """Bytes of this card's parts in their file formats."""
        return sum(self._size_bytes(name) for name in self._shapes)

    def tensor(self, name: str) -> WeightTensor:
        """This card's part of a tensor; what all cards would add, a bias after a sum, is zero but on the first."""
        whole = self._whole(name)
        rows, columns = self._cut(name)
        if name.endswith((".o_bias", ".down_bias")) and self._share.rank:
            return WeightTensor(whole.format, whole.shape, np.zeros_like(whole.data))
        if len(whole.shape) == 1:
            return whole if rows is None else _elements(whole, rows)
        if rows is not None:
            return whole.select_rows(slice(rows.start, rows.stop))
        return whole if columns is None else _columns(whole, columns)

    def close(self) -> None:
        """Close the whole source."""
        self._source.close()

    def _whole(self, name: str) -> WeightTensor:
        return self._source.tensor("embedding" if name == "head" and self._spec.tied_head else name)

    def _cut(self, name: str) -> tuple[range | None, range | None]:
        """Which rows, or which columns, are ours."""
        share, size = self._share, self._spec.head_size
        part = name.rpartition(".")[2].removesuffix("_bias")
        heads = range(share.heads.start * size, share.heads.stop * size)
        kv_heads = range(share.kv_heads.start * size, share.kv_heads.stop * size)
        rows = {"q": heads, "k": kv_heads, "v": kv_heads, "gate": share.columns, "up": share.columns}
        if name == "head":
            return share.vocabulary, None
        if name.endswith("_bias"):
            return rows.get(part), None
        return rows.get(part), {"o": heads, "down": share.columns}.get(part)

    def _size_bytes(self, name: str) -> int:
        whole = self._whole(name)
        rows, columns = self._cut(name)
        if rows is None and columns is None:
            return whole.size_bytes
        if columns is None:
            assert rows is not None
            return whole.size_bytes // whole.shape[0] * len(rows)
        return whole.shape[0] * whole.format.row_bytes(len(columns))


def _head_shares(spec: ModelSpec, block: int, count: int) -> list[tuple[range, range]]:
    """(query heads, KV heads) of each card; o is cut between blocks of `block` columns."""
    group = spec.num_heads // spec.num_kv_heads
    if count <= spec.num_kv_heads:
        unit = block // math.gcd(block, group * spec.head_size)
        parts = _divide(spec.num_kv_heads, min(unit, spec.num_kv_heads), count)
        if parts is not None:
            return [(range(p.start * group, p.stop * group), p) for p in parts]
        what = f"{spec.num_kv_heads} KV heads in runs of {unit}, as the output matrix's blocks of {block} columns ask"
    else:
        copies = count // spec.num_kv_heads
        own = group // max(1, copies)
        fits = copies * spec.num_kv_heads == count and own * copies == group
        if fits and own * spec.head_size % block == 0:
            starts = [(r // copies, r // copies * group + r % copies * own) for r in range(count)]
            return [(range(first, first + own), range(kv, kv + 1)) for kv, first in starts]
        what = f"{spec.num_heads} heads over {spec.num_kv_heads} KV heads"
    raise UnsupportedModelError(f"This model has {what}, which {count} cards cannot share. Use fewer cards.")


def _divide(size: int, unit: int, count: int) -> list[range] | None:
    """Cut 0 .. size into `count` runs of whole units, the longer ones first; None where one would be empty."""
    units = -(-size // unit)
    if units < count:
        return None
    lengths = [units // count + (r < units % count) for r in range(count)]
    edges = [min(sum(lengths[:r]) * unit, size) for r in range(count + 1)]
    return [range(a, b) for a, b in itertools.pairwise(edges)]


def _block(source: WeightSource, spec: ModelSpec, part: str) -> int:
    """Columns that stay together in every layer's matrix of this name."""
    sizes = {source.tensor(f"layers.{i}.{part}").format.block_size for i in range(spec.num_layers)}
    return math.lcm(*sizes)


def _elements(vector: WeightTensor, part: range) -> WeightTensor:
    width = vector.format.row_bytes(1)
    data = vector.data[:, part.start * width : part.stop * width]
    return WeightTensor(vector.format, (len(part),), np.ascontiguousarray(data))


def _columns(matrix: WeightTensor, part: range) -> WeightTensor:
    form = matrix.format
    data = matrix.data[:, form.row_bytes(part.start) : form.row_bytes(part.stop)]
    return WeightTensor(form, (matrix.shape[0], len(part)), np.ascontiguousarray(data))
