"""Prefill, decode and memory bandwidth of one model on one back end.

    python tests/bench/decode.py MODEL [--kv int8] [--threads N] [--isa NAME] [--backend NAME] [--rounds N] [--json]
    python tests/bench/decode.py --format Q4_K [...]      one random layer, 4,096 wide, of that weight format

Prefill is over 512 tokens in steps of 256, and in the back end's own small steps; decode over 128 tokens after 16, and
once more over 8 sequences at a time; each the best of the rounds. `bandwidth_gb_s` counts the bytes of the source's tensors that a
token reads and its keys and values; `bandwidth_fraction` is that over the read bandwidth measured in the same run.
Figures are for side-by-side use on an otherwise idle machine. The last line is one JSON object.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict
from pathlib import Path

import torch

from inglenook.engine.benchmark import Speed, measure, measure_file
from inglenook.engine.models.spec import ModelSpec, RopeSpec
from inglenook.engine.native_backend import NAME, NativeBackend
from inglenook.kernels.native_interface import FORMAT_IDS


def measure_format(name: str, isa: str | None, threads: int | None, rounds: int) -> Speed:
    """One layer of random weights, all of one format, with the shape of a 7B model's."""
    import tempfile

    sys.path.insert(0, str(Path(__file__).parents[1] / "engine"))
    from native_fixtures import RandomSource

    spec = ModelSpec(
        architecture="llama",
        vocab_size=1024,
        hidden_size=4096,
        num_layers=1,
        num_heads=32,
        num_kv_heads=8,
        head_size=128,
        intermediate_size=14336,
        context_length=2048,
        norm_eps=1e-5,
        rope=RopeSpec(theta=10000.0, size=128),
    )
    if threads:
        torch.set_num_threads(threads)
    with tempfile.TemporaryDirectory() as folder:
        backend = NativeBackend(isa=isa, num_threads=threads, folder=Path(folder))
        return measure(backend, spec, RandomSource(spec, [name]), rounds=rounds)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("model", nargs="?", type=Path)
    parser.add_argument("--format", choices=list(FORMAT_IDS))
    parser.add_argument("--kv", choices=["float32", "float16", "bfloat16", "int8"])
    parser.add_argument("--threads", type=int)
    parser.add_argument("--isa")
    parser.add_argument("--backend", default="auto")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", action="store_true", help="print nothing but the JSON object")
    options = parser.parse_args()
    if (options.model is None) == (options.format is None):
        parser.error("give a MODEL or a --format")
    if options.format:
        speed = measure_format(options.format, options.isa, options.threads, options.rounds)
    else:
        backend = f"{NAME}:{options.isa}" if options.isa else options.backend
        speed = measure_file(
            options.model,
            backend=backend,
            kv_dtype=options.kv,
            threads=options.threads,
            rounds=options.rounds,
        )
    result = {"model": options.format or options.model.name, **asdict(speed)}
    if not options.json:
        for name, value in result.items():
            print(f"{name:22} {value}")
    print(json.dumps(result))


if __name__ == "__main__":
    main()
