"""`tests/gpu/run.sh`: checks every GPU operation and whole models, measures them, and writes a table and JSON.

Once the card is known, the parts that compare come, and those that compile the models' kernels for the later ones, all
at once in a process each: compiling is most of the time. Then the parts that measure, one after another in a process of their own,
which is replaced when it dies, when CUDA fails in it (no later call would then work) or when a part takes too long: the
parts that follow run all the same. Results are written as they come.
"""

from __future__ import annotations

import argparse
import json
import os
import queue
import secrets
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

BUDGET_S = 465
LONGEST_PART_S = 150
MODELS = ("8B Q4_0", "1B Q4_0", "8B BF16", "1B BF16")
# the longest first; `parts.py` says what each does
TOGETHER = (
    "linear 0", "linear 1", "linear 2", "linear 3", "attention 128", "attention 64", "attention 96", "attention 256",
    *(f"kernels {model}" for model in MODELS), "sampling", "rotary", "norms", "activations",
)  # fmt: skip
# nothing else needs these; in the order in which they matter
ALONE = ("facts", "8B Q4_0", "host", "promises", "1B Q4_0", "8B BF16", "1B BF16", "parts")
DRY_PARTS = (
    "facts", *TOGETHER[:5], *TOGETHER[-4:], "host", "promises", "tiny Q4_0", "tiny BF16", "parts",
)  # fmt: skip


class Results:
    """What was found so far, kept in a file that is whole at every moment."""

    def __init__(self, folder: Path | None, *, is_dry_run: bool, seed: int) -> None:
        self._folder = folder
        self._started = time.perf_counter()
        self._lock = threading.Lock()
        self.facts: dict[str, object] = {
            "date": time.strftime("%Y-%m-%d"), "is_dry_run": is_dry_run, "seed": seed, "speeds": [], "checks": [],
            "skipped": [],
        }  # fmt: skip
        if folder is not None:
            folder.mkdir(parents=True, exist_ok=True)

    @property
    def seconds(self) -> float:
        return time.perf_counter() - self._started

    @property
    def checks(self) -> list[dict[str, object]]:
        return self.facts["checks"]  # type: ignore[return-value]  # made so above

    @property
    def failed(self) -> int:
        return sum(not check["ok"] for check in self.checks)

    def take(self, message: dict[str, object]) -> None:
        """Keep and print one thing that a part said; from any thread."""
        with self._lock:
            self._take(message)

    def _take(self, message: dict[str, object]) -> None:
        kind = message.pop("kind")
        if kind == "check":
            self.checks.append(message)
            mark = "ok  " if message["ok"] else "FAIL"
            print(f"{mark} {message['text']}  [{self.seconds:.0f} s]", flush=True)
        elif kind == "speed":
            self.facts["speeds"].append(message)  # type: ignore[attr-defined]  # made so above
        elif kind == "fact":
            self.facts |= message
            print(
                ", ".join(f"{k} {v:.1f}" if isinstance(v, float) else f"{k} {v}" for k, v in message.items()),
                flush=True,
            )
        self.save()

    def skip(self, part: str) -> None:
        """Note that there was no time for a part."""
        with self._lock:
            self.facts["skipped"].append(part)  # type: ignore[attr-defined]  # made so above

    def fail(self, part: str, why: str) -> None:
        self.take({"kind": "check", "ok": False, "part": part, "text": f"{part}: {why}"})

    def save(self) -> None:
        if self._folder is None:
            return
        self.facts["seconds"] = round(self.seconds, 1)
        new = self._folder / "results.json.new"
        new.write_text(json.dumps(self.facts, indent=1))
        new.replace(self._folder / "results.json")

    def close(self) -> None:
        """Print the table and the summary."""
        text = table(self.facts["speeds"])  # type: ignore[arg-type]  # made so above
        summary = (
            f"{len(self.checks) - self.failed} checks passed, {self.failed} failed in {self.seconds:.0f} s"
        )
        if self.facts["skipped"]:
            summary += f"; no time for {', '.join(self.facts['skipped'])}"  # type: ignore[arg-type]
        print(f"{text}\n{summary}")
        self.save()
        if self._folder is not None:
            (self._folder / "table.txt").write_text(f"{self.facts.get('card', '')}\n{text}\n{summary}\n")


class Worker:
    """The process of the parts."""

    def __init__(self, *, is_dry_run: bool, seed: int) -> None:
        environment = os.environ | (
            {"TRITON_INTERPRET": "1"} if is_dry_run else {}
        )  # before Triton is imported
        command = [
            sys.executable,
            str(Path(__file__).with_name("parts.py")),
            "dry" if is_dry_run else "card",
            str(seed),
        ]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
        )
        self._lines: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._lines.put(line)
        self._lines.put(None)

    def run(self, part: str, results: Results, timeout_s: float) -> bool:
        """Run one part; whether this process can run another."""
        assert self._process.stdin is not None
        try:
            print(part, file=self._process.stdin, flush=True)
        except OSError:
            results.fail(part, f"the process was gone before, with status {self._process.wait()}")
            return False
        deadline = time.monotonic() + timeout_s
        while True:
            try:
                line = self._lines.get(timeout=max(0.1, deadline - time.monotonic()))
            except queue.Empty:
                self.close()
                results.fail(part, f"it took more than {timeout_s:.0f} s and was ended")
                return False
            if line is None:
                results.fail(part, f"its process ended with status {self._process.wait()}")
                return False
            if not line.startswith("{"):
                print(line, end="", flush=True)
                continue
            message = json.loads(line)
            if message["kind"] == "end":
                return bool(message["goes_on"])
            results.take(message)

    def close(self) -> None:
        self._process.kill()
        self._process.wait()


def main() -> int:
    parser = argparse.ArgumentParser(prog="tests/gpu/run.sh")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--dry-run", action="store_true")
    parser.add_argument("--seed", type=int, default=None, help="of the random inputs; a fresh one by default")
    parser.add_argument("--only", default="", help="parts whose name holds this text")
    options = parser.parse_args()
    seed = secrets.randbelow(1 << 30) if options.seed is None else options.seed
    results = Results(options.out, is_dry_run=options.dry_run, seed=seed)
    wanted = lambda names: [part for part in names if options.only in part or part == "facts"]  # noqa: E731
    worker: Worker | None = None
    for part in wanted(DRY_PARTS if options.dry_run else ALONE):
        left = BUDGET_S - results.seconds
        if left < 10 and not options.dry_run:
            results.skip(part)
            continue
        worker = worker or Worker(is_dry_run=options.dry_run, seed=seed)
        limit = 600 if options.dry_run else min(LONGEST_PART_S, left)
        if not worker.run(part, results, limit):
            worker.close()
            worker = None
            if part == "facts":
                break  # nothing can be checked here
        if part == "facts" and not options.dry_run:
            run_together(wanted(TOGETHER), results, seed)
    if worker is not None:
        worker.close()
    results.close()
    return 1 if results.failed or results.facts["skipped"] else 0


def run_together(parts: list[str], results: Results, seed: int) -> None:
    """Run parts at once, each in a process, as many as there are processors for."""

    def run(part: str) -> None:
        left = BUDGET_S - results.seconds
        if left < 10:
            results.skip(part)
            return
        worker = Worker(is_dry_run=False, seed=seed)
        try:
            worker.run(part, results, min(LONGEST_PART_S, left))
        finally:
            worker.close()

    with ThreadPoolExecutor(max(1, min(len(parts), len(os.sched_getaffinity(0))))) as pool:
        list(pool.map(run, parts))


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
