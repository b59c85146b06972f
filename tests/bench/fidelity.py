"""How close our logits, and llama.cpp's, are to float32 arithmetic on the same file's dequantised weights.

    python tests/bench/fidelity.py MODEL.gguf [--backends NAME,NAME+int8,...] [--no-peer] [--windows N] [--keep FOLDER]

The text is 8 windows of 512 tokens (4,096 positions): English, German, Russian, Arabic, Chinese and Hindi prose, aeronautics
abstracts, and this project's own source code. The yardstick is transformers in float32 with `gguf_file=`. Reported
are, over all positions, the mean of KL(yardstick || ours) computed in float64 and the share of positions whose
best token agrees. Everything runs in a process of its own; needs the shared test material and, for the peer, a
compiler the first time. --keep keeps the yardstick and the peer's figures of a model for later runs; --windows takes
the first N windows only, for the scalar twin. The last line is one JSON object.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

REPOSITORY = Path(__file__).resolve().parents[2]
SHARED = Path(os.environ.get("INGLENOOK_SHARED", REPOSITORY.parent / "shared"))
WINDOWS, LENGTH = 8, 512
ROWS = 64  # positions compared at a time, in float64

_YARDSTICK = """
import sys, numpy as np, torch, transformers
path, ids, out = sys.argv[1:]
folder, _, name = path.rpartition("/")
model = transformers.AutoModelForCausalLM.from_pretrained(folder, gguf_file=name, dtype=torch.float32).eval()
ids = np.load(ids)["ids"]
logits = None
with torch.inference_mode():
    for row, window in enumerate(ids):
        got = model(torch.tensor(window[None].astype(np.int64))).logits[0].numpy()
        if logits is None:
            logits = np.lib.format.open_memmap(out, "w+", np.float32, (*ids.shape, got.shape[-1]))
        logits[row] = got
"""


def texts() -> list[str]:
    """One long text a window, of different kinds."""

    def xquad(language: str) -> str:
        with open(SHARED / "data" / "xquad" / f"xquad.{language}.json", encoding="utf-8") as file:
            articles = json.load(file)["data"]
        return "\n\n".join(p["context"] for a in articles[:12] for p in a["paragraphs"])

    abstracts = (SHARED / "data" / "cranfield" / "cran.all.1400").read_text(encoding="utf-8")[20_000:40_000]
    code = (REPOSITORY / "engine" / "scheduler.py").read_text(encoding="utf-8")
    return [*(xquad(language) for language in ("en", "de", "ru", "ar", "zh", "hi")), abstracts, code]


def token_windows(model: Path) -> np.ndarray:
    """Token ids int32 [WINDOWS, LENGTH] of the texts, by our tokenizer."""
    from inglenook.engine.tokenizer.tokenizer import Tokenizer
    from inglenook.engine.weights.loader import open_model

    with open_model(model) as file:
        tokenizer = Tokenizer.from_model_file(file)
    try:
        rows = [tokenizer.encode_text(text[:20_000]).token_ids[:LENGTH] for text in texts()]
    finally:
        tokenizer.close()
    return np.array(rows, dtype=np.int32)


def log_softmax(logits: np.ndarray) -> np.ndarray:
    """Float64 log-probabilities of rows of logits."""
    shifted = logits.astype(np.float64)
    shifted -= shifted.max(-1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(-1, keepdims=True))


def compare(yardstick: np.ndarray, other: np.ndarray) -> tuple[float, float]:
    """Mean KL(yardstick || other) in nats and the share of equal arg-maxima, over [W, T, V]."""
    divergence, agree, count = 0.0, 0, 0
    size = min(yardstick.shape[-1], other.shape[-1])
    for window in range(yardstick.shape[0]):
        for start in range(0, yardstick.shape[1], ROWS):
            a = log_softmax(yardstick[window, start : start + ROWS, :size])
            b = log_softmax(other[window, start : start + ROWS, :size])
            divergence += float((np.exp(a) * (a - b)).sum())
            agree += int((a.argmax(-1) == b.argmax(-1)).sum())
            count += a.shape[0]
    return divergence / count, agree / count


def run(*command: str | Path) -> None:
    """Run a step in a process of its own, its output shown only when it fails."""
    done = subprocess.run(
        [str(part) for part in command],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if done.returncode:
        raise SystemExit(
            f"{' '.join(map(str, command[:2]))} failed with {done.returncode}:\n{done.stdout[-2000:]}"
        )


def main() -> None:
    """Run the command line above."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("model", type=Path)
    parser.add_argument("--backends", default="reference,torch-cpu,native-cpu,native-cpu+int8")
    parser.add_argument("--no-peer", action="store_true", help="leave llama.cpp out")
    parser.add_argument("--windows", type=int, default=WINDOWS, choices=range(1, WINDOWS + 1))
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="reuse what does not depend on our code")
    args = parser.parse_args()
    model = args.model.resolve()
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        ids = token_windows(model)[: args.windows]
        result: dict[str, object] = {"model": model.name, "positions": ids.size}
        if args.keep:
            key = hashlib.sha256(ids.tobytes() + model.name.encode()).hexdigest()[:16]
            folder = args.keep / key
            folder.mkdir(parents=True, exist_ok=True)
        np.savez(folder / "ids.npz", ids=ids)
        np.save(folder / "ids.npy", ids)
        if not (folder / "yardstick.npy").exists():
            run(sys.executable, "-c", _YARDSTICK, model, folder / "ids.npz", folder / "half.npy")
            (folder / "half.npy").rename(folder / "yardstick.npy")
        yardstick = np.load(folder / "yardstick.npy", mmap_mode="r")
        runs = {} if args.no_peer else {"llama.cpp": [sys.executable, SHARED / "tools" / "peer_llama_cpp.py",
                "--windows", folder / "ids.npy", "--logits", folder / "out.npy", model]}  # fmt: skip
        for backend in args.backends.split(","):
            runs[backend] = [sys.executable, Path(__file__).with_name("logits.py"), model, "--ids", folder / "ids.npz",
                             "--out", folder / "out.npy", "--backend", backend.removesuffix("+int8"),
                             *(["--kv", "int8"] if backend.endswith("+int8") else [])]  # fmt: skip
        for label, command in runs.items():
            kept = folder / "peer.json" if label == "llama.cpp" else None
            if kept and kept.exists():
                figures = json.loads(kept.read_text())
            else:
                run(*command)
                divergence, agreement = compare(yardstick, np.load(folder / "out.npy", mmap_mode="r"))
                figures = {"kl": divergence, "top1": agreement}
                (folder / "out.npy").unlink()
            if kept:
                kept.write_text(json.dumps(figures))
            result[label] = figures
            print(f"{label:12} KL {figures['kl']:.3e}   top-1 {figures['top1']:.4f}", flush=True)
    print(json.dumps(result))


if __name__ == "__main__":
    main()
