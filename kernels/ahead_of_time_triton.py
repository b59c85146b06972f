"""Compiling one kernel configuration for a GPU that is not there, and reading what it takes of one.

Triton's own compiler and the assembler that it brings do all the work; no driver is asked. Pointers, and sizes that
every model has in multiples of 16, are compiled as aligned, which is what Triton finds out at run time: without it
another, worse kernel would be looked at.
"""

# mypy: disable-error-code="import-untyped,import-not-found,untyped-decorator,no-untyped-def,no-untyped-call,attr-defined"

from __future__ import annotations

import re
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from inglenook.kernels.compilation import Compilation

# bytes of shared memory that one block may have: sm_80, sm_89, sm_90
SHARED_LIMITS = {80: 163 * 1024, 86: 99 * 1024, 89: 99 * 1024, 90: 227 * 1024}
_USAGE = re.compile(r"REG:(\d+) STACK:(\d+) SHARED:(\d+) LOCAL:(\d+)")


@dataclass(frozen=True, slots=True)
class Resources:
    """What a compiled kernel takes: registers a thread, bytes of shared memory a block, of spills a thread."""

    registers: int
    shared_bytes: int
    spilled_bytes: int


def compile_for(compilation: Compilation, capability: int) -> Resources:
    """Compile for a compute capability, 80, 86, 89 or 90."""
    kernel = compilation.kernel
    signature, constants, attributes = {}, {}, {}
    for index, name in enumerate(kernel.arg_names):
        if name in compilation.constants:
            signature[name], constants[(index,)] = "constexpr", compilation.constants[name]
            continue
        kind = compilation.arguments[name]
        if kind is None:
            signature[name], constants[(index,)] = "constexpr", None
            continue
        signature[name] = kind
        if kind.startswith("*") or name in compilation.aligned:
            attributes[(index,)] = [["tt.divisibility", 16]]
    compiled = triton.compile(
        ASTSource(kernel, signature, constants, attributes),
        target=GPUTarget("cuda", capability, 32),
        options={
            "num_warps": compilation.num_warps,
            "num_stages": compilation.num_stages,
            "enable_fp_fusion": True,
        },
    )
    registers, spilled = _usage(compiled.asm["cubin"])
    return Resources(registers, compiled.metadata.shared, spilled)


def _usage(cubin: bytes) -> tuple[int, int]:
    tool = Path(triton.__file__).parent / "backends" / "nvidia" / "bin" / "cuobjdump"
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(cubin)
        file.flush()
        done = subprocess.run(
            [tool, "--dump-resource-usage", file.name], capture_output=True, text=True, check=True, timeout=60
        )
    found = _USAGE.search(done.stdout)
    if found is None:
        raise RuntimeError(f"cuobjdump did not tell the resources: {done.stdout[:300]}")
    registers, stack, _, local = map(int, found.groups())
    return registers, stack + local
