"""What the tensors of a model are called: canonical names with their shapes, and the names in GGUF and HF files.

The canonical names are those of `models/spec.py`. A model has exactly the tensors that `tensor_shapes` lists: one
that is missing and one that is left over are both errors, because an ignored tensor is a model run wrongly.
"""

from __future__ import annotations

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
    "o": ("attn_output.weight", "self_attn.o_proj.weight"),
    "mlp_norm": ("ffn_norm.weight", "post_attention_layernorm.weight"),
    "gate": ("ffn_gate.weight", "mlp.gate_proj.weight"),
    "up": ("ffn_up.weight", "mlp.up_proj.weight"),
    "down": ("ffn_down.weight", "mlp.down_proj.weight"),
}


def tensor_shapes(spec: ModelSpec) -> dict[str, tuple[int, ...]]:
    """All canonical names of a model with their shapes, in the order in which a step uses them."""
    hidden, q, kv, mlp = spec.hidden_size, spec.q_size, spec.kv_size, spec.intermediate_size
    layer: dict[str, tuple[int, ...]] = {
        "attention_norm": (hidden,),
        "q": (q, hidden),
        "k": (kv, hidden),
        "v": (kv, hidden),
        "q_bias": (q,),
        "k_bias": (kv,),
        "v_bias": (kv,),
        "o": (hidden, q),
        "mlp_norm": (hidden,),
        "gate": (mlp, hidden),
        "up": (mlp, hidden),
        "down": (hidden, mlp),
    }
    if not spec.qkv_bias:
        layer = {name: shape for name, shape in layer.items() if not name.endswith("_bias")}
    shapes: dict[str, tuple[int, ...]] = {"embedding": (spec.vocab_size, hidden)}
    for i in range(spec.num_layers):
        shapes |= {f"layers.{i}.{name}": shape for name, shape in layer.items()}
    shapes["output_norm"] = (hidden,)
    if not spec.tied_head:
        shapes["head"] = (spec.vocab_size, hidden)
    return shapes


def gguf_name(canonical: str) -> str:
    """The name in a GGUF file: "layers.3.q" is "blk.3.attn_q.weight"."""
    if canonical in _WHOLE:
        return _WHOLE[canonical][0]
    _, layer, name = canonical.split(".")
    return f"blk.{layer}.{_LAYER[name][0]}"


def hf_name(canonical: str) -> str:
    """The name in a safetensors folder: "layers.3.q" is "model.layers.3.self_attn.q_proj.weight"."""
    if canonical in _WHOLE:
        return _WHOLE[canonical][1]
    _, layer, name = canonical.split(".")
    return f"model.layers.{layer}.{_LAYER[name][1]}"
