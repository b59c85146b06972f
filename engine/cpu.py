"""The processor as this process may use it: physical cores, and how many of them the engine takes."""

from __future__ import annotations

import os
from pathlib import Path

_SIBLINGS = "sys/devices/system/cpu/cpu{}/topology/thread_siblings_list"


def physical_cores(root: Path = Path("/")) -> int:
    """Count the physical cores this process may run on; hardware threads where the kernel tells no topology."""
    try:
        allowed = os.sched_getaffinity(0)
    except AttributeError:  # not on Linux
        return os.cpu_count() or 1
    cores = set()
    for cpu in allowed:
        try:
            cores.add((root / _SIBLINGS.format(cpu)).read_text().strip())
        except OSError:
            cores.add(str(cpu))
    return max(1, len(cores))


def default_num_threads() -> int:
    """Threads for the engine: the physical cores, less one for the window when there are more than four."""
    cores = physical_cores()
    return cores - 1 if cores > 4 else cores
