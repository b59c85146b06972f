"""`ModelSpec`: everything a back end must know of an architecture, each thing an explicit field.

Made from a GGUF's metadata (`gguf_spec.py`) or a config.json (`config_spec.py`), which refuse by name what no field
describes. A back end that cannot do what a field asks refuses the model; it never ignores a field. The defaults are
those of a plain llama, and `extras` names every field that leaves them.

Canonical tensor names (all matrices [N outputs, K inputs], row-major, rotary halves as in `RopeSpec`):

    embedding                               [vocab_size, hidden_size]
    layers.I.attention_norm                 [hidden_size]                       only when `pre_norms`
    layers.I.q, .k, .v                      [heads * head_size, hidden_size]    (kv heads for k and v)
    layers.I.q_bias, .k_bias, .v_bias       only when `qkv_bias`
    layers.I.q_norm, .k_norm                [head_size], or [heads * head_size] when `qk_norm` is "whole"
    layers.I.o                              [hidden_size, heads * head_size]
    layers.I.o_bias                         only when `o_bias`
    layers.I.attention_post_norm            [hidden_size]                       only when `post_norms`
    layers.I.mlp_norm                       [hidden_size]                       only when `pre_norms`
    layers.I.gate, .up                      [intermediate_size, hidden_size]    not with `experts`
    layers.I.down                           [hidden_size, intermediate_size]    not with `experts`
    layers.I.gate_bias, .up_bias, .down_bias    only when `mlp_bias`
    layers.I.router                         [experts, hidden_size]              only with `experts`
    layers.I.gate.E, .up.E, .down.E         as .gate, .up and .down, of expert E
    layers.I.mlp_post_norm                  [hidden_size]                       only when `post_norms`
    output_norm                             [hidden_size]
    head                                    [vocab_size, hidden_size]           absent when `tied_head`
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Literal

Activation = Literal["silu", "gelu", "gelu_tanh"]
QKNorm = Literal["none", "head", "whole"]
RopeScaling = Literal["none", "linear", "llama3", "yarn", "longrope"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RopeSpec:
    """Rotary position embedding of the first `size` elements of each head.

    Pairs are (i, i + size/2): the readers reorder rows of files that pair (2i, 2i+1). `scaling` "linear" divides
    all frequencies by `factor`; "llama3" is Llama 3.1's piecewise rule with its three other numbers; "yarn" blends by
    `beta_fast` and `beta_slow`. `frequency_factors`, one a pair, divide the frequencies after that (GGUF's
    rope_freqs tensor); empty means none. "longrope" has `long_frequency_factors` too, which take their place when
    the context is longer than `original_context_length`. Cosine and sine are multiplied by `attention_factor`.
    """

    theta: float
    size: int
    scaling: RopeScaling = "none"
    factor: float = 1.0
    low_freq_factor: float = 1.0
    high_freq_factor: float = 4.0
    beta_fast: float = 32.0
    beta_slow: float = 1.0
    rounds_ramp: bool = True  # YaRN's blend begins and ends at whole pairs
    original_context_length: int = 0
    attention_factor: float = 1.0
    frequency_factors: tuple[float, ...] = ()
    long_frequency_factors: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpertsSpec:
    """A mixture of `count` feed-forward networks a layer, of which each token takes the `used` likeliest.

    Their outputs are weighed by the softmax over all experts, divided by the sum over those taken if `normalizes`.
    """

    count: int
    used: int
    normalizes: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSpec:
    """The shape and arithmetic of one decoder-only model. Sizes in elements, `context_length` in tokens.

    qk_norm: RMS norms of queries and keys before they are rotated: of each head, or of the whole row.
    pre_norms, post_norms: RMS norms of what goes into attention and feed-forward, and of what comes out.
    attention_softcap, logit_softcap: x becomes cap * tanh(x / cap); 0 is off.
    embedding_scale, residual_scale, logit_scale: factors of the embedding, of both branches, of the logits.
    sliding_windows: of each layer, 0 for the whole context.      unrotated_layers: those without rotary embedding.
    local_rope: the rotary embedding of layers with a window, where it differs.
    experts: with it, `intermediate_size` is that of one expert.
    """

    architecture: str
    vocab_size: int
    hidden_size: int
    num_layers: int
    num_heads: int
    num_kv_heads: int
    head_size: int
    intermediate_size: int
    context_length: int
    norm_eps: float
    rope: RopeSpec
    activation: Activation = "silu"
    qkv_bias: bool = False
    o_bias: bool = False
    mlp_bias: bool = False
    qk_norm: QKNorm = "none"
    pre_norms: bool = True
    post_norms: bool = False
    tied_head: bool = False
    attention_scale: float = field(default=0.0)
    attention_softcap: float = 0.0
    logit_softcap: float = 0.0
    embedding_scale: float = 1.0
    residual_scale: float = 1.0
    logit_scale: float = 1.0
    sliding_windows: tuple[int, ...] = ()
    unrotated_layers: tuple[int, ...] = ()
    local_rope: RopeSpec | None = None
    experts: ExpertsSpec | None = None

    def __post_init__(self) -> None:
        if self.attention_scale == 0.0:
            object.__setattr__(self, "attention_scale", 1 / math.sqrt(self.head_size))
        if not self.sliding_windows:
            object.__setattr__(self, "sliding_windows", (0,) * self.num_layers)

    @property
    def q_size(self) -> int:
        """Elements of a token's queries."""
        return self.num_heads * self.head_size

    @property
    def kv_size(self) -> int:
        """Elements of a token's keys (and of its values)."""
        return self.num_kv_heads * self.head_size

    @property
    def num_parameters(self) -> int:
        """Parameters of all matrices, the head counted once when tied."""
        attention = self.hidden_size * (2 * self.q_size + 2 * self.kv_size)
        mlp = 3 * self.hidden_size * self.intermediate_size
        if self.experts is not None:
            mlp = self.experts.count * (mlp + self.hidden_size)
        head = self.vocab_size * self.hidden_size * (1 if self.tied_head else 2)
        return self.num_layers * (attention + mlp) + head

    @property
    def extras(self) -> tuple[str, ...]:
        """What the model has beyond llama's and qwen2's layers, windows and frequencies, in words for a refusal."""
        features = {
            f"the activation {self.activation}": self.activation != "silu",
            "a bias after attention": self.o_bias,
            "biases in the feed-forward network": self.mlp_bias,
            "norms of queries and keys": self.qk_norm != "none",
            "no norms before its branches": not self.pre_norms,
            "norms after its branches": self.post_norms,
            "capped attention scores": self.attention_softcap != 0,
            "capped logits": self.logit_softcap != 0,
            "a scaled embedding": self.embedding_scale != 1,
            "scaled branches": self.residual_scale != 1,
            "scaled logits": self.logit_scale != 1,
            "layers without rotary embedding": bool(self.unrotated_layers),
            "a second rotary embedding": self.local_rope is not None,
            "a rotary attention factor": self.rope.attention_factor != 1,
            "longrope": self.rope.scaling == "longrope",
            "a mixture of experts": self.experts is not None,
        }
        return tuple(name for name, is_used in features.items() if is_used)
