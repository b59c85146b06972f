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
from inglenook.engine.models.lora import Worn
from inglenook.engine.models.rope import rope_tables
from inglenook.engine.models.spec import Activation, ModelSpec, RopeSpec


@dataclass(frozen=True, slots=True)
class Linear:
    """A matrix product's weights: weight [N, K] in the compute dtype, bias [N] float32 or None."""

    weight: torch.Tensor
    bias: torch.Tensor | None = None


@dataclass(frozen=True, slots=True)
class MLPWeights:
    """A gated feed-forward network; `gate_up` holds its parts one after another along N."""

    gate_up: Linear
    down: Linear


@dataclass(frozen=True, slots=True)
class LayerWeights:
    """One layer; `qkv` holds its parts one after another along N. Norms that a model has not are None.

    mlps: one network, or with a `router` one for each expert.
    """

    attention_norm: torch.Tensor | None
    qkv: Linear
    q_norm: torch.Tensor | None
    k_norm: torch.Tensor | None
    o: Linear
    attention_post_norm: torch.Tensor | None
    mlp_norm: torch.Tensor | None
    router: Linear | None
    mlps: tuple[MLPWeights, ...]
    mlp_post_norm: torch.Tensor | None


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
        self,
        q: torch.Tensor,
        kv: KVTensors,
        index: int,
        batch: Batch,
        group: int,
        scale: float,
        softcap: float,
    ) -> torch.Tensor:
        """Attend in layer `index` of KV group `group`; returns float32 [T, H, D]."""

    def activate(self, gate_up: torch.Tensor, activation: Activation) -> torch.Tensor:
        """Apply the gated activation."""

    def route(self, logits: torch.Tensor, k: int, *, normalizes: bool) -> tuple[torch.Tensor, torch.Tensor]:
        """Choose experts: weights float32 [T, k] and numbers int64 [T, k]."""

    def softcap(self, x: torch.Tensor, cap: float) -> torch.Tensor:
        """Cap scores."""

    def logits(self, x: torch.Tensor, head: torch.Tensor) -> torch.Tensor:
        """Scores of the vocabulary, float32 [R, V]."""


