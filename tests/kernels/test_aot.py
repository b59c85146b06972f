"""The check that compiles all GPU kernels: what it covers, and that it fails when it should."""

import importlib.util
import os
import subprocess
import sys
from types import SimpleNamespace

import pytest

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("triton") is None, reason="Triton is not installed here"
)


def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess:
    clean = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    return subprocess.run(
        [sys.executable, "-m", "inglenook.kernels.aot", *arguments],
        env=clean | environment, capture_output=True, text=True, timeout=110, check=False,
    )  # fmt: skip


@pytest.mark.slow
def test_a_kernel_compiles_for_three_architectures_without_a_card() -> None:
    done = run("--only", "silu_and_mul", "--processes", "1")

    assert done.returncode == 0, done.stdout + done.stderr
    for architecture in (80, 89, 90):
        assert f"silu_and_mul, sm_{architecture}: " in done.stdout
    assert "3 kernels compiled" in done.stdout


@pytest.mark.slow
def test_nothing_compiled_is_a_failure() -> None:
    done = run("--only", "no kernel has this name", "--processes", "1")

    assert done.returncode == 1
    assert "0 kernels compiled" in done.stdout


def test_the_interpreter_is_refused() -> None:
    done = run("--list", TRITON_INTERPRET="1")

    assert done.returncode == 2
    assert "TRITON_INTERPRET" in done.stderr


@pytest.mark.parametrize(
    ("spilled", "shared", "fault"),
    [(8, 0, "8 bytes spilled, 0 allowed"), (0, 10**6, "1000000 bytes shared, 166912 allowed"), (0, 0, "")],
)
def test_spills_and_too_much_shared_memory_are_faults(monkeypatch, spilled, shared, fault) -> None:
    import interpreted_triton  # noqa: F401 - this process has been told to interpret

    from inglenook.kernels import ahead_of_time_triton, aot

    used = SimpleNamespace(registers=1, shared_bytes=shared, spilled_bytes=spilled)
    monkeypatch.setattr(ahead_of_time_triton, "compile_for", lambda compilation, arch: used)

    faults = aot.check("silu_and_mul", [80], 0, 1)

    assert len(faults) == bool(fault)
    assert fault in "".join(faults)


def test_every_kernel_module_is_in_the_list() -> None:
    import interpreted_triton  # noqa: F401

    from inglenook.kernels import aot

    names = {compilation.kernel.fn.__module__ for compilation in aot.compilations()}
    folder = importlib.util.find_spec("inglenook.kernels").submodule_search_locations
    modules = {
        f"inglenook.kernels.{file.removesuffix('.py')}"
        for file in os.listdir(next(iter(folder)))
        if file.endswith("_triton.py") and file != "ahead_of_time_triton.py"
    }

    assert modules == names
