"""The parser process's own limits by setrlimit: memory, processor time, no file writes, few open files, no core file.

POSIX only; the counterpart on Windows is a job object with JOBOBJECT_EXTENDED_LIMIT_INFORMATION. The limits are hard,
so the process cannot raise them again (as root it could, which the system call filter then forbids).
"""

from __future__ import annotations

import resource

MAX_OPEN_FILES = 64


def limit_resources(memory_bytes: int, cpu_s: int) -> tuple[list[str], list[str]]:
    """Lower this process's limits for good; give the names of those in force and of those that were refused."""
    wanted = (
        ("memory limit", resource.RLIMIT_AS, memory_bytes),
        ("processor time limit", resource.RLIMIT_CPU, cpu_s),
        ("file size limit 0", resource.RLIMIT_FSIZE, 0),
        ("open file limit", resource.RLIMIT_NOFILE, MAX_OPEN_FILES),
        ("no core file", resource.RLIMIT_CORE, 0),
    )
    in_force: list[str] = []
    missing: list[str] = []
    for name, limit, value in wanted:
        _, hard = resource.getrlimit(limit)
        if hard != resource.RLIM_INFINITY:
            value = min(value, hard)
        try:
            resource.setrlimit(limit, (value, value))
        except (OSError, ValueError):
            missing.append(name)
        else:
            in_force.append(name)
    return in_force, missing
