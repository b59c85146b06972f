"""How fast each architecture runs: a random model of each, alike in size, on the back end that it gets here.

    python tests/bench/architectures.py [--backend NAME] [--threads N] [--rounds N] [--only NAME ...]

All are 512 wide with 8 layers, 8 heads of 64 (2 for keys and values), a feed-forward network of 1,536 and 8,192
tokens, in bfloat16; mixtures have 8 experts of 768 and use 2. Prefill is over 512 tokens, decode over 128 after 16, as
in decode.py. The last column is the decode speed over llama's on the same back end. Prints a table in Markdown.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path
from typing import Any

import torch

sys.path.insert(0, str(Path(__file__).parents[1] / "engine"))
from tiny_checkpoints import CHECKPOINTS

from inglenook.engine.benchmark import Speed, measure_file

NAMES = [name for name in CHECKPOINTS if "-" not in name]
SHAPE: dict[str, Any] = {
    "vocab_size": 8192, "hidden_size": 512, "intermediate_size": 1536, "num_hidden_layers": 8, "head_dim": 64,
    "num_attention_heads": 8, "num_key_value_heads": 2, "max_position_embeddings": 1024, "sliding_window": 256,
    "moe_intermediate_size": 768, "query_pre_attn_scalar": 64, "pad_token_id": 0, "bos_token_id": 1,
    "eos_token_id": 2,
}  # fmt: skip
_MIXTURE = {"qwen3moe": {}, "mixtral": {"intermediate_size": 768, "num_local_experts": 8}}


def make_model(folder: Path, name: str) -> None:
    """Save a random model of an architecture."""
    import transformers

    transformers.utils.logging.disable_progress_bar()

    model_type, settings = CHECKPOINTS[name]
    values = {**settings, **SHAPE, **_MIXTURE.get(name, {})}
    torch.manual_seed(0)
    model = transformers.AutoModelForCausalLM.from_config(
        transformers.AutoConfig.for_model(model_type, **values), dtype=torch.bfloat16
    )
    model.save_pretrained(folder)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--backend", default="auto")
    parser.add_argument("--threads", type=int)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--only", nargs="+", choices=NAMES, default=NAMES)
    options = parser.parse_args()
    print(
        "| Architecture | back end | prefill tok/s | decode tok/s | 8 at once tok/s | decode over llama's |"
    )
    print("| --- | --- | --- | --- | --- | --- |")
    llama: dict[str, Speed] = {}
    for name in options.only:
        with tempfile.TemporaryDirectory() as folder:
            make_model(Path(folder), name)
            found = measure_file(
                Path(folder), backend=options.backend, threads=options.threads, rounds=options.rounds
            )
        if name == "llama":
            llama[found.backend] = found
        base = llama.get(found.backend)
        ratio = f"{found.decode_tok_s / base.decode_tok_s:.2f}" if base else "-"
        print(
            f"| {name} | {found.backend} | {found.prefill_tok_s:,.0f} | {found.decode_tok_s:,.0f} | "
            f"{found.batch8_decode_tok_s:,.0f} | {ratio} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
