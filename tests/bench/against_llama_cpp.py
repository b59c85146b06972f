"""Our prefill and decode beside llama.cpp's on the same file: three rounds, each one after the other, and the ratios.

    python tests/bench/against_llama_cpp.py MODEL [--threads N] [--avx2] [--rounds 3] [--json]

The peer is the shared tools/peer_llama_cpp.py ($INGLENOOK_SHARED names the shared folder), which builds llama.cpp for
this processor the first time; --avx2 holds both sides to AVX2. Run it on an otherwise idle machine; only the ratios
mean anything elsewhere. The last line is one JSON object with all rounds and the medians of the ratios.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve()
SHARED = Path(os.environ.get("INGLENOOK_SHARED", HERE.parents[3] / "shared"))
RATES = ("prefill_tok_s", "decode_tok_s")


def last_json_line(command: list[str]) -> dict[str, Any]:
    """Run a command and read the JSON object on the last line of its output."""
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    result: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return result


def main() -> None:
    """Measure both, alternately, and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("model", type=Path)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--avx2", action="store_true")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", action="store_true", help="print nothing but the JSON object")
    options = parser.parse_args()
    threads = ["--threads", str(options.threads)]
    peer = [sys.executable, str(SHARED / "tools" / "peer_llama_cpp.py"), *threads, str(options.model)]
    ours = [sys.executable, str(HERE.with_name("decode.py")), *threads, "--json", str(options.model)]
    if options.avx2:
        peer.append("--avx2")
        ours += ["--isa", "avx2"]
    rounds = []
    for number in range(options.rounds):
        theirs, mine = last_json_line(peer), last_json_line(ours)
        ratios = {rate: round(mine[rate] / theirs[rate], 3) for rate in RATES}
        rounds.append({"peer": theirs, "ours": mine, "ratios": ratios})
        if not options.json:
            for rate in RATES:
                print(
                    f"round {number + 1} {rate:15} {mine[rate]:8} / {theirs[rate]:8} = {ratios[rate]}",
                    flush=True,
                )
    medians = {rate: statistics.median(r["ratios"][rate] for r in rounds) for rate in RATES}
    print(json.dumps({"model": options.model.name, "medians": medians, "rounds": rounds}))


if __name__ == "__main__":
    main()
