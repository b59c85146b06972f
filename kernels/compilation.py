"""`Compilation`: one kernel in one configuration that is shipped, for compiling it ahead of time without a card."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

# pointer types, as Triton writes them
F64, F32, F16, BF16, FP8 = "*fp64", "*fp32", "*fp16", "*bf16", "*fp8e4nv"
I8, U8, I32, I64 = "*i8", "*u8", "*i32", "*i64"


@dataclass(frozen=True, slots=True, kw_only=False)
class Compilation:
    """A kernel, the types of its run-time arguments, and its compile-time ones.

    kernel: a `triton.JITFunction`; typed loosely, since only `*_triton.py` may import triton.
    arguments: Triton's type of each run-time argument, None for an absent pointer.
    aligned: scalar arguments that are multiples of 16 in every model that is run; pointers always are.
    oldest: the lowest compute capability that it is for, 89 for 8-bit floats.
    """

    name: str
    kernel: Any
    arguments: dict[str, str | None]
    constants: dict[str, Any]
    num_warps: int = 4
    num_stages: int = 3
    aligned: frozenset[str] = field(default_factory=lambda: frozenset({"columns"}))
    oldest: int = 80
