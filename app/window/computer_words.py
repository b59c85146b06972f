"""This computer in words, for people who do not know what a gigabyte of a model is. Pure; reads /proc and nothing else.

The size of a model that fits is an estimate from free memory: four bits a weight, some for the scales, and a fifth kept
back for the context and the program. One that is quick reads its weights five times a second, as fast as one reads a
text; a usual core reads 5 GB a second, and a usual computer 40 GB with all of them.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

_BYTES_PER_PARAMETER = 0.62
_RUNTIME_BYTES = 0.5e9
_PART_FOR_WEIGHTS = 0.8
_READ_BY_A_CORE, _READ_BY_ALL = 5e9, 40e9
_READING_SPEED = 5
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
        return _largest((self.free_bytes - _RUNTIME_BYTES) * _PART_FOR_WEIGHTS)

    @property
    def largest_quick_model(self) -> float:
        """The size of the largest that answers as fast as one reads on the processor, and fits."""
        read = min(self.num_cores * _READ_BY_A_CORE, _READ_BY_ALL)
        return min(self.largest_model, _largest(read / _READING_SPEED) or _SIZES[0])


def _largest(weight_bytes: float) -> float:
    size = weight_bytes / _BYTES_PER_PARAMETER / 1e9
    return max((one for one in _SIZES if one <= size), default=0)


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
