"""Compiles every kernel in every configuration that is shipped, for cards that are not here; part of `.ci/run`.

    python -m inglenook.kernels.aot [--arch 80 89 90] [--processes 2] [--only TEXT] [--list]

Fails when one does not compile, spills registers into memory, or wants more shared memory than the card has. The
list comes from the `compilations` functions of the kernels, which use the very tables that their launchers use.
"""

from __future__ import annotations

import argparse
import importlib
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from inglenook.kernels.compilation import Compilation

ARCHITECTURES = (80, 89, 90)
_MODULES = (
    "packed_weight", "quantized_linear", "rms_norm", "rotary_embedding", "gated_activation", "paged_attention",
    "prefill_attention", "sampling",
)  # fmt: skip


def compilations() -> list[Compilation]:
    """List every configuration that is shipped."""
    found = []
    for name in _MODULES:
        found += importlib.import_module(f"inglenook.kernels.{name}_triton").compilations()
    return found


def kernels() -> list[Any]:
    """All of our kernels, each once; `triton.JITFunction`."""
    return list({id(c.kernel): c.kernel for c in compilations()}.values())


def check(only: str, architectures: list[int], part: int, parts: int) -> list[str]:
    """Compile a share of the configurations; returns a sentence for each fault and prints the heaviest kernels."""
    tool = importlib.import_module("inglenook.kernels.ahead_of_time_triton")
    jobs = [
        (compilation, arch)
        for compilation in compilations()
        if only in compilation.name
        for arch in architectures
        if arch >= compilation.oldest
    ]
    faults: list[str] = []

    def report(fault: str) -> None:
        faults.append(fault)
        print(f"FAULT {fault}", flush=True)

    for compilation, arch in jobs[part::parts]:
        try:
            used = tool.compile_for(compilation, arch)
        except Exception as error:  # noqa: BLE001 - the compiler's errors have no common class; each is reported
            report(f"{compilation.name}, sm_{arch}: {type(error).__name__}: {str(error)[:600]}")
            continue
        line = f"{compilation.name}, sm_{arch}: {used.registers} registers, {used.shared_bytes} bytes shared"
        if used.spilled_bytes:
            report(f"{line}, {used.spilled_bytes} bytes spilled, 0 allowed")
        limit = tool.SHARED_LIMITS[arch]
        if used.shared_bytes > limit:
            report(f"{line}, {limit} allowed")
        print(line, flush=True)
    print(f"{len(jobs[part::parts])} compiled", flush=True)
    return faults


def main(arguments: list[str] | None = None) -> int:
    """Run the command; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m inglenook.kernels.aot", description=__doc__)
    parser.add_argument("--arch", type=int, nargs="+", default=list(ARCHITECTURES), choices=(80, 86, 89, 90))
    parser.add_argument("--only", default="", help="configurations whose name holds this text")
    parser.add_argument("--processes", type=int, default=min(4, os.cpu_count() or 1))
    parser.add_argument("--part", type=int, default=None, help=argparse.SUPPRESS)
    parser.add_argument("--list", action="store_true", help="name the configurations and stop")
    options = parser.parse_args(arguments)
    if os.environ.get("TRITON_INTERPRET", "0") not in ("", "0"):
        parser.error("TRITON_INTERPRET is set: nothing would be compiled")
    if options.list:
        print(*(c.name for c in compilations()), sep="\n")
        return 0
    if options.part is not None:
        return 1 if check(options.only, options.arch, options.part, options.processes) else 0
    started = time.perf_counter()
    with ThreadPoolExecutor(options.processes) as pool:
        results = list(pool.map(lambda part: _in_a_process(options, part), range(options.processes)))
    lines = [line for _, own in results for line in own]
    faults = sum(line.startswith("FAULT") for line in lines)
    compiled = sum(" registers, " in line and not line.startswith("FAULT") for line in lines)
    print(f"{compiled} kernels compiled in {time.perf_counter() - started:.0f} s, {faults} faults")
    return 1 if faults or not compiled or any(status not in (0, 1) for status, _ in results) else 0


def _in_a_process(options: argparse.Namespace, part: int) -> tuple[int, list[str]]:
    """Compile a share in a process of its own, printing as it goes; returns its exit status and lines."""
    command = [sys.executable, "-m", "inglenook.kernels.aot", "--part", str(part), "--only", options.only]
    command += ["--processes", str(options.processes), "--arch", *map(str, options.arch)]
    lines = []
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            lines.append(line)
            print(line, end="", flush=True)
    return process.returncode, lines


if __name__ == "__main__":
    sys.exit(main())
