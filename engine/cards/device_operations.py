"""The operations of a step on a card, each writing into a buffer it is given, and their plain form in PyTorch.

The plain form is the contract: it runs on every device, so the control flow of the CUDA back end is tested on
computers without a card, and the kernels (`triton_operations.py`) are held to it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import torch

from inglenook.engine.kv_cache import KVTensors
from inglenook.engine.models.spec import Activation
from inglenook.kernels.gelu_and_mul import gelu_and_mul
from inglenook.kernels.packed_weight import PackedWeight, unpack_weight
from inglenook.kernels.paged_attention import paged_attention
from inglenook.kernels.rms_norm import rms_norm
from inglenook.kernels.rotary_embedding import rotary_embedding
from inglenook.kernels.silu_and_mul import silu_and_mul

RopeTables = tuple[torch.Tensor, torch.Tensor]
# offset and unit, float32 [H_kv, D], of `key_range.py`
KeyRangeTensors = tuple[torch.Tensor, torch.Tensor]


@dataclass(frozen=True, slots=True, eq=False)
class DeviceLinear:
    """A product's weights: matrices one below the other, each in its own format, and a bias float32 [N] or None."""

    parts: tuple[PackedWeight, ...]
    bias: torch.Tensor | None = None

    @property
    def outputs(self) -> int:
        """N."""
        return sum(part.rows for part in self.parts)


@dataclass(frozen=True, slots=True)
class Rows:
    """Which rows an attention is for, all on the device: those of `count` sequences that are neighbours.

    tables: int32 [count, width].  starts: int32 [count + 1], rows of the step.  lengths: int32 [count].
    """

    count: int
    tables: torch.Tensor
    starts: torch.Tensor
    lengths: torch.Tensor


@dataclass(frozen=True, slots=True, eq=False)
class Places:
    """Where the rows of a step are in their sequences, and where their keys and values go (-1: nowhere): int64 [T] each."""

    positions: torch.Tensor
    slots: torch.Tensor


@dataclass(frozen=True, slots=True, eq=False)
class KVLayer:
    """Keys and values of one layer: [blocks, H_kv, page, D]; scales float32 [blocks, H_kv, page] for int8, else None."""

    k: torch.Tensor
    v: torch.Tensor
    k_scales: torch.Tensor | None
    v_scales: torch.Tensor | None
    window: int

    @classmethod
    def of(cls, kv: KVTensors, index: int) -> KVLayer:
        """Layer `index` of a group."""
        k_scales, v_scales = (None if s is None else s[index] for s in (kv.k_scale, kv.v_scale))
        return cls(kv.k[index], kv.v[index], k_scales, v_scales, kv.group.window)


@dataclass(frozen=True, slots=True, eq=False)
class Branch:
    """What joins the residual stream: x [T, N], normalised by `post_weight` float32 [N] if there is one, times `factor`."""

    x: torch.Tensor
    post_weight: torch.Tensor | None
    factor: float


@dataclass(frozen=True, slots=True, eq=False)
class HeadRules:
    """What happens to the heads of queries and keys before they are used, in this order.

    norms: weights of their norms, float32 [D], with `eps`.  rope: None rotates nothing.  keys: None leaves them as they are.
    """

    norms: tuple[torch.Tensor, torch.Tensor] | None
    eps: float
    rope: RopeTables | None
    keys: KeyRangeTensors | None


@dataclass(frozen=True, slots=True)
class ScoreRules:
    """Scores are multiplied by `scale`, then softly capped at `softcap` unless that is 0."""

    scale: float
    softcap: float


class DeviceOperations(Protocol):
    """The operations; shapes as in the kernels' docstrings, T rows each."""

    def embedding(self, table: PackedWeight, ids: torch.Tensor, out: torch.Tensor, factor: float) -> None:
        """Write rows of a table times a factor."""

    def add_rms_norm(
        self,
        x: torch.Tensor,
        weight: torch.Tensor | None,
        eps: float,
        out: torch.Tensor,
        branch: Branch | None,
    ) -> None:
        """Join a branch to the stream x, in place, and write the stream's norm."""

    def rms_norm_rows(self, x: torch.Tensor, weight: torch.Tensor, eps: float) -> None:
        """Normalise rows in place."""

    def linear(self, x: torch.Tensor, linear: DeviceLinear, out: torch.Tensor) -> None:
        """Multiply."""

    def rotate_and_store(
        self, qkv: torch.Tensor, rules: HeadRules, places: Places, q: torch.Tensor, kv: KVLayer
    ) -> None:
        """Write the queries and store keys and values."""

    def decode_attention(
        self, q: torch.Tensor, kv: KVLayer, rows: Rows, out: torch.Tensor, rules: ScoreRules
    ) -> None:
        """Attend with one row a sequence: rows 0 .. count - 1."""

    def prefill_attention(
        self, q: torch.Tensor, kv: KVLayer, rows: Rows, out: torch.Tensor, rules: ScoreRules
    ) -> None:
        """Attend with any number of rows a sequence."""

    def gated_activation(self, gate_up: torch.Tensor, out: torch.Tensor, gate: Activation) -> None:
        """Apply the gate."""


