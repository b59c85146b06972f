"""The process of one card among several: it loads its share of a model and does the steps that it is told to do.

Run as a program by `tensor_parallel.py`, with frames (`rank_frames.py`) on standard input and lines of JSON on standard
output: {"state": "here"}, "ready", or "failed" with a kind and a message. When its input ends, so does it, whatever it
waits for. It imports nothing that opens a model's file as code, and opens only the file that it was told.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import sys
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

from inglenook.engine.cards.rank_frames import RankMessage, batch_of, read_message

_EXIT_FAULT = 1


def main() -> int:
    """Serve until the input ends; returns the exit status."""
    messages: queue.SimpleQueue[RankMessage] = queue.SimpleQueue()
    threading.Thread(target=_read, args=(messages,), name="commands", daemon=True).start()
    try:
        _serve(messages)
    except BaseException as error:  # noqa: BLE001 - the engine is told whatever it is, then this process ends
        _say({"state": "failed", "kind": type(error).__name__, "message": str(error)})
    return _EXIT_FAULT


def _serve(messages: queue.SimpleQueue[RankMessage]) -> None:
    facts = messages.get().facts
    # Only now: what is imported here takes seconds, and the input must be watched from the start.
    import torch

    from inglenook.engine.cards.cuda_backend import CudaBackend
    from inglenook.engine.cards.ranks import ProcessRanks
    from inglenook.engine.cards.shares import ShareSource, plan_shares
    from inglenook.engine.weights.loader import open_model

    rank, count, is_card = facts["rank"], facts["count"], facts["is_card"]
    if is_card:
        torch.cuda.set_device(rank)
    else:
        torch.set_num_threads(facts["num_threads"])
    with open_model(Path(facts["path"])) as file:
        spec = replace(file.spec, context_length=facts["context_length"])
        share = plan_shares(spec, file, count)[rank]
        _say({"state": "here"})
        ranks = ProcessRanks(
            Path(facts["rendezvous"]), rank, count, is_card=is_card, timeout_s=facts["timeout_s"]
        )
        options: dict[str, Any] = {
            "kv_dtype": facts["kv_dtype"],
            "ranks": ranks,
            "step_tokens": facts["step_tokens"],
        }
        if is_card:
            backend = CudaBackend(is_deterministic=facts["is_deterministic"], **options)
        else:
            backend = CudaBackend.on_cpu(**options)
        model = backend.load(share.spec(spec), ShareSource(file, spec, share), lambda done, total: None)
    _say({"state": "ready", "weight_bytes": model.weight_bytes})
    while True:
        message = messages.get()
        if message.kind == "prepare":
            model.prepare(lambda done, total: None)
        elif message.kind == "allocate":
            model.allocate_kv(tuple(message.arrays[0].tolist()))
        elif message.kind == "step":
            model.forward(batch_of(message))
        elif message.kind == "copy":
            group, pairs = message.arrays
            model.kv[int(group[0])].copy_blocks([(int(s), int(d)) for s, d in pairs])
        elif message.kind == "blank":
            group, blocks = message.arrays
            model.kv[int(group[0])].blank(blocks.tolist())


def _read(messages: queue.SimpleQueue[RankMessage]) -> None:
    stream = sys.stdin.buffer
    while (message := read_message(stream)) is not None:
        messages.put(message)
    os._exit(0)  # the engine is gone, or wants us gone: also in the middle of a step that waits for it


def _say(facts: dict[str, object]) -> None:
    with contextlib.suppress(OSError):
        sys.stdout.write(json.dumps(facts) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    os._exit(main())
