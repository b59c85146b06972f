"""Limits that a worker process puts on itself before it touches anything untrusted.

POSIX only; elsewhere `limit_process` and `limit_cpu` do nothing, and the parent's wall-clock limit alone counts.
"""

from __future__ import annotations

import contextlib
import sys

if sys.platform == "win32":

    def limit_process(memory_bytes: int) -> None:
        """Windows has no such limits for a process on itself."""

    def limit_cpu(seconds: int) -> None:
        """Windows has no such limits for a process on itself."""

else:
    import resource

    def limit_process(memory_bytes: int) -> None:
        """Bound the address space; forbid core dumps, growing files and new processes."""
        for name, limit in (
            ("RLIMIT_AS", memory_bytes),
            ("RLIMIT_CORE", 0),
            ("RLIMIT_FSIZE", 0),
            ("RLIMIT_NPROC", 0),
        ):
            _, hard = resource.getrlimit(getattr(resource, name))
            limit = limit if hard == resource.RLIM_INFINITY else min(limit, hard)
            # Some systems refuse some limits (macOS that of the address space); the others still count.
            with contextlib.suppress(ValueError, OSError):
                resource.setrlimit(getattr(resource, name), (limit, limit))

    def limit_cpu(seconds: int) -> None:
        """Let the kernel end this process when it has used `seconds` more of processor time."""
        used = resource.getrusage(resource.RUSAGE_SELF)
        _, hard = resource.getrlimit(resource.RLIMIT_CPU)
        resource.setrlimit(resource.RLIMIT_CPU, (int(used.ru_utime + used.ru_stime) + 1 + seconds, hard))
