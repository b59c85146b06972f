"""How much memory is free, what a model will need, and whether it fits. Torch-free.

Free memory is what the kernel calls available, cut down to what the control groups of this process still allow, so
that a container's limit counts. The estimate is one formula for the library's list and for the check before loading:
weights as they will lie in memory, the KV cache of a context, and a constant for the runtime itself.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from inglenook.engine.errors import NotEnoughMemoryError
from inglenook.engine.kv_cache import KVGroup, num_blocks_for

# The engine process with torch imported and the activations of a step, without weights, KV cache and vocabulary.
# Measured with models of 0.1 and 0.5 billion parameters (`tests/engine/test_fit_estimate.py`).
RUNTIME_BYTES = 270_000_000
_BYTES_PER_VOCABULARY_ENTRY = 540
_USUAL_VOCABULARY = 128_000  # where only the file's size is known
# The portable CPU back end holds weights as bf16, whatever the file's format; encoders run in float32. The native one
# packs quantised weights at the width that they have in the file, with its scales a 64th more.
_LOADED_BYTES_PER_PARAMETER = 2
_PACKED_PER_FILE_BYTE = (65, 64)
_ENCODER_BYTES_PER_PARAMETER = 4
# The context that the library's list counts with; a shorter one is offered when this does not fit.
LISTED_CONTEXT = 4096


@dataclass(frozen=True, slots=True)
class MemoryState:
    """Memory of this computer as this process may use it, in bytes."""

    total_bytes: int
    free_bytes: int


def memory_state(root: Path = Path("/")) -> MemoryState:
    """Read the memory of this computer; `root` is where /proc and /sys are found.

    Where there is no /proc, all physical memory counts as free.
    """
    fields = _numbers(root / "proc/meminfo")
    total = fields.get("MemTotal", 0) * 1024
    free = fields.get("MemAvailable", fields.get("MemFree", 0)) * 1024
    if not total:
        total = free = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    for limit, used in _group_limits(root):
        total, free = min(total, limit), min(free, max(0, limit - used))
    return MemoryState(total, free)


def kv_bytes(groups: Sequence[KVGroup], num_tokens: int) -> int:
    """Bytes of the KV cache of one sequence of `num_tokens` tokens, windows not taken into account."""
    return sum(num_blocks_for(num_tokens) * group.block_bytes for group in groups)


def estimate_need(weight_bytes: int, kv_cache_bytes: int, vocab_size: int = _USUAL_VOCABULARY) -> int:
    """Bytes that a model needs in all, from its weights as loaded, its KV cache and its vocabulary."""
    return weight_bytes + kv_cache_bytes + RUNTIME_BYTES + vocab_size * _BYTES_PER_VOCABULARY_ENTRY


def estimate_listed_need(size_bytes: int, num_parameters: int, kv_bytes_per_token: int) -> int:
    """Bytes that a model not yet loaded will need with a context of `LISTED_CONTEXT` tokens.

    Only quantised files are smaller than two bytes a parameter. A model without keys and values is an encoder.
    """
    if not kv_bytes_per_token:
        return estimate_need(num_parameters * _ENCODER_BYTES_PER_PARAMETER, 0)
    packed, unpacked = _PACKED_PER_FILE_BYTE
    weights = min(size_bytes * packed // unpacked, num_parameters * _LOADED_BYTES_PER_PARAMETER)
    return estimate_need(weights, kv_bytes_per_token * LISTED_CONTEXT)


def check_fit(name: str, need_bytes: int, free_bytes: int) -> None:
    """Refuse what does not fit.

    Raises:
        NotEnoughMemoryError: `need_bytes` is more than `free_bytes`.
    """
    if need_bytes > free_bytes:
        raise NotEnoughMemoryError(
            f"{name} needs {format_bytes(need_bytes)}, {format_bytes(free_bytes)} are free. "
            "Close other programs, ask for a shorter context, or use a smaller model."
        )


def format_bytes(size: int) -> str:
    """Write a size as people read it, in powers of 1000: "14.2 GB", "98 MB", "0 bytes"."""
    if abs(size) < 1000:
        return f"{size} bytes"
    value = size / 1000
    for unit in ("kB", "MB"):
        if abs(value) < 999.5:
            return f"{value:.0f} {unit}"
        value /= 1000
    return f"{value:.1f} GB"


def _numbers(path: Path) -> dict[str, int]:
    """The first number of each "name[:] number" line of a kernel file; empty when it cannot be read."""
    try:
        text = path.read_text()
    except OSError:
        return {}
    parts = (line.replace(":", " ").split() for line in text.splitlines())
    return {p[0]: int(p[1]) for p in parts if len(p) >= 2 and p[1].isdigit()}


def _number(path: Path) -> int | None:
    try:
        return int(path.read_text())
    except (OSError, ValueError):  # "max" is no limit
        return None


def _group_limits(root: Path) -> list[tuple[int, int]]:
    """(limit, used) of each memory control group around this process, from the inside out, versions 1 and 2."""
    try:
        lines = (root / "proc/self/cgroup").read_text().splitlines()
    except OSError:
        return []
    found = []
    for line in lines:
        number, controllers, inside = (*line.split(":", 2), "", "")[:3]
        if number == "0" and not controllers:
            top, names = root / "sys/fs/cgroup", ("memory.max", "memory.current", "inactive_file")
        elif "memory" in controllers.split(","):
            top = root / "sys/fs/cgroup/memory"
            names = ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
        else:
            continue
        group = top / inside.lstrip("/")
        for folder in (group, *group.parents):
            limit, used = _number(folder / names[0]), _number(folder / names[1])
            if limit is not None and used is not None:
                # Cached file pages are given back on demand, as in MemAvailable.
                cached = _numbers(folder / "memory.stat").get(names[2], 0)
                found.append((limit, max(0, used - cached)))
            if folder == top:
                break
    return found
