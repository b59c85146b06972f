"""Put the parser process under every restriction that this system offers, and report which are in force.

Each kind sits in one file: `limits_posix.py`, `sandbox_linux.py`. What a system lacks is reported, not silently left
out: the caller can say so, and the tests know what to expect.
"""

from __future__ import annotations

import sys
import sysconfig
from dataclasses import dataclass
from pathlib import Path

from inglenook.storage.parsing import limits_posix

# Fonts for text that a PDF does not bring its own for.
_FONT_FOLDERS = (Path("/usr/share/fonts"), Path("/usr/share/X11/fonts"), Path("/usr/local/share/fonts"))


@dataclass(frozen=True, slots=True)
class Restrictions:
    """Names of the restrictions on the parser process: those in force and those this system does not have."""

    in_force: tuple[str, ...]
    missing: tuple[str, ...]


def restrict(*, memory_bytes: int, cpu_s: int) -> Restrictions:
    """Restrict this process for good; call it after everything is imported and before anything foreign is read."""
    in_force, missing = limits_posix.limit_resources(memory_bytes, cpu_s)
    results = _restrict_linux() if sys.platform == "linux" else {"file access": False, "system calls": False}
    in_force += [name for name, is_in_force in results.items() if is_in_force]
    missing += [name for name, is_in_force in results.items() if not is_in_force]
    return Restrictions(tuple(in_force), tuple(missing))


def _restrict_linux() -> dict[str, bool]:
    from inglenook.storage.parsing import sandbox_linux

    return {
        "ends with its parent": sandbox_linux.end_with_parent(),
        "no new privileges": sandbox_linux.forbid_new_privileges(),
        "file access": sandbox_linux.restrict_files((*_interpreter_folders(), *_FONT_FOLDERS)) > 0,
        "system calls": sandbox_linux.restrict_system_calls(),
    }


def _interpreter_folders() -> set[Path]:
    """List the folders that modules are loaded from, so that what Python imports late can still be read."""
    names = ("stdlib", "platstdlib", "purelib", "platlib")
    package = Path(__file__).resolve().parent.parent
    return {Path(sysconfig.get_path(name)).resolve() for name in names} | {package}
