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


class DeviceOperations(Protocol):
    """The operations; shapes as in the kernels' docstrings, T rows each."""

    def embedding(
        self, table: PackedWeight, token_ids: torch.Tensor, out: torch.Tensor, factor: float
    ) -> None:
        """Write rows of a table times a factor."""

    def add_rms_norm(
        self,
        x: torch.Tensor,
        weight: torch.Tensor | None,
        eps: float,
        out: torch.Tensor,
        *,
        branch: torch.Tensor | None = None,
        post_weight: torch.Tensor | None = None,
        factor: float = 1.0,
    ) -> None:
        """Join a branch to the stream x, in place, and write the stream's norm."""

    def rms_norm_rows(self, x: torch.Tensor, weight: torch.Tensor, eps: float) -> None:
        """Normalise rows in place."""

    def linear(self, x: torch.Tensor, linear: DeviceLinear, out: torch.Tensor) -> None:
        """Multiply."""

    def rotate_and_store(
        self,
        qkv: torch.Tensor,
        tables: RopeTables | None,
        positions: torch.Tensor,
        slots: torch.Tensor,
        q_out: torch.Tensor,
        kv: KVTensors,
        index: int,
        norms: tuple[torch.Tensor, torch.Tensor] | None,
        eps: float,
        keys: KeyRangeTensors | None = None,
    ) -> None:
        """Rotate queries and keys, fit them to a range; store keys and values of layer `index` of a group."""

    def decode_attention(
        self,
        q: torch.Tensor,
        kv: KVTensors,
        index: int,
        rows: Rows,
        out: torch.Tensor,
        scale: float,
        softcap: float,
    ) -> None:
        """Attend with one row a sequence: rows 0 .. count - 1."""

    def prefill_attention(
        self,
        q: torch.Tensor,
        kv: KVTensors,
        index: int,
        rows: Rows,
        out: torch.Tensor,
        scale: float,
        softcap: float,
    ) -> None:
        """Attend with any number of rows a sequence."""

    def gated_activation(self, gate_up: torch.Tensor, out: torch.Tensor, gate: Activation) -> None:
        """Apply the gate."""


class PlainOperations:
    """The operations by their formulas: float32 inside, rounded to the buffers' dtype."""

    def embedding(
        self, table: PackedWeight, token_ids: torch.Tensor, out: torch.Tensor, factor: float
    ) -> None:
        """Look up in the unpacked table."""
        out.copy_(unpack_weight(table)[token_ids] * factor)

    def add_rms_norm(
        self,
        x: torch.Tensor,
        weight: torch.Tensor | None,
        eps: float,
        out: torch.Tensor,
        *,
        branch: torch.Tensor | None = None,
        post_weight: torch.Tensor | None = None,
        factor: float = 1.0,
    ) -> None:
        """Norms by the formula."""
        if branch is not None:
            joined = branch.float()
            if post_weight is not None:
                joined = rms_norm(joined, post_weight, eps)
            x += joined * factor
        out.copy_(x if weight is None else rms_norm(x, weight, eps))

    def rms_norm_rows(self, x: torch.Tensor, weight: torch.Tensor, eps: float) -> None:
        """The norm by the formula."""
        x.copy_(rms_norm(x.float(), weight, eps))

    def linear(self, x: torch.Tensor, linear: DeviceLinear, out: torch.Tensor) -> None:
        """Multiply by the unpacked weights."""
        y = torch.cat([x.float() @ unpack_weight(part).T for part in linear.parts], dim=1)
        out.copy_(y if linear.bias is None else y + linear.bias)

    def rotate_and_store(
        self,
        qkv: torch.Tensor,
        tables: RopeTables | None,
        positions: torch.Tensor,
        slots: torch.Tensor,
        q_out: torch.Tensor,
        kv: KVTensors,
        index: int,
        norms: tuple[torch.Tensor, torch.Tensor] | None,
        eps: float,
        keys: KeyRangeTensors | None = None,
    ) -> None:
        """Rotate by the formula and store row by row."""
        tokens, heads, size = q_out.shape
        kv_heads = kv.group.num_kv_heads
        q, k, v = torch.split(qkv.float().view(tokens, -1, size), [heads, kv_heads, kv_heads], dim=1)
        if norms is not None:
            q, k = rms_norm(q, norms[0], eps), rms_norm(k, norms[1], eps)
        if tables is not None:
            cos, sin = tables[0][positions], tables[1][positions]
            q, k = rotary_embedding(q, cos, sin), rotary_embedding(k, cos, sin)
        if keys is not None:
            q = q * keys[1].repeat_interleave(heads // kv_heads, 0)
            k = (k - keys[0]) / keys[1]
        q_out.copy_(q)
        kept = slots >= 0
        block, offset = slots[kept] // kv.k.shape[3], slots[kept] % kv.k.shape[3]
        for x, cache, scales in ((k, kv.k, kv.k_scale), (v, kv.v, kv.v_scale)):
            x = x[kept]
            if scales is not None:
                scale = x.abs().amax(-1) / 127
                scales[index][block, :, offset] = scale
                x = torch.where(scale[..., None] > 0, x / scale[..., None], 0.0).round()
            elif cache.dtype == torch.float8_e4m3fn:
                x = x.clamp(-448, 448)
            cache[index][block, :, offset] = x.to(cache.dtype)

    def decode_attention(
        self,
        q: torch.Tensor,
        kv: KVTensors,
        index: int,
        rows: Rows,
        out: torch.Tensor,
        scale: float,
        softcap: float,
    ) -> None:
        """The formula; rows of padded sequences, whose context is 0, become 0."""
        starts = torch.arange(rows.count + 1, dtype=torch.int32)
        real = int((rows.lengths > 0).sum())
        out.zero_()
        few = Rows(real, rows.tables[:real], starts[: real + 1], rows.lengths[:real])
        self.prefill_attention(q[:real], kv, index, few, out[:real], scale, softcap)

    def prefill_attention(
        self,
        q: torch.Tensor,
        kv: KVTensors,
        index: int,
        rows: Rows,
        out: torch.Tensor,
        scale: float,
        softcap: float,
    ) -> None:
        """The formula in float32."""
        k, v = kv.k[index].float(), kv.v[index].float()
        if kv.k_scale is not None and kv.v_scale is not None:
            k, v = k * kv.k_scale[index][..., None], v * kv.v_scale[index][..., None]
        begin = int(rows.starts[0])
        end = int(rows.starts[-1])
        out[begin:end] = paged_attention(
            q[begin:end].float(),
            k,
            v,
            rows.tables,
            rows.starts - begin,
            rows.lengths,
            scale=scale,
            window=kv.group.window,
            softcap=softcap,
        ).to(out.dtype)

    def gated_activation(self, gate_up: torch.Tensor, out: torch.Tensor, gate: Activation) -> None:
        """The gate by the formula."""
        out.copy_(
            silu_and_mul(gate_up) if gate == "silu" else gelu_and_mul(gate_up, by_tanh=gate == "gelu_tanh")
        )
