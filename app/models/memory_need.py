"""What a model needs in memory with a window and a type of keys and values, from its record. Pure.

The record's own figure counts with a window of `LISTED_CONTEXT` tokens and keys and values of 16 bits.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from inglenook.engine.model_library import ModelRecord

Fit = Literal["yes", "maybe", "no"]

# 8 bits a value and a scale of 32 bits a head, of usually 64 values.
_PARTS_OF_16_BITS = {"float32": 2.0, "int8": 17 / 32}


def memory_need(record: ModelRecord, options: Mapping[str, Any]) -> int:
    """Return the bytes that a model needs with what is set for it (`context_length`, `kv_type`)."""
    # Here, because the window's first paint waits for nothing of the engine.
    from inglenook.engine.memory import LISTED_CONTEXT

    listed = record.kv_bytes_per_token * LISTED_CONTEXT
    context = options.get("context_length") or LISTED_CONTEXT
    part = _PARTS_OF_16_BITS.get(options.get("kv_type", ""), 1.0)
    return record.memory_bytes - listed + round(record.kv_bytes_per_token * context * part)


def fit_of(need_bytes: int, free_bytes: int) -> Fit:
    """Whether that fits: "maybe" when it takes nearly all that is free."""
    if need_bytes <= 0.8 * free_bytes:
        return "yes"
    return "maybe" if need_bytes <= free_bytes else "no"
