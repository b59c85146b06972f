"""Write the logits of every position of given token ids, by one of our back ends.

    python tests/bench/logits.py MODEL --ids IDS.npz --out OUT.npz [--backend NAME] [--kv DTYPE] [--chunk N] [--threads N]

IDS.npz holds `ids`: integers [T] for one sequence or [W, T] for W of them, each run from an empty cache. OUT.npz
gets `logits`: float32 [T, V] or [W, T, V]. A path ending in .npy is written as a bare memory-mapped array instead.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

from inglenook.engine.backend import BackendModel
from inglenook.engine.backend_choice import choose_backend
from inglenook.engine.batch import Batch, build_batch
from inglenook.engine.cpu import default_num_threads
from inglenook.engine.kv_blocks import BlockTables
from inglenook.engine.kv_cache import KVDtype, num_blocks_for
from inglenook.engine.sequence import Chunk, Sequence, StepPlan
from inglenook.engine.weights.loader import open_model


def load(
    path: Path, backend_name: str, length: int, num_sequences: int = 1, kv_dtype: KVDtype | None = None
) -> BackendModel:
    """Load a model with room for `num_sequences` sequences of `length` tokens."""
    with open_model(path) as file:
        backend = choose_backend(backend_name, file.spec, file, kv_dtype=kv_dtype)
        spec = replace(file.spec, context_length=min(file.spec.context_length, max(length, 16)))
        model = backend.load(spec, file, lambda done, total: None)
    groups = backend.kv_groups(spec)
    model.allocate_kv((num_sequences * num_blocks_for(length),) * len(groups))
    return model


def every_row(plan: StepPlan, model: BackendModel) -> Batch:
    """Make a plan's batch with the logits of all rows wanted."""
    batch = build_batch(plan)
    return replace(batch, logits_rows=torch.arange(plan.num_tokens))


def sequence_logits(model: BackendModel, token_ids: list[int], chunk: int) -> torch.Tensor:
    """Run one sequence from an empty cache in chunks; returns float32 [T, V]."""
    table = list(range(num_blocks_for(len(token_ids))))
    sequence = Sequence(0, token_ids, len(token_ids), tables=BlockTables([table for _ in model.kv]))
    parts = []
    for start in range(0, len(token_ids), chunk):
        plan = StepPlan((Chunk(sequence, start, min(chunk, len(token_ids) - start)),))
        parts.append(model.forward(every_row(plan, model)))
    return torch.cat(parts)


def main() -> None:
    """Run the command line above."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("model", type=Path)
    parser.add_argument("--ids", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--backend", default="auto")
    parser.add_argument("--kv", default=None, help="dtype of the KV cache")
    parser.add_argument("--chunk", type=int, default=512, help="tokens a step")
    parser.add_argument("--threads", type=int, default=default_num_threads())
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    with np.load(args.ids, allow_pickle=False) as file:
        ids = file["ids"]
    windows = np.atleast_2d(ids)
    model = load(args.model, args.backend, windows.shape[1], kv_dtype=args.kv)
    shape = (*windows.shape, model.spec.vocab_size)
    if args.out.suffix == ".npy":
        out = np.lib.format.open_memmap(args.out, "w+", np.float32, shape)
    else:
        out = np.empty(shape, np.float32)
    for row, window in enumerate(windows.tolist()):
        out[row] = sequence_logits(model, window, args.chunk).numpy()
    if args.out.suffix != ".npy":
        np.savez(args.out, logits=out.reshape(*ids.shape, -1))
    model.close()


if __name__ == "__main__":
    main()
