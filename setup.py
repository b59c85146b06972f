"""The native CPU kernels: one optional library for each instruction set, with its own compiler flags.

They are plain C libraries behind ctypes (no Python headers), built as extension modules only so that installers put
them beside `inglenook.kernels`. A machine without a C++ compiler installs all the same and runs on PyTorch.
"""

import platform
from pathlib import Path

from setuptools import Extension, setup

COMMON = [
    "-std=c++17",
    "-O3",
    "-ffp-contract=off",
    "-fno-math-errno",
    "-fvisibility=hidden",
    "-pthread",
    "-w",
]
AVX2 = ["-mavx2", "-mfma", "-mf16c"]
AVX512 = [*AVX2, "-mavx512f", "-mavx512bw", "-mavx512dq", "-mavx512vl", "-mavx512vnni"]

flags = {"scalar": []}
if platform.machine().lower() in ("x86_64", "amd64"):
    flags |= {"avx2": AVX2, "avxvnni": [*AVX2, "-mavxvnni"], "avx512vnni": AVX512}
    if platform.system() == "Linux":
        flags["amx"] = [*AVX512, "-mamx-tile", "-mamx-int8"]

setup(
    ext_modules=[
        Extension(
            f"inglenook.kernels._native_{isa}",
            sources=[f"kernels/cpu/isa_{isa}.cpp"],
            depends=[str(path) for path in sorted(Path("kernels/cpu").glob("*.h"))],
            extra_compile_args=[*COMMON, *isa_flags],
            extra_link_args=["-pthread"],
            language="c++",
            optional=True,
            py_limited_api=True,
        )
        for isa, isa_flags in flags.items()
    ],
    options={"build_ext": {"parallel": True}},  # on all cores
)
