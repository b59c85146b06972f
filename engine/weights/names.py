"""What the tensors of a model are called: canonical names with their shapes, and where each lies in GGUF and HF files.

The canonical names are those of `models/spec.py`. A model has exactly the tensors that `tensor_shapes` lists: one
that is missing and one that is left over are both errors, because an ignored tensor is a model run wrongly. Files
may hold several canonical tensors in one: a `Place` says which rows of which tensor of the file are meant.
"""

from __future__ import annotations

from dataclasses import dataclass

from inglenook.engine.models.registry import ARCHITECTURES
from inglenook.engine.models.spec import ModelSpec

# canonical name -> (GGUF name, HF name); {} is the layer
_WHOLE = {
    "embedding": ("token_embd.weight", "model.embed_tokens.weight"),
    "output_norm": ("output_norm.weight", "model.norm.weight"),
    "head": ("output.weight", "lm_head.weight"),
}
_LAYER = {
    "attention_norm": ("attn_norm.weight", "input_layernorm.weight"),
    "q": ("attn_q.weight", "self_attn.q_proj.weight"),
    "k": ("attn_k.weight", "self_attn.k_proj.weight"),
    "v": ("attn_v.weight", "self_attn.v_proj.weight"),
    "q_bias": ("attn_q.bias", "self_attn.q_proj.bias"),
    "k_bias": ("attn_k.bias", "self_attn.k_proj.bias"),
    "v_bias": ("attn_v.bias", "self_attn.v_proj.bias"),
    "q_norm": ("attn_q_norm.weight", "self_attn.q_norm.weight"),
    "k_norm": ("attn_k_norm.weight", "self_attn.k_norm.weight"),
    "o": ("attn_output.weight", "self_attn.o_proj.weight"),
    "o_bias": ("attn_output.bias", "self_attn.o_proj.bias"),
    "attention_post_norm": ("post_attention_norm.weight", "post_attention_layernorm.weight"),
    "mlp_norm": ("ffn_norm.weight", "post_attention_layernorm.weight"),
    "gate": ("ffn_gate.weight", "mlp.gate_proj.weight"),
    "up": ("ffn_up.weight", "mlp.up_proj.weight"),
    "down": ("ffn_down.weight", "mlp.down_proj.weight"),
    "gate_bias": ("ffn_gate.bias", "mlp.gate_proj.bias"),
    "up_bias": ("ffn_up.bias", "mlp.up_proj.bias"),
    "down_bias": ("ffn_down.bias", "mlp.down_proj.bias"),
    "router": ("ffn_gate_inp.weight", "mlp.gate.weight"),
    "mlp_post_norm": ("post_ffw_norm.weight", "post_feedforward_layernorm.weight"),
}
# With norms on both sides of the branches, HF files call the one before the feed-forward network so.
_SECOND_PRE_NORM = "pre_feedforward_layernorm.weight"
_FUSED = {
    "qkv": ("attn_qkv.weight", "self_attn.qkv_proj.weight"),
    "gate_up": ("ffn_up.weight", "mlp.gate_up_proj.weight"),
}
_MIXTRAL = {"gate": "w1", "up": "w3", "down": "w2"}


@dataclass(frozen=True, slots=True)
class Place:
    """Where a canonical tensor lies: rows from `first_row` of a file's tensor of the row-major `shape`."""

    name: str
    shape: tuple[int, ...]
    first_row: int = 0


def tensor_shapes(spec: ModelSpec) -> dict[str, tuple[int, ...]]:
    """All canonical names of a model with their shapes, in the order in which a step uses them."""
    layer = _layer_shapes(spec)
    shapes: dict[str, tuple[int, ...]] = {"embedding": (spec.vocab_size, spec.hidden_size)}
    for i in range(spec.num_layers):
        shapes |= {f"layers.{i}.{name}": shape for name, shape in layer.items()}
    shapes["output_norm"] = (spec.hidden_size,)
    if not spec.tied_head:
        shapes["head"] = (spec.vocab_size, spec.hidden_size)
    return shapes


