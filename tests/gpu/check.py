"""`tests/gpu/run.sh`: checks every GPU operation and whole models, measures them, and writes a table and JSON."""

from __future__ import annotations

import argparse
import json
import os
import platform
import secrets
import sys
import time
from pathlib import Path

BUDGET_S = 450


def main() -> int:
    parser = argparse.ArgumentParser(prog="tests/gpu/run.sh")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--dry-run", action="store_true")
    parser.add_argument("--seed", type=int, default=None, help="of the random inputs; a fresh one by default")
    options = parser.parse_args()
    if options.dry_run:
        os.environ["TRITON_INTERPRET"] = "1"  # before Triton is imported
    started = time.perf_counter()
    seed = secrets.randbelow(1 << 30) if options.seed is None else options.seed

    import torch
    import triton
    from check_models import check_model, check_promises, load, shapes
    from check_operations import check_operations
    from machine import find_machine
    from measure import copy_gb_s, gemm_tflop_s, measure_deterministic, measure_model, measure_plain_torch

    machine = find_machine(is_dry_run=options.dry_run)
    print(f"{machine.name}; torch {torch.__version__}, triton {triton.__version__}, seed {seed}")
    outcomes, speeds, failed, skipped = [], [], 0, []

    def elapsed() -> float:
        return time.perf_counter() - started

    def take(found) -> None:
        nonlocal failed
        for what, error, allowed in found:
            is_good = error <= allowed
            failed += not is_good
            outcomes.append({"what": what, "error": error, "allowed": allowed, "ok": is_good})
            print(
                f"{'ok  ' if is_good else 'FAIL'} {what}: {error:.2e}, allowed {allowed:.0e}  [{elapsed():.0f} s]"
            )

    def attempt(what: str, work) -> None:
        """One part; its failure is counted, and the others still run while there is time."""
        nonlocal failed
        if elapsed() > BUDGET_S:
            skipped.append(what)
            return
        try:
            work()
        except Exception as error:  # noqa: BLE001 - a broken part must not hide the others' results
            failed += 1
            outcomes.append({"what": what, "error": f"{type(error).__name__}: {error}", "ok": False})
            print(f"FAIL {what}: {type(error).__name__}: {str(error)[:2000]}")

    attempt("operations", lambda: take(check_operations(machine, seed)))
    copy, gemm = copy_gb_s(machine), gemm_tflop_s(machine)
    print(f"copying {copy:.0f} GB/s, multiplying {gemm:.1f} TFLOP/s")
    specs = shapes(machine)
    attempt("promises", lambda: take(check_promises(machine, next(iter(specs.values())))))

    def whole_model(shape: str, form: str) -> None:
        spec, name = specs[shape], f"{shape} {'int4' if form == 'Q4_0' else 'bf16'}"
        begun = elapsed()
        model = load(machine, spec, form)
        print(f"{name}: loaded in {elapsed() - begun:.1f} s, {model.weight_bytes / 1e9:.2f} GB")
        take(check_model(machine, name, model))
        speeds.extend(measure_model(machine, name, spec, model, copy, gemm))
        if form == "BF16":
            speeds.extend(measure_plain_torch(machine, name, spec, model, copy))
        model.close()
        if form == "Q4_0":
            speeds.extend(measure_deterministic(machine, name, spec))

    # the one that the bars are about comes first
    for shape in reversed(specs):
        for form in ("Q4_0", "BF16"):
            attempt(f"{shape} {form}", lambda shape=shape, form=form: whole_model(shape, form))

    text = table(speeds)
    print(text)
    summary = f"{len(outcomes) - failed} checks passed, {failed} failed in {elapsed():.0f} s"
    if skipped:
        summary += f"; no time for {', '.join(skipped)}"
    print(summary)
    if options.out is not None:
        options.out.mkdir(parents=True, exist_ok=True)
        facts = {
            "date": time.strftime("%Y-%m-%d"), "card": machine.name, "is_dry_run": options.dry_run, "seed": seed,
            "python": platform.python_version(), "torch": torch.__version__, "triton": triton.__version__,
            "copy_gb_s": copy, "gemm_tflop_s": gemm, "speeds": speeds, "checks": outcomes, "skipped": skipped,
            "seconds": elapsed(),
        }  # fmt: skip
        (options.out / "results.json").write_text(json.dumps(facts, indent=1))
        (options.out / "table.txt").write_text(f"{machine.name}\n{text}\n{summary}\n")
    return 1 if failed or skipped else 0


def table(rows: list[dict[str, float | str]]) -> str:
    """The speeds as text."""
    heads = ("model", "what", "ms", "tokens_s", "gb_s", "of_copy", "graph_gain", "tflop_s", "of_gemm")
    lines = [list(heads)]
    for row in rows:
        lines.append(
            [f"{row[h]:.2f}" if isinstance(row.get(h), float) else str(row.get(h, "")) for h in heads]
        )
    widths = [max(len(line[i]) for line in lines) for i in range(len(heads))]
    return "\n".join(
        "  ".join(cell.ljust(w) for cell, w in zip(line, widths, strict=True)).rstrip() for line in lines
    )


if __name__ == "__main__":
    sys.exit(main())