class Decoder:
    """A decoder-only transformer over paged KV tensors."""

    def __init__(self, spec: ModelSpec, weights: DecoderWeights, operations: Operations) -> None:
        self.spec = spec
        self.weights = weights
        self._ops = operations
        self._rope = _tables(spec.rope, spec)
        self._local_rope = self._rope if spec.local_rope is None else _tables(spec.local_rope, spec)

    @torch.inference_mode()
    def forward(self, batch: Batch, kv: tuple[KVTensors, ...]) -> torch.Tensor:
        """Run one step; returns float32 [R, vocab_size] for `batch.logits_rows`."""
        spec, ops = self.spec, self._ops
        place = {
            layer: (group, index)
            for group, tensors in enumerate(kv)
            for index, layer in enumerate(tensors.group.layers)
        }
        rope = _at(self._rope, batch.positions)
        local_rope = rope if spec.local_rope is None else _at(self._local_rope, batch.positions)
        x = ops.embedding(self.weights.embedding, batch.token_ids)
        if spec.embedding_scale != 1:
            x = x * spec.embedding_scale
        last = len(self.weights.layers) - 1
        worn = batch.worn
        for number, layer in enumerate(self.weights.layers):
            prefix = f"layers.{number}."
            group, index = place[number]
            tensors = kv[group]
            q, k, v = self._heads(self._norm(x, layer.attention_norm), layer, prefix, worn)
            if number not in spec.unrotated_layers:
                cos, sin = local_rope if tensors.group.window else rope
                q, k = ops.rotary_embedding(q, cos, sin), ops.rotary_embedding(k, cos, sin)
            ops.store_kv(k, v, tensors.k[index], tensors.v[index], batch.groups[group].slots)
            attended = ops.attention(
                q, tensors, index, batch, group, spec.attention_scale, spec.attention_softcap
            )
            if number == last:
                # Only rows whose logits are wanted go on; keys and values of all rows are stored by now.
                attended, x = attended[batch.logits_rows], x[batch.logits_rows]
                worn = None if worn is None else worn.at(batch.logits_rows)
            attended = self._linear(attended.flatten(1), layer.o, prefix + "o", worn)
            x = self._join(x, attended, layer.attention_post_norm)
            branch = self._feed_forward(self._norm(x, layer.mlp_norm), layer, prefix, worn)
            x = self._join(x, branch, layer.mlp_post_norm)
        logits = ops.logits(ops.rms_norm(x, self.weights.output_norm, spec.norm_eps), self.weights.head)
        if spec.logit_scale != 1:
            logits = logits * spec.logit_scale
        return ops.softcap(logits, spec.logit_softcap) if spec.logit_softcap else logits

    def _linear(self, x: torch.Tensor, linear: Linear, product: str, worn: Worn | None) -> torch.Tensor:
        y = self._ops.linear(x, linear)
        return y if worn is None else worn.add(product, x, y)

    def _norm(self, x: torch.Tensor, weight: torch.Tensor | None) -> torch.Tensor:
        return x if weight is None else self._ops.rms_norm(x, weight, self.spec.norm_eps)

    def _join(self, x: torch.Tensor, branch: torch.Tensor, norm: torch.Tensor | None) -> torch.Tensor:
        """Add a branch's result to the residual stream."""
        branch = self._norm(branch, norm)
        return x + (branch if self.spec.residual_scale == 1 else branch * self.spec.residual_scale)

    def _heads(
        self, x: torch.Tensor, layer: LayerWeights, prefix: str, worn: Worn | None
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Queries, keys and values of all rows, [T, H or H_kv, D] each, normalised but not rotated."""
        spec = self.spec
        sizes = [spec.q_size, spec.kv_size, spec.kv_size]
        q, k, v = torch.split(self._linear(x, layer.qkv, prefix + "qkv", worn), sizes, dim=-1)
        if spec.qk_norm == "whole":
            q, k = self._norm(q, layer.q_norm), self._norm(k, layer.k_norm)
        q = q.reshape(-1, spec.num_heads, spec.head_size)
        k = k.reshape(-1, spec.num_kv_heads, spec.head_size)
        if spec.qk_norm == "head":
            q, k = self._norm(q, layer.q_norm), self._norm(k, layer.k_norm)
        return q, k, v.reshape(-1, spec.num_kv_heads, spec.head_size)

    def _feed_forward(
        self, x: torch.Tensor, layer: LayerWeights, prefix: str, worn: Worn | None
    ) -> torch.Tensor:
        experts = self.spec.experts
        if experts is None or layer.router is None:
            return self._network(x, layer.mlps[0], prefix, "", worn)
        scores = self._linear(x, layer.router, prefix + "router", worn)
        weights, numbers = self._ops.route(scores, experts.used, normalizes=experts.normalizes)
        out = torch.zeros_like(x)
        for expert in sorted(set(numbers.flatten().tolist())):
            row, choice = torch.where(numbers == expert)
            own = None if worn is None else worn.at(row)
            result = self._network(x[row], layer.mlps[expert], prefix, f".{expert}", own)
            out[row] += weights[row, choice, None] * result
        return out

    def _network(
        self, x: torch.Tensor, mlp: MLPWeights, prefix: str, suffix: str, worn: Worn | None
    ) -> torch.Tensor:
        gate_up = self._linear(x, mlp.gate_up, f"{prefix}gate_up{suffix}", worn)
        inner = self._ops.activate(gate_up, self.spec.activation)
        return self._linear(inner, mlp.down, f"{prefix}down{suffix}", worn)


_Tables = tuple[torch.Tensor, torch.Tensor]


def _tables(rope: RopeSpec, spec: ModelSpec) -> _Tables:
    cos, sin = rope_tables(rope, spec.context_length)
    return torch.from_numpy(cos), torch.from_numpy(sin)


def _at(tables: _Tables, positions: torch.Tensor) -> _Tables:
    return tables[0][positions], tables[1][positions]
