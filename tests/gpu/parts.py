"""The process that runs the parts of `check.py`, named one a line on standard input; answers are lines of JSON.

    {"kind": "check", ...}   one comparison    {"kind": "speed", ...}   a row of the table
    {"kind": "fact", ...}    of the machine    {"kind": "end", "goes_on": ...}   after each part

A part that fails prints its traceback, is counted, and the next one runs; after an error of CUDA's in a new process.
"""

from __future__ import annotations

import json
import math
import platform
import sys
import traceback
from collections.abc import Callable, Iterable

import torch
import triton
from check_host import check_host
from check_models import check_model, check_parts, check_promises, compile_kernels, load, shapes
from check_operations import OPERATIONS, Outcome, check_operation
from machine import Machine, find_machine
from measure import (
    copy_gb_s,
    gemm_tflop_s,
    measure_deterministic,
    measure_drawing,
    measure_model,
    measure_plain_torch,
)


def say(kind: str, **facts: object) -> None:
    print(json.dumps({"kind": kind} | facts), flush=True)


def take(part: str, found: Iterable[Outcome]) -> None:
    for what, error, allowed in found:
        is_good = bool(error <= allowed)
        shown = error if math.isfinite(error) else str(error)  # JSON has no infinity
        text = f"{what}: {error:.2e}, allowed {allowed:.0e}"
        say("check", ok=is_good, part=part, what=what, error=shown, allowed=allowed, text=text)


class Parts:
    """All parts, with what one measured and another needs."""

    def __init__(self, machine: Machine, seed: int) -> None:
        self._machine, self._seed = machine, seed
        self._rates: tuple[float, float] | None = None

    def run(self, part: str) -> None:
        machine = self._machine
        if part == "facts":
            copy, gemm = self._copy_and_gemm()
            say(
                "fact", card=machine.name, python=platform.python_version(), torch=torch.__version__,
                triton=triton.__version__, copy_gb_s=copy, gemm_tflop_s=gemm,
            )  # fmt: skip
        elif part in OPERATIONS:
            take(part, check_operation(part, machine, self._seed))
        elif part == "host":
            take(part, check_host(machine))
        elif part == "parts":
            take(part, check_parts(machine, next(iter(shapes(machine).values()))))
        elif part.startswith("kernels "):
            compile_kernels(machine, *part.split(" ")[1:])
        elif part == "promises":
            take(part, check_promises(machine, next(iter(shapes(machine).values()))))
        else:
            self._whole_model(*part.split(" "))

    def _copy_and_gemm(self) -> tuple[float, float]:
        if self._rates is None:
            self._rates = copy_gb_s(self._machine), gemm_tflop_s(self._machine)
        return self._rates

    def _whole_model(self, shape: str, form: str) -> None:
        machine, spec = self._machine, shapes(self._machine)[shape]
        name = f"{shape} {'int4' if form == 'Q4_0' else 'bf16'}"
        copy, gemm = self._copy_and_gemm()
        model = load(machine, spec, form)
        print(f"{name}: {model.weight_bytes / 1e9:.2f} GB", flush=True)

        def speeds(work: Callable[[], list[dict[str, float | str]]]) -> None:
            for row in work():
                say("speed", **row)

        # what is measured must not be lost with a check that fails, nor the other way round
        failures = []
        for work in (
            lambda: speeds(lambda: measure_model(machine, name, spec, model, copy, gemm)),
            lambda: take(f"{shape} {form}", check_model(machine, name, model)),
            lambda: speeds(lambda: measure_drawing(machine, name, spec, model)),
            lambda: speeds(
                lambda: measure_plain_torch(machine, name, spec, model, copy) if form == "BF16" else []
            ),
        ):
            try:
                work()
            except Exception as error:
                traceback.print_exc()
                failures.append(error)
                if is_cuda_error(error):
                    raise
        model.close()
        if form == "Q4_0":
            speeds(lambda: measure_deterministic(machine, name, spec))
        if failures:
            raise failures[0]


def is_cuda_error(error: BaseException) -> bool:
    """Whether CUDA will refuse everything from now on."""
    text = f"{type(error).__name__} {error}"
    return not isinstance(error, torch.OutOfMemoryError) and any(
        w in text for w in ("CUDA error", "AcceleratorError")
    )


def main() -> None:
    kind, seed = sys.argv[1:]
    torch.set_float32_matmul_precision("highest")  # some images allow TF32, which is no reference
    parts: Parts | None = None
    for line in sys.stdin:
        part, goes_on = line.strip(), True
        try:
            parts = parts or Parts(find_machine(is_dry_run=kind == "dry"), int(seed))
            parts.run(part)
        except Exception as error:  # noqa: BLE001 - a broken part must not hide the others' results
            trace = traceback.format_exc()
            print(trace, flush=True)
            why = f"{type(error).__name__}: {str(error)[:2000]}"
            say("check", ok=False, part=part, what=part, text=f"{part}: {why}", traceback=trace[-6000:])
            goes_on = not is_cuda_error(error)
            if torch.cuda.is_available() and goes_on:
                torch.cuda.empty_cache()
        say("end", goes_on=goes_on)


if __name__ == "__main__":
    main()
