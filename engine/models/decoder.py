"""The one decoder: token embedding, layers of attention and gated feed-forward, final norm, head.

It knows a `ModelSpec` and a `Batch`; how each operation is done is passed in as `Operations`, so the reference and
the faster PyTorch back ends run this same code. The residual stream is float32 everywhere. Back ends that run a
whole step in one call (native CPU) do not use it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import torch

from inglenook.engine.batch import Batch
from inglenook.engine.kv_cache import KVTensors
from inglenook.engine.models.rope import rope_tables
from inglenook.engine.models.spec import ModelSpec


@dataclass(frozen=True, slots=True)
class Linear:
    """A matrix product's weights: weight [N, K] in the compute dtype, bias [N] float32 or None."""

    weight: torch.Tensor
    bias: torch.Tensor | None = None


@dataclass(frozen=True, slots=True)
class LayerWeights:
    """One layer; `qkv` and `gate_up` hold their parts one after another along N."""

    attention_norm: torch.Tensor
    qkv: Linear
    o: Linear
    mlp_norm: torch.Tensor
    gate_up: Linear
    down: Linear


@dataclass(frozen=True, slots=True)
class DecoderWeights:
    """All weights; `head` is the embedding's own tensor when tied. Norms are float32."""

    embedding: torch.Tensor
    layers: tuple[LayerWeights, ...]
    output_norm: torch.Tensor
    head: torch.Tensor


class Operations(Protocol):
    """The operations of a step. Activations are float32 [T, ...]; shapes as in the kernels' docstrings."""

    def embedding(self, table: torch.Tensor, token_ids: torch.Tensor) -> torch.Tensor:
        """Rows of the table as float32 [T, hidden]."""

    def rms_norm(self, x: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
        """Normalise rows."""

    def linear(self, x: torch.Tensor, linear: Linear) -> torch.Tensor:
        """Return x times the transposed weight, plus bias, as float32."""

    def rotary_embedding(self, x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
        """Rotate heads."""

    def store_kv(
        self,
        k: torch.Tensor,
        v: torch.Tensor,
        k_cache: torch.Tensor,
        v_cache: torch.Tensor,
        slots: torch.Tensor,
    ) -> None:
        """Write keys and values."""

    def attention(
        self, q: torch.Tensor, kv: KVTensors, index: int, batch: Batch, group: int, scale: float
    ) -> torch.Tensor:
        """Attend in layer `index` of KV group `group`; returns float32 [T, H, D]."""

    def silu_and_mul(self, gate_up: torch.Tensor) -> torch.Tensor:
        """Apply the gated activation."""

    def logits(self, x: torch.Tensor, head: torch.Tensor) -> torch.Tensor:
        """Scores of the vocabulary, float32 [R, V]."""


class Decoder:
    """A decoder-only transformer over paged KV tensors."""

    def __init__(self, spec: ModelSpec, weights: DecoderWeights, operations: Operations) -> None:
        self.spec = spec
        self.weights = weights
        self._ops = operations
        cos, sin = rope_tables(spec.rope, spec.context_length)
        self._cos, self._sin = torch.from_numpy(cos), torch.from_numpy(sin)

    @torch.inference_mode()
    def forward(self, batch: Batch, kv: tuple[KVTensors, ...]) -> torch.Tensor:
        """Run one step; returns float32 [R, vocab_size] for `batch.logits_rows`."""
        spec, ops = self.spec, self._ops
        place = {
            layer: (group, index)
            for group, tensors in enumerate(kv)
            for index, layer in enumerate(tensors.group.layers)
        }
        cos, sin = self._cos[batch.positions], self._sin[batch.positions]
        x = ops.embedding(self.weights.embedding, batch.token_ids)
        last = len(self.weights.layers) - 1
        for number, layer in enumerate(self.weights.layers):
            group, index = place[number]
            tensors = kv[group]
            qkv = ops.linear(ops.rms_norm(x, layer.attention_norm, spec.norm_eps), layer.qkv)
            q, k, v = torch.split(qkv, [spec.q_size, spec.kv_size, spec.kv_size], dim=-1)
            q = ops.rotary_embedding(q.reshape(-1, spec.num_heads, spec.head_size), cos, sin)
            k = ops.rotary_embedding(k.reshape(-1, spec.num_kv_heads, spec.head_size), cos, sin)
            v = v.reshape(-1, spec.num_kv_heads, spec.head_size)
            ops.store_kv(k, v, tensors.k[index], tensors.v[index], batch.groups[group].slots)
            attended = ops.attention(q, tensors, index, batch, group, spec.attention_scale)
            if number == last:
                # Only rows whose logits are wanted go on; keys and values of all rows are stored by now.
                attended, x = attended[batch.logits_rows], x[batch.logits_rows]
            x = x + ops.linear(attended.flatten(1), layer.o)
            gate_up = ops.linear(ops.rms_norm(x, layer.mlp_norm, spec.norm_eps), layer.gate_up)
            x = x + ops.linear(ops.silu_and_mul(gate_up), layer.down)
        x = ops.rms_norm(x, self.weights.output_norm, spec.norm_eps)
        return ops.logits(x, self.weights.head)
