"""`inglenook bench`: how fast a model reads prompts and writes answers on this computer, and how much memory bandwidth
that takes.

PyTorch is imported when the command runs, not when the program starts.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from inglenook.app.commands.terminal import StatusLine, harmless, harmless_json
from inglenook.app.errors import UsageError
from inglenook.app.paths import user_folders
from inglenook.engine.model_library import ModelLibrary

if TYPE_CHECKING:
    from inglenook.engine.benchmark import Speed


def add_bench(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        "bench",
        help="measure how fast a model runs here",
        description="Read a prompt of 512 tokens and write 128, alone and eight at a time; the best of three rounds.",
        allow_abbrev=False,
    )
    parser.set_defaults(run=run_bench)
    parser.add_argument(
        "model",
        metavar="MODEL",
        help="a chat model of the library, a .gguf file or a safetensors folder",
    )
    parser.add_argument(
        "--backend", default="auto", metavar="NAME", help="auto, or one that 'inglenook doctor' lists"
    )
    parser.add_argument(
        "--kv", choices=["float32", "float16", "bfloat16", "int8"], help="type of the KV cache"
    )
    parser.add_argument("--threads", type=int, metavar="N", help="threads of the engine")
    parser.add_argument("--rounds", type=int, default=3, metavar="N", help="rounds (default: 3)")
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run_bench(options: argparse.Namespace) -> int:
    """Measure and print; returns the exit status."""
    for name in ("threads", "rounds"):
        value = getattr(options, name)
        if value is not None and not 1 <= value <= 1024:
            raise UsageError(f"--{name} must be from 1 to 1024, got {value}.")
    path = Path(options.model).expanduser()
    if not path.exists():
        path = ModelLibrary(user_folders().models).get(options.model).path
    name = path.name
    speed = _measure(name, path, options)
    if options.json:
        print(harmless_json(json.dumps({"model": name, **asdict(speed)}, ensure_ascii=False)))
        return 0
    for label, value in _lines(name, speed):
        print(harmless(f"{label:<12} {value}"))
    return 0


def _measure(name: str, path: Path, options: argparse.Namespace) -> Speed:
    from inglenook.engine.benchmark import measure_file

    with StatusLine() as status:
        status.bytes(f"Measuring {name}", 0, 0)
        return measure_file(
            path,
            backend=options.backend,
            kv_dtype=options.kv,
            threads=options.threads,
            rounds=options.rounds,
        )


def _lines(name: str, speed: Speed) -> list[tuple[str, str]]:
    bandwidth = f"{speed.bandwidth_gb_s:.1f} GB/s while writing"
    if speed.bandwidth_fraction is not None:
        bandwidth += f", {speed.bandwidth_fraction:.0%} of what {speed.threads} threads can read here"
    return [
        ("model", name),
        ("back end", f"{speed.backend}, threads: {speed.threads}, KV cache: {speed.kv_dtype}"),
        ("because", speed.reason),
        ("load", f"{speed.load_s:.1f} s"),
        ("prompt", f"{speed.prefill_tok_s:.0f} tokens a second"),
        (
            "prompt",
            f"{speed.small_step_prefill_tok_s:.0f} tokens a second in steps of {speed.small_step_tokens}, beside other answers",
        ),
        ("answer", f"{speed.decode_tok_s:.1f} tokens a second"),
        ("8 answers", f"{speed.batch8_decode_tok_s:.1f} tokens a second together"),
        ("bandwidth", bandwidth),
        (
            "memory",
            f"{speed.rss_mb:.0f} MB, of it {speed.weights_mb:.0f} MB weights and {speed.kv_mb:.0f} MB KV cache",
        ),
    ]
