"""The architectures we run: what each one always has, whatever its file says of itself.

A file gives sizes and numbers; which norms there are, where biases may be and which layers have a window belongs to
the architecture. `gguf_spec.py` and `config_spec.py` join both into a `ModelSpec`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from inglenook.engine.errors import UnsupportedModelError
from inglenook.engine.models.spec import Activation, QKNorm


@dataclass(frozen=True, slots=True, kw_only=True)
class Architecture:
    """One architecture; `config_names` are those of a config.json, the name itself is GGUF's.

    biases: "qkv" always on queries, keys and values; "may": as the file says; "none".
    full_period: with a sliding window, every how-manieth layer sees the whole context; 0: none does.
    unrotated_period: every how-manieth layer has no rotary embedding; 0: all have it.
    norms_from_zero: a checkpoint's norm weights are meant plus one (GGUF files have it added already).
    paired_in_gguf: GGUF files keep rows of queries and keys in rotary pairs (2i, 2i + 1).
    fuses: queries, keys and values are one matrix in files, gate and up another.
    """

    name: str
    config_names: tuple[str, ...]
    biases: Literal["none", "qkv", "may"] = "may"
    activation: Activation = "silu"
    qk_norm: QKNorm = "none"
    pre_norms: bool = True
    post_norms: bool = False
    scales_embedding: bool = False
    norms_from_zero: bool = False
    paired_in_gguf: bool = False
    fuses: bool = False
    full_period: int = 0
    unrotated_period: int = 0
    experts: Literal["none", "may", "always"] = "none"
    norm_eps: float = 1e-6
    theta: float = 10_000.0
    local_theta: float | None = None


_ALL = (
    Architecture(name="llama", config_names=("llama",), paired_in_gguf=True, experts="may"),
    Architecture(name="mistral", config_names=("mistral",), biases="none"),
    Architecture(
        name="mixtral",
        config_names=("mixtral",),
        biases="none",
        experts="always",
        norm_eps=1e-5,
        theta=1e6,
    ),
    Architecture(name="qwen2", config_names=("qwen2",), biases="qkv"),
    Architecture(name="qwen3", config_names=("qwen3",), qk_norm="head"),
    Architecture(name="qwen3moe", config_names=("qwen3_moe",), qk_norm="head", experts="always"),
    Architecture(
        name="gemma2",
        config_names=("gemma2",),
        activation="gelu_tanh",
        post_norms=True,
        scales_embedding=True,
        norms_from_zero=True,
        full_period=2,
    ),
    Architecture(
        name="gemma3",
        config_names=("gemma3_text",),
        activation="gelu_tanh",
        qk_norm="head",
        post_norms=True,
        scales_embedding=True,
        norms_from_zero=True,
        full_period=6,
        theta=1e6,
        local_theta=10_000.0,
    ),
    Architecture(name="phi3", config_names=("phi3",), biases="none", fuses=True, norm_eps=1e-5),
    Architecture(
        name="smollm3", config_names=("smollm3",), paired_in_gguf=True, unrotated_period=4, theta=2e6
    ),
    Architecture(
        name="olmo2",
        config_names=("olmo2",),
        qk_norm="whole",
        pre_norms=False,
        post_norms=True,
        norm_eps=1e-5,
    ),
    Architecture(name="granite", config_names=("granite",), paired_in_gguf=True),
)
ARCHITECTURES = {a.name: a for a in _ALL}
_BY_CONFIG_NAME = {name: a for a in _ALL for name in a.config_names}
# Mistral and Mixtral become "llama" in a GGUF.
_IN_GGUF = {name: a for name, a in ARCHITECTURES.items() if name not in ("mistral", "mixtral")}


def architecture_of_gguf(name: str, source: str) -> Architecture:
    """The architecture that a GGUF names.

    Raises:
        UnsupportedModelError: we do not run it.
    """
    return _find(_IN_GGUF, name, source)


def architecture_of_config(name: str, source: str) -> Architecture:
    """The architecture that a config.json names in model_type.

    Raises:
        UnsupportedModelError: we do not run it.
    """
    return _find(_BY_CONFIG_NAME, name, source)


def _find(known: dict[str, Architecture], name: str, source: str) -> Architecture:
    found = known.get(name)
    if found is None:
        raise UnsupportedModelError(
            f"{source}: the architecture {name!r} is not supported; supported are {', '.join(known)}."
        )
    return found
