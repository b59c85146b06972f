"""The decoder as a card runs it: operations in place, over buffers made once, so that a step can be captured.

The arithmetic is that of `models/decoder.py`, with norms joined to the residual stream and rotation to the storing of
keys. The residual stream is float32, everything between is the compute dtype, logits are float32. Nothing here waits
for the device, nor depends on a number that only the device knows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import torch

from inglenook.engine.cards.device_operations import (
    Branch,
    DeviceLinear,
    DeviceOperations,
    HeadRules,
    KeyRangeTensors,
    KVLayer,
    Places,
    RopeTables,
    Rows,
    ScoreRules,
)
from inglenook.engine.kv_cache import KVTensors
from inglenook.engine.models.spec import ModelSpec
from inglenook.kernels.packed_weight import PackedWeight


@dataclass(frozen=True, slots=True, eq=False)
class DeviceLayer:
    """One layer's weights; norms float32, None where a model has none."""

    attention_norm: torch.Tensor | None
    qkv: DeviceLinear
    q_norm: torch.Tensor | None
    k_norm: torch.Tensor | None
    o: DeviceLinear
    attention_post_norm: torch.Tensor | None
    mlp_norm: torch.Tensor | None
    gate_up: DeviceLinear
    down: DeviceLinear
    mlp_post_norm: torch.Tensor | None
    keys: KeyRangeTensors | None = None


@dataclass(frozen=True, slots=True, eq=False)
class DeviceWeights:
    """All weights on the device; `rope` and `local_rope` are cosines and sines float32 [context, P].

    embedding: None where the first layers lie elsewhere.
    """

    embedding: PackedWeight | None
    layers: tuple[DeviceLayer, ...]
    output_norm: torch.Tensor
    head: DeviceLinear
    rope: RopeTables
    local_rope: RopeTables | None


@dataclass(frozen=True, slots=True)
class StepInputs:
    """A step on the device: `Batch` without its logits rows, and what of it is known on the host.

    num_decodes: leading sequences with one row each.  prefills: the rows of the others, None without any.
    logits_rows: int64 [R], None for all rows.
    hidden: float32 [T, hidden], what earlier layers elsewhere made; None where the embedding is here.
    """

    token_ids: torch.Tensor
    positions: torch.Tensor
    slots: tuple[torch.Tensor, ...]
    decodes: tuple[Rows, ...]
    prefills: tuple[Rows, ...]
    logits_rows: torch.Tensor | None
    hidden: torch.Tensor | None = None


class Ranks(Protocol):
    """The cards that share a model, seen from one of them; all do the same steps in the same order."""

    count: int

    def add_up(self, x: torch.Tensor) -> None:
        """Replace x by its sum over all cards, on every card."""

    def gather(self, x: torch.Tensor) -> torch.Tensor:
        """Return x [R, N] of all cards, side by side: [R, count * N]."""


class StepBuffers:
    """Where a step of up to `capacity` rows keeps its numbers."""

    def __init__(self, spec: ModelSpec, capacity: int, dtype: torch.dtype, device: torch.device) -> None:
        def make(*shape: int, kind: torch.dtype = dtype) -> torch.Tensor:
            return torch.empty((capacity, *shape), dtype=kind, device=device)

        self.capacity = capacity
        self.x = make(spec.hidden_size, kind=torch.float32)
        self.normed = make(spec.hidden_size)
        self.branch = make(spec.hidden_size)
        self.qkv = make(spec.q_size + 2 * spec.kv_size)
        self.q = make(spec.num_heads, spec.head_size)
        self.attended = make(spec.num_heads, spec.head_size)
        self.gate_up = make(2 * spec.intermediate_size)
        self.inner = make(spec.intermediate_size)


