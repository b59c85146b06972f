"""The next larger window of a model that is loaded, what it costs in memory, and whether it can be had. Pure."""

from __future__ import annotations

from inglenook.app.context.context_panel import LargerWindow
from inglenook.engine.kv_cache import KVDtype
from inglenook.engine.library.model_details import ModelDetails
from inglenook.engine.memory import format_bytes
from inglenook.engine.request import Loaded


def larger_window(
    facts: Loaded, details: ModelDetails, kv_dtype: KVDtype | None, free_bytes: int
) -> LargerWindow:
    """Return twice the window that is loaded, or the longest that the model takes if that is less."""
    now, longest = facts.context_length, details.context_length
    if now >= longest:
        return LargerWindow(refusal=f"{longest:,} tokens is the longest window that this model takes.")
    tokens = min(2 * now, longest)
    per_token = details.kv_bytes_per_token[kv_dtype or kv_type_of(facts.backend)]
    cost = (tokens - now) * per_token
    if cost > free_bytes:
        return LargerWindow(
            tokens,
            f"+{format_bytes(cost)}",
            f"A window of {tokens:,} tokens needs {format_bytes(cost)} more; {format_bytes(free_bytes)} are free.",
        )
    return LargerWindow(tokens, f"+{format_bytes(cost)}, fits")


def kv_type_of(backend: str) -> KVDtype:
    """The type of keys and values that a back end takes by itself."""
    return "float16" if backend.startswith("native") else "float32" if backend == "reference" else "bfloat16"
