"""`ModelSpec`: everything a back end must know of an architecture, each thing an explicit field.

Made from a GGUF's metadata or a config.json by `registry.py`, which refuses by name what no field describes. A
back end that cannot do what a field asks refuses the model; it never ignores a field.

Canonical tensor names (all matrices [N outputs, K inputs], row-major, rotary halves as in `rope_interleaved`):

    embedding                               [vocab_size, hidden_size]
    layers.I.attention_norm                 [hidden_size]
    layers.I.q, .k, .v                      [heads * head_size, hidden_size]   (kv heads for k and v)
    layers.I.q_bias, .k_bias, .v_bias       only when `qkv_bias`
    layers.I.o                              [hidden_size, heads * head_size]
    layers.I.mlp_norm                       [hidden_size]
    layers.I.gate, .up                      [intermediate_size, hidden_size]
    layers.I.down                           [hidden_size, intermediate_size]
    output_norm                             [hidden_size]
    head                                    [vocab_size, hidden_size]          absent when `tied_head`
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class RopeSpec:
    """Rotary position embedding of the first `size` elements of each head.

    Pairs are (i, i + size/2): the readers reorder rows of files that pair (2i, 2i+1). `scaling` "linear" divides
    all frequencies by `factor`; "llama3" is Llama 3.1's piecewise rule with the three other numbers.
    `frequency_factors`, one a pair, divide the frequencies after that (GGUF's rope_freqs tensor); empty means none.
    """

    theta: float
    size: int
    scaling: Literal["none", "linear", "llama3"] = "none"
    factor: float = 1.0
    low_freq_factor: float = 1.0
    high_freq_factor: float = 4.0
    original_context_length: int = 0
    frequency_factors: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSpec:
    """The shape and arithmetic of one decoder-only model. Sizes in elements, `context_length` in tokens."""

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
    activation: Literal["silu"] = "silu"
    qkv_bias: bool = False
    tied_head: bool = False
    attention_scale: float = field(default=0.0)
    sliding_windows: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if self.attention_scale == 0.0:
            object.__setattr__(self, "attention_scale", self.head_size**-0.5)
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
        layer = self.hidden_size * (2 * self.q_size + 2 * self.kv_size + 3 * self.intermediate_size)
        return self.num_layers * layer + self.vocab_size * self.hidden_size * (1 if self.tied_head else 2)
