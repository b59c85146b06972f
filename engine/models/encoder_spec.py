"""`EncoderSpec`: the shape and pooling of a sentence encoder of the BERT family, and its tensors by name.

BERT, RoBERTa and XLM-RoBERTa differ in where positions begin and in the tokenizer, not in the layers. MPNet has no
types and adds a learned bias by distance to all scores. Canonical tensor names are those of a BERT checkpoint.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

Pooling = Literal["mean", "first"]

# name in a checkpoint -> name in a GGUF file; {} is the layer
_WHOLE = {
    "embeddings.word_embeddings": "token_embd",
    "embeddings.position_embeddings": "position_embd",
    "embeddings.token_type_embeddings": "token_types",
    "embeddings.LayerNorm": "token_embd_norm",
}
_LAYER = {
    "attention.self.query": "attn_q",
    "attention.self.key": "attn_k",
    "attention.self.value": "attn_v",
    "attention.output.dense": "attn_output",
    "attention.output.LayerNorm": "attn_output_norm",
    "intermediate.dense": "ffn_up",
    "output.dense": "ffn_down",
    "output.LayerNorm": "layer_output_norm",
}
_MPNET = {
    "attention.self.query": "attention.attn.q",
    "attention.self.key": "attention.attn.k",
    "attention.self.value": "attention.attn.v",
    "attention.output.dense": "attention.attn.o",
    "attention.output.LayerNorm": "attention.LayerNorm",
}
WORDS = "embeddings.word_embeddings.weight"
DISTANCE_BIAS = "encoder.relative_attention_bias.weight"


@dataclass(frozen=True, slots=True, kw_only=True)
class EncoderSpec:
    """Shape and pooling of an encoder. `max_tokens` counts the special tokens too; more are left out and said.

    first_position: the row of the position table that the first token takes (RoBERTa's files leave some out).
    num_types: rows of the type table, 0 without one.     distance_buckets: rows of MPNet's bias, 0 without one.
    """

    architecture: str
    vocab_size: int
    hidden_size: int
    num_layers: int
    num_heads: int
    intermediate_size: int
    num_positions: int
    num_types: int
    norm_eps: float
    pooling: Pooling
    max_tokens: int
    first_position: int = 0
    distance_buckets: int = 0

    def tensor_shapes(self) -> dict[str, tuple[int, ...]]:
        """All tensors by their names in a BERT checkpoint."""
        h, f = self.hidden_size, self.intermediate_size
        shapes: dict[str, tuple[int, ...]] = {
            WORDS: (self.vocab_size, h),
            "embeddings.position_embeddings.weight": (self.num_positions, h),
            "embeddings.LayerNorm.weight": (h,),
            "embeddings.LayerNorm.bias": (h,),
        }
        if self.num_types:
            shapes["embeddings.token_type_embeddings.weight"] = (self.num_types, h)
        if self.distance_buckets:
            shapes[DISTANCE_BIAS] = (self.distance_buckets, self.num_heads)
        for i in range(self.num_layers):
            p = f"encoder.layer.{i}."
            for part, n, k in (
                ("attention.self.query", h, h),
                ("attention.self.key", h, h),
                ("attention.self.value", h, h),
                ("attention.output.dense", h, h),
                ("intermediate.dense", f, h),
                ("output.dense", h, f),
            ):
                shapes[f"{p}{part}.weight"], shapes[f"{p}{part}.bias"] = (n, k), (n,)
            for part in ("attention.output.LayerNorm", "output.LayerNorm"):
                shapes[f"{p}{part}.weight"] = shapes[f"{p}{part}.bias"] = (h,)
        return shapes

    @property
    def num_parameters(self) -> int:
        """Parameters that the vectors come from."""
        return sum(math.prod(shape) for shape in self.tensor_shapes().values())


def mpnet_name(canonical: str) -> str:
    """The name in an MPNet checkpoint: "encoder.layer.3.attention.self.query.bias" has "attention.attn.q" there."""
    for ours, theirs in _MPNET.items():
        canonical = canonical.replace(f".{ours}.", f".{theirs}.")
    return canonical


def gguf_encoder_name(canonical: str) -> str:
    """The name in a GGUF file: "encoder.layer.3.output.dense.bias" is "blk.3.ffn_down.bias"."""
    stem, suffix = canonical.rsplit(".", 1)
    if stem in _WHOLE:
        return f"{_WHOLE[stem]}.{suffix}"
    _, _, layer, part = stem.split(".", 3)
    return f"blk.{layer}.{_LAYER[part]}.{suffix}"