class PlainOperations:
    """The operations by their formulas: float32 inside, rounded to the buffers' dtype."""

    def embedding(self, table: PackedWeight, ids: torch.Tensor, out: torch.Tensor, factor: float) -> None:
        """Look up in the unpacked table."""
        out.copy_(unpack_weight(table)[ids] * factor)

    def add_rms_norm(
        self,
        x: torch.Tensor,
        weight: torch.Tensor | None,
        eps: float,
        out: torch.Tensor,
        branch: Branch | None,
    ) -> None:
        """Norms by the formula."""
        if branch is not None:
            joined = branch.x.float()
            if branch.post_weight is not None:
                joined = rms_norm(joined, branch.post_weight, eps)
            x += joined * branch.factor
        out.copy_(x if weight is None else rms_norm(x, weight, eps))

    def rms_norm_rows(self, x: torch.Tensor, weight: torch.Tensor, eps: float) -> None:
        """The norm by the formula."""
        x.copy_(rms_norm(x.float(), weight, eps))

    def linear(self, x: torch.Tensor, linear: DeviceLinear, out: torch.Tensor) -> None:
        """Multiply by the unpacked weights."""
        y = torch.cat([x.float() @ unpack_weight(part).T for part in linear.parts], dim=1)
        out.copy_(y if linear.bias is None else y + linear.bias)

    def rotate_and_store(
        self, qkv: torch.Tensor, rules: HeadRules, places: Places, q: torch.Tensor, kv: KVLayer
    ) -> None:
        """Rotate by the formula and store row by row."""
        tokens, heads, size = q.shape
        kv_heads, page = kv.k.shape[1:3]
        query, k, v = torch.split(qkv.float().view(tokens, -1, size), [heads, kv_heads, kv_heads], dim=1)
        if rules.norms is not None:
            query, k = (rms_norm(x, w, rules.eps) for x, w in zip((query, k), rules.norms, strict=True))
        if rules.rope is not None:
            cos, sin = (table[places.positions] for table in rules.rope)
            query, k = rotary_embedding(query, cos, sin), rotary_embedding(k, cos, sin)
        if rules.keys is not None:
            offset, unit = rules.keys
            query = query * unit.repeat_interleave(heads // kv_heads, 0)
            k = (k - offset) / unit
        q.copy_(query)
        kept = places.slots >= 0
        block, offset_in = places.slots[kept] // page, places.slots[kept] % page
        for x, cache, scales in ((k, kv.k, kv.k_scales), (v, kv.v, kv.v_scales)):
            x = x[kept]
            if scales is not None:
                scale = x.abs().amax(-1) / 127
                scales[block, :, offset_in] = scale
                x = torch.where(scale[..., None] > 0, x / scale[..., None], 0.0).round()
            elif cache.dtype == torch.float8_e4m3fn:
                x = x.clamp(-448, 448)
            cache[block, :, offset_in] = x.to(cache.dtype)

    def decode_attention(
        self, q: torch.Tensor, kv: KVLayer, rows: Rows, out: torch.Tensor, rules: ScoreRules
    ) -> None:
        """The formula; rows of padded sequences, whose context is 0, become 0."""
        starts = torch.arange(rows.count + 1, dtype=torch.int32)
        real = int((rows.lengths > 0).sum())
        out.zero_()
        few = Rows(real, rows.tables[:real], starts[: real + 1], rows.lengths[:real])
        self.prefill_attention(q[:real], kv, few, out[:real], rules)

    def prefill_attention(
        self, q: torch.Tensor, kv: KVLayer, rows: Rows, out: torch.Tensor, rules: ScoreRules
    ) -> None:
        """The formula in float32."""
        k, v = kv.k.float(), kv.v.float()
        if kv.k_scales is not None and kv.v_scales is not None:
            k, v = k * kv.k_scales[..., None], v * kv.v_scales[..., None]
        begin, end = int(rows.starts[0]), int(rows.starts[-1])
        out[begin:end] = paged_attention(
            q[begin:end].float(),
            k,
            v,
            rows.tables,
            rows.starts - begin,
            rows.lengths,
            scale=rules.scale,
            window=kv.window,
            softcap=rules.softcap,
        ).to(out.dtype)

    def gated_activation(self, gate_up: torch.Tensor, out: torch.Tensor, gate: Activation) -> None:
        """The gate by the formula."""
        out.copy_(
            silu_and_mul(gate_up) if gate == "silu" else gelu_and_mul(gate_up, by_tanh=gate == "gelu_tanh")
        )