class DeviceDecoder:
    """A decoder over paged KV tensors on one device, or one card's part of it where `ranks` share it."""

    def __init__(
        self,
        spec: ModelSpec,
        weights: DeviceWeights,
        operations: DeviceOperations,
        ranks: Ranks | None = None,
    ) -> None:
        self.spec = spec
        self.weights = weights
        self._ops = operations
        self._ranks = ranks

    @torch.inference_mode()
    def step(
        self, inputs: StepInputs, kv: tuple[KVTensors, ...], buffers: StepBuffers, logits: torch.Tensor
    ) -> None:
        """Run one step; logits: float32 [R, vocab_size], written."""
        spec, ops = self.spec, self._ops
        rows = inputs.token_ids.shape[0]
        x, normed, branch = buffers.x[:rows], buffers.normed[:rows], buffers.branch[:rows]
        if inputs.hidden is not None:
            x.copy_(inputs.hidden)
        else:
            assert self.weights.embedding is not None, "a model without an embedding needs hidden states"
            ops.embedding(self.weights.embedding, inputs.token_ids, x, spec.embedding_scale)
        place = {
            layer: (g, i) for g, tensors in enumerate(kv) for i, layer in enumerate(tensors.group.layers)
        }
        branch_in: Branch | None = None
        last = len(self.weights.layers) - 1
        for number, layer in enumerate(self.weights.layers):
            ops.add_rms_norm(x, layer.attention_norm, spec.norm_eps, normed, branch_in)
            attended = self._attend(number, layer, inputs, kv, place[number], buffers)
            if number == last and inputs.logits_rows is not None:
                # only rows whose logits are wanted go on
                attended = attended.index_select(0, inputs.logits_rows)
                x = x.index_select(0, inputs.logits_rows)
                rows = x.shape[0]
                normed, branch = buffers.normed[:rows], buffers.branch[:rows]
            self._add(attended.flatten(1), layer.o, branch)
            joined = Branch(branch, layer.attention_post_norm, spec.residual_scale)
            ops.add_rms_norm(x, layer.mlp_norm, spec.norm_eps, normed, joined)
            gate_up, inner = buffers.gate_up[:rows], buffers.inner[:rows]
            ops.linear(normed, layer.gate_up, gate_up)
            ops.gated_activation(gate_up, inner, spec.activation)
            self._add(inner, layer.down, branch)
            branch_in = Branch(branch, layer.mlp_post_norm, spec.residual_scale)
        ops.add_rms_norm(x, self.weights.output_norm, spec.norm_eps, normed, branch_in)
        self._score(normed, logits)
        if spec.logit_scale != 1:
            logits *= spec.logit_scale
        if spec.logit_softcap:
            logits.div_(spec.logit_softcap).tanh_().mul_(spec.logit_softcap)

    def _add(self, x: torch.Tensor, linear: DeviceLinear, branch: torch.Tensor) -> None:
        """A product whose inputs the cards have in parts."""
        self._ops.linear(x, linear, branch)
        if self._ranks is not None:
            self._ranks.add_up(branch)

    def _score(self, normed: torch.Tensor, logits: torch.Tensor) -> None:
        """The head, whose outputs the cards have in parts of one size but for the last, which may be shorter."""
        head = self.weights.head
        if self._ranks is None:
            self._ops.linear(normed, head, logits)
            return
        vocabulary = self.spec.vocab_size
        part = logits.new_zeros((logits.shape[0], -(-vocabulary // self._ranks.count)))
        self._ops.linear(normed, head, part[:, : head.outputs])
        logits.copy_(self._ranks.gather(part)[:, :vocabulary])

    def _attend(
        self,
        number: int,
        layer: DeviceLayer,
        inputs: StepInputs,
        kv: tuple[KVTensors, ...],
        place: tuple[int, int],
        buffers: StepBuffers,
    ) -> torch.Tensor:
        spec, ops = self.spec, self._ops
        group, index = place
        rows = inputs.token_ids.shape[0]
        qkv, q, attended = buffers.qkv[:rows], buffers.q[:rows], buffers.attended[:rows]
        ops.linear(buffers.normed[:rows], layer.qkv, qkv)
        norms = None
        if layer.q_norm is not None and layer.k_norm is not None:
            if spec.qk_norm == "whole":
                ops.rms_norm_rows(qkv[:, : spec.q_size], layer.q_norm, spec.norm_eps)
                keys = qkv[:, spec.q_size : spec.q_size + spec.kv_size]
                ops.rms_norm_rows(keys, layer.k_norm, spec.norm_eps)
            else:
                norms = (layer.q_norm, layer.k_norm)
        rope: RopeTables | None = self.weights.rope
        if number in spec.unrotated_layers:
            rope = None
        elif kv[group].group.window and self.weights.local_rope is not None:
            rope = self.weights.local_rope
        rules = HeadRules(norms, spec.norm_eps, rope, layer.keys)
        own = KVLayer.of(kv[group], index)
        ops.rotate_and_store(qkv, rules, Places(inputs.positions, inputs.slots[group]), q, own)
        scores = ScoreRules(spec.attention_scale, spec.attention_softcap)
        if inputs.decodes:
            ops.decode_attention(q, own, inputs.decodes[group], attended, scores)
        if inputs.prefills:
            ops.prefill_attention(q, own, inputs.prefills[group], attended, scores)
        return attended
