"""How fast a model runs on a back end: prefill, decode, eight decodes at once, and the memory bandwidth that is used.

The steps are those of real use without a scheduler, tokenizer or sampler around them: prefill in large steps, and in
the back end's own that leave room for others, then one token a step. Each figure is the best of some rounds. Bandwidth counts the bytes of the source
file's tensors that a token reads, and its keys and values, against the speed at which the same threads read a large
buffer in the same run. Batches are made beforehand, and by NumPy: PyTorch's threads spin for milliseconds after an
operation that they shared, on the cores that the step needs.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from inglenook.engine.backend import Backend, BackendModel, WeightSource
from inglenook.engine.backend_choice import choose_backend
from inglenook.engine.batch import Batch, GroupTables
from inglenook.engine.cpu import default_num_threads
from inglenook.engine.errors import InvalidRequestError
from inglenook.engine.kv_cache import BLOCK_SIZE, KVDtype, num_blocks_for
from inglenook.engine.models.spec import ModelSpec
from inglenook.engine.native_backend import NativeModel
from inglenook.engine.weights.loader import open_model

PROMPT_TOKENS = 512
PREFILL_STEP = 256
CONTEXT_BEFORE_DECODE = 16
DECODE_TOKENS = 128
SEQUENCES = 8


@dataclass(frozen=True, slots=True)
class Speed:
    """What was measured. Rates are tokens a second; `bandwidth_fraction` is None where reading was not measured."""

    backend: str
    reason: str  # why that back end runs the model
    kv_dtype: str
    threads: int
    load_s: float
    prefill_tok_s: float
    small_step_prefill_tok_s: float
    small_step_tokens: int
    decode_tok_s: float
    batch8_decode_tok_s: float
    bandwidth_gb_s: float
    bandwidth_fraction: float | None
    weights_mb: float
    kv_mb: float
    rss_mb: float


def measure_file(
    path: Path,
    *,
    backend: str = "auto",
    kv_dtype: KVDtype | None = None,
    threads: int | None = None,
    rounds: int = 3,
) -> Speed:
    """Load the model at `path` as the engine would and measure it.

    Raises:
        EngineError: the model cannot be opened or run so.
    """
    torch.set_num_threads(threads or default_num_threads())
    with open_model(path) as file:
        chosen = choose_backend(backend, file.spec, file, kv_dtype=kv_dtype, num_threads=threads)
        loaded = _load(chosen, file.spec, file)
    return _measure_and_close(loaded, rounds)  # the file is unmapped, as it is in the engine


def measure(backend: Backend, spec: ModelSpec, source: WeightSource, *, rounds: int = 3) -> Speed:
    """Load a model on a back end, measure it, and close it."""
    return _measure_and_close(_load(backend, spec, source), rounds)


@dataclass(frozen=True, slots=True)
class _Loaded:
    """A model on its back end, and what is known of its source."""

    backend: Backend
    model: BackendModel
    load_s: float
    weight_bytes_a_token: int


def _load(backend: Backend, spec: ModelSpec, source: WeightSource) -> _Loaded:
    if spec.context_length < PROMPT_TOKENS:
        raise InvalidRequestError(
            f"measuring needs a context of {PROMPT_TOKENS} tokens, the model has {spec.context_length}."
        )
    start = time.perf_counter()
    model = backend.load(spec, source, lambda done, total: None)
    return _Loaded(backend, model, time.perf_counter() - start, _bytes_a_token(spec, source))


def _measure_and_close(loaded: _Loaded, rounds: int) -> Speed:
    try:
        blocks = max(num_blocks_for(PROMPT_TOKENS), SEQUENCES * num_blocks_for(DECODE_TOKENS))
        loaded.model.allocate_kv((blocks,) * len(loaded.backend.kv_groups(loaded.model.spec)))
        return _measure_model(loaded, rounds)
    finally:
        loaded.model.close()


def _measure_model(loaded: _Loaded, rounds: int) -> Speed:
    backend, model = loaded.backend, loaded.model
    step = backend.step_tokens(model.spec)
    prefill = _best(rounds, model, _prefill(model, PREFILL_STEP))
    small = _best(rounds, model, _prefill(model, step))
    model.forward(_batch(model, [(0, CONTEXT_BEFORE_DECODE)]))
    decode = _best(rounds, model, _decode(model, 1))
    together = _best(rounds, model, _decode(model, SEQUENCES))
    context = CONTEXT_BEFORE_DECODE + DECODE_TOKENS // 2
    groups = [kv.group for kv in model.kv]
    read = sum(g.block_bytes * min(context, g.window or context) / BLOCK_SIZE for g in groups)
    bandwidth = (loaded.weight_bytes_a_token + read) * DECODE_TOKENS / decode / 1e9
    limit = model.read_bandwidth_gb_s() if isinstance(model, NativeModel) else None
    return Speed(
        backend=f"{backend.name}:{backend.isa}" if hasattr(backend, "isa") else backend.name,
        reason=backend.reason,
        kv_dtype=groups[0].dtype,
        threads=model.num_threads if isinstance(model, NativeModel) else torch.get_num_threads(),
        load_s=round(loaded.load_s, 3),
        prefill_tok_s=round(PROMPT_TOKENS / prefill, 1),
        small_step_prefill_tok_s=round(PROMPT_TOKENS / small, 1),
        small_step_tokens=step,
        decode_tok_s=round(DECODE_TOKENS / decode, 1),
        batch8_decode_tok_s=round(SEQUENCES * DECODE_TOKENS / together, 1),
        bandwidth_gb_s=round(bandwidth, 2),
        bandwidth_fraction=round(bandwidth / limit, 3) if limit else None,
        weights_mb=round(model.weight_bytes / 1e6, 1),
        kv_mb=round(sum(kv.num_blocks * kv.group.block_bytes for kv in model.kv) / 1e6, 1),
        rss_mb=round(_resident_bytes() / 1e6, 1),
    )


def _best(rounds: int, model: BackendModel, batches: list[Batch]) -> float:
    """The seconds that all the batches take one after another, in the best of some rounds."""
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        for batch in batches:
            model.forward(batch)
        times.append(time.perf_counter() - start)
    return min(times)


def _prefill(model: BackendModel, step: int) -> list[Batch]:
    ends = [min(start + step, PROMPT_TOKENS) for start in range(0, PROMPT_TOKENS, step)]
    return [
        _batch(model, [(start, end - start)], wants_logits=end == PROMPT_TOKENS)
        for start, end in zip(range(0, PROMPT_TOKENS, step), ends, strict=True)
    ]


def _decode(model: BackendModel, sequences: int) -> list[Batch]:
    first = CONTEXT_BEFORE_DECODE if sequences == 1 else 0
    return [_batch(model, [(p, 1)] * sequences) for p in range(first, first + DECODE_TOKENS)]


def _batch(model: BackendModel, chunks: list[tuple[int, int]], *, wants_logits: bool = True) -> Batch:
    """One step of (first position, tokens) chunks, each a sequence with blocks of its own."""
    width = num_blocks_for(PROMPT_TOKENS if len(chunks) == 1 else DECODE_TOKENS)
    assert width * len(chunks) <= model.kv[0].num_blocks, f"{width * len(chunks)} blocks are needed"
    starts, counts = np.array(chunks).T
    ends = counts.cumsum()
    positions = np.concatenate([np.arange(start, start + count) for start, count in chunks])
    tables = np.arange(len(chunks) * width, dtype=np.int32).reshape(len(chunks), width)
    slots = positions + np.repeat(np.arange(len(chunks)) * width * BLOCK_SIZE, counts)
    return Batch(
        token_ids=torch.from_numpy((7 * positions + 3) % model.spec.vocab_size),
        positions=torch.from_numpy(positions),
        query_starts=torch.from_numpy(np.concatenate([[0], ends]).astype(np.int32)),
        context_lengths=torch.from_numpy((starts + counts).astype(np.int32)),
        logits_rows=torch.from_numpy(ends - 1 if wants_logits else ends[:0]),
        groups=(GroupTables(torch.from_numpy(tables), torch.from_numpy(slots)),) * len(model.kv),
    )


def _bytes_a_token(spec: ModelSpec, source: WeightSource) -> int:
    """Bytes of the source's tensors that one decoded token reads: all but an embedding that is no head."""
    skipped = () if spec.tied_head else ("embedding",)
    return sum(source.tensor(name).size_bytes for name in source.names if name not in skipped)


def _resident_bytes() -> int:
    """This process's resident memory, 0 where the system does not say."""
    try:
        fields = Path("/proc/self/status").read_text(encoding="ascii", errors="replace").splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) * 1024 for line in fields if line.startswith("VmRSS:")), 0)
