"""The operations of a step on an NVIDIA card: which kernel runs how many rows, and the memory they work in.

Products with 1 to 4 rows, with up to `WIDE_ROWS`, and with more go three ways (`quantized_linear_triton.py`).
`is_deterministic` sends every product through one tile and one order, and all attention through the kernel of
prompts: a row then has the same bits at every number of rows, at a price.
"""

from __future__ import annotations

from typing import TypedDict

import torch

from inglenook.engine.cards.device_operations import (
    Branch,
    DeviceLinear,
    HeadRules,
    KVLayer,
    Places,
    Rows,
    ScoreRules,
)
from inglenook.engine.models.spec import Activation, ModelSpec
from inglenook.kernels import (
    gated_activation_triton,
    packed_weight_triton,
    paged_attention_triton,
    prefill_attention_triton,
    quantized_linear_triton,
    rms_norm_triton,
    rotary_embedding_triton,
)
from inglenook.kernels.packed_weight import PackedWeight

_EXACT_TILE = 16
_LARGEST_TILE = 128 * 128  # results of one program of a product
_UNPACKED_ELEMENTS = (
    1 << 25
)  # of a matrix unpacked at a time: 64 MB of bfloat16 partly stay in the card's cache


class TritonOperations:
    """The kernels, with their work space; see `DeviceOperations`.

    num_sms: multiprocessors of the card. The spec's context length fixes into how many parts contexts are cut.
    """

    embedding = staticmethod(packed_weight_triton.embedding)
    rms_norm_rows = staticmethod(rms_norm_triton.rms_norm_rows)

    def __init__(
        self, spec: ModelSpec, device: torch.device, num_sms: int, *, is_deterministic: bool
    ) -> None:
        self._num_sms = num_sms
        self._max_context = spec.context_length
        self._is_deterministic = is_deterministic
        # Work is split only while that leaves at most two programs a multiprocessor, so this is always enough; captured
        # graphs keep its address.
        group = spec.num_heads // spec.num_kv_heads
        tile = max(_LARGEST_TILE, group * (spec.head_size + 2))
        self._workspace = torch.empty(2 * num_sms * tile, dtype=torch.float32, device=device)
        self._unpacked = torch.empty(0)

    def add_rms_norm(
        self,
        x: torch.Tensor,
        weight: torch.Tensor | None,
        eps: float,
        out: torch.Tensor,
        branch: Branch | None,
    ) -> None:
        """Join and normalise, one launch."""
        if branch is None:
            rms_norm_triton.add_rms_norm(x, weight, eps, out)
            return
        rms_norm_triton.add_rms_norm(
            x, weight, eps, out, branch=branch.x, post_weight=branch.post_weight, factor=branch.factor
        )

    def linear(self, x: torch.Tensor, linear: DeviceLinear, out: torch.Tensor) -> None:
        """Multiply by each matrix into its columns of `out`."""
        first = 0
        for part in linear.parts:
            target = out if len(linear.parts) == 1 else out[:, first : first + part.rows]
            bias = None if linear.bias is None else linear.bias[first : first + part.rows]
            self._product(x, part, bias, target)
            first += part.rows

    def _product(
        self, x: torch.Tensor, weight: PackedWeight, bias: torch.Tensor | None, out: torch.Tensor
    ) -> None:
        rows = x.shape[0]
        if self._is_deterministic:
            quantized_linear_triton.quantized_linear(x, weight, bias, out, tile_rows=_EXACT_TILE)
            return
        few = quantized_linear_triton.FEW_ROWS
        # float32 results are logits, which a product in bfloat16 would round
        may_unpack = x.dtype != torch.float32 and out.dtype == x.dtype
        is_plain = weight.format.bits == 16
        if may_unpack and rows > (few if is_plain else quantized_linear_triton.WIDE_ROWS):
            self._wide_product(x, weight, bias, out)
            return
        splits, workspace = 1, None
        if rows > few:
            splits = quantized_linear_triton.split_count(rows, weight.rows, weight.columns, self._num_sms)
            workspace = self._workspace
        quantized_linear_triton.quantized_linear(x, weight, bias, out, splits=splits, workspace=workspace)

    def _wide_product(
        self, x: torch.Tensor, weight: PackedWeight, bias: torch.Tensor | None, out: torch.Tensor
    ) -> None:
        if weight.format.bits == 16:
            torch.mm(x, weight.low.T, out=out)
        else:
            step = max(1, _UNPACKED_ELEMENTS // weight.columns)
            for first in range(0, weight.rows, step):
                part = weight.select_rows(slice(first, first + step))
                plain = self._unpacked_space(part, x)
                packed_weight_triton.unpack(part, plain)
                torch.mm(x, plain.T, out=out[:, first : first + part.rows])
        if bias is not None:
            out += bias

    def rotate_and_store(
        self, qkv: torch.Tensor, rules: HeadRules, places: Places, q: torch.Tensor, kv: KVLayer
    ) -> None:
        """Rotate and store, one launch."""
        rotary_embedding_triton.rotate_and_store(
            qkv,
            rules.rope,
            places.positions,
            places.slots,
            q,
            kv.k,
            kv.v,
            k_scales=kv.k_scales,
            v_scales=kv.v_scales,
            norms=rules.norms,
            eps=rules.eps,
            keys=rules.keys,
        )

    def decode_attention(
        self, q: torch.Tensor, kv: KVLayer, rows: Rows, out: torch.Tensor, rules: ScoreRules
    ) -> None:
        """Attend in parts, whose number depends on how many sequences there are and on nothing that changes."""
        if self._is_deterministic:
            self.prefill_attention(q, kv, rows, out, rules)
            return
        kv_heads = kv.k.shape[1]
        paged_attention_triton.decode_attention(
            q[: rows.count],
            kv.k,
            kv.v,
            rows.tables,
            rows.lengths,
            out[: rows.count],
            parts=paged_attention_triton.part_count(rows.count, kv_heads, self._max_context, self._num_sms),
            workspace=self._workspace,
            **_rules(kv, rules),
        )

    def prefill_attention(
        self, q: torch.Tensor, kv: KVLayer, rows: Rows, out: torch.Tensor, rules: ScoreRules
    ) -> None:
        """Attend, one launch for all sequences."""
        prefill_attention_triton.prefill_attention(
            q, kv.k, kv.v, rows.tables, rows.starts, rows.lengths, out, **_rules(kv, rules)
        )

    def gated_activation(self, gate_up: torch.Tensor, out: torch.Tensor, gate: Activation) -> None:
        """Apply the gate."""
        gated_activation_triton.gated_activation(gate_up, out, gate)

    def _unpacked_space(self, part: PackedWeight, x: torch.Tensor) -> torch.Tensor:
        if self._unpacked.numel() < part.rows * part.columns:
            self._unpacked = torch.empty(_UNPACKED_ELEMENTS, dtype=x.dtype, device=x.device)
        return self._unpacked[: part.rows * part.columns].view(part.rows, part.columns)


class _AttentionRules(TypedDict):
    scale: float
    softcap: float
    window: int
    k_scales: torch.Tensor | None
    v_scales: torch.Tensor | None


def _rules(kv: KVLayer, rules: ScoreRules) -> _AttentionRules:
    """What both kernels of attention are told beside rows and tensors."""
    return {
        "scale": rules.scale,
        "softcap": rules.softcap,
        "window": kv.window,
        "k_scales": kv.k_scales,
        "v_scales": kv.v_scales,
    }