def _layer_shapes(spec: ModelSpec) -> dict[str, tuple[int, ...]]:
    hidden, q, kv, mlp = spec.hidden_size, spec.q_size, spec.kv_size, spec.intermediate_size
    q_norm, k_norm = (q, kv) if spec.qk_norm == "whole" else (spec.head_size, spec.head_size)
    networks: dict[str, tuple[int, ...]] = {"gate": (mlp, hidden), "up": (mlp, hidden), "down": (hidden, mlp)}
    biases: dict[str, tuple[int, ...]] = {f"{name}_bias": shape[:1] for name, shape in networks.items()}
    if spec.experts is not None:
        networks = {
            f"{name}.{e}": shape for e in range(spec.experts.count) for name, shape in networks.items()
        }
        networks = {"router": (spec.experts.count, hidden), **networks}
    parts: list[tuple[bool, dict[str, tuple[int, ...]]]] = [
        (spec.pre_norms, {"attention_norm": (hidden,)}),
        (True, {"q": (q, hidden), "k": (kv, hidden), "v": (kv, hidden)}),
        (spec.qkv_bias, {"q_bias": (q,), "k_bias": (kv,), "v_bias": (kv,)}),
        (spec.qk_norm != "none", {"q_norm": (q_norm,), "k_norm": (k_norm,)}),
        (True, {"o": (hidden, q)}),
        (spec.o_bias, {"o_bias": (hidden,)}),
        (spec.post_norms, {"attention_post_norm": (hidden,)}),
        (spec.pre_norms, {"mlp_norm": (hidden,)}),
        (True, networks),
        (spec.mlp_bias, biases),
        (spec.post_norms, {"mlp_post_norm": (hidden,)}),
    ]
    return {name: shape for is_there, part in parts if is_there for name, shape in part.items()}


def gguf_places(spec: ModelSpec) -> dict[str, Place]:
    """Where each canonical tensor lies in a GGUF: "layers.3.q" in "blk.3.attn_q.weight"."""
    return _places(spec, 0, "blk.")


def hf_places(spec: ModelSpec) -> dict[str, Place]:
    """Where each canonical tensor lies in a safetensors folder: "layers.3.q" in "model.layers.3.self_attn.q_proj.weight"."""
    return _places(spec, 1, "model.layers.")


def _places(spec: ModelSpec, column: int, prefix: str) -> dict[str, Place]:
    fused = _fused_places(spec, column) if ARCHITECTURES[spec.architecture].fuses else {}
    places = {}
    for canonical, shape in tensor_shapes(spec).items():
        if canonical in _WHOLE:
            places[canonical] = Place(_WHOLE[canonical][column], shape)
            continue
        _, layer, name = canonical.split(".", 2)
        place = fused.get(name) or _layer_place(spec, name, column, shape)
        places[canonical] = Place(f"{prefix}{layer}.{place.name}", place.shape, place.first_row)
    return places


def _layer_place(spec: ModelSpec, name: str, column: int, shape: tuple[int, ...]) -> Place:
    """The place of a tensor within its layer."""
    if "." in name:
        return _expert_place(spec, name, column, shape)
    if column == 1:
        if name == "mlp_norm" and spec.post_norms:
            return Place(_SECOND_PRE_NORM, shape)
        if name == "router" and spec.architecture == "mixtral":
            return Place("block_sparse_moe.gate.weight", shape)
    return Place(_LAYER[name][column], shape)


def _expert_place(spec: ModelSpec, name: str, column: int, shape: tuple[int, ...]) -> Place:
    """GGUF keeps all experts of a layer in one tensor [experts, N, K], HF each one apart."""
    part, number = name.split(".")
    assert spec.experts is not None
    if column == 0:
        return Place(f"ffn_{part}_exps.weight", (spec.experts.count, *shape), int(number) * shape[0])
    if spec.architecture == "mixtral":
        return Place(f"block_sparse_moe.experts.{number}.{_MIXTRAL[part]}.weight", shape)
    return Place(f"mlp.experts.{number}.{part}_proj.weight", shape)


def _fused_places(spec: ModelSpec, column: int) -> dict[str, Place]:
    hidden, q, kv, mlp = spec.hidden_size, spec.q_size, spec.kv_size, spec.intermediate_size
    qkv, gate_up = _FUSED["qkv"][column], _FUSED["gate_up"][column]
    rows = (q + 2 * kv, hidden)
    return {
        "q": Place(qkv, rows),
        "k": Place(qkv, rows, q),
        "v": Place(qkv, rows, q + kv),
        "gate": Place(gate_up, (2 * mlp, hidden)),
        "up": Place(gate_up, (2 * mlp, hidden), mlp),
    }
