"""This computer in words, for people who do not know what a gigabyte of a model is. Pure; reads /proc and nothing else.

The size of a model that runs well is an estimate from free memory: four bits a weight, some for the scales, and a
fifth kept back for the context and the program.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

_BYTES_PER_PARAMETER = 0.62
_RUNTIME_BYTES = 0.5e9
_PART_FOR_WEIGHTS = 0.8
# Sizes in which models are made, in billions of parameters.
_SIZES = (0.5, 1, 1.5, 3, 4, 8, 14, 24, 32, 70)


@dataclass(frozen=True, slots=True)
class Computer:
    """What a model would run on. `graphics` is the name of an NVIDIA card, "" without one."""

    num_cores: int
    total_bytes: int
    free_bytes: int
    graphics: str = ""

    @property
    def largest_model(self) -> float:
        """The size of the largest usual model that fits now, in billions of parameters; 0 where none does."""
        room = (self.free_bytes - _RUNTIME_BYTES) * _PART_FOR_WEIGHTS / _BYTES_PER_PARAMETER / 1e9
        return max((size for size in _SIZES if size <= room), default=0)


def this_computer(total_bytes: int, free_bytes: int, root: Path = Path("/")) -> Computer:
    """Return this computer; memory is told by `engine.memory.memory_state`, which knows of containers."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return Computer(cores, total_bytes, free_bytes, _graphics(root))


def _graphics(root: Path) -> str:
    """Return the name of the first NVIDIA card that the driver knows."""
    for path in sorted(root.glob("proc/driver/nvidia/gpus/*/information")):
        try:
            lines = path.read_text(errors="replace").splitlines()
        except OSError:
            continue
        for line in lines:
            key, _, value = line.partition(":")
            if key.strip() == "Model":
                return " ".join(value.split())[:60]
    return ""
