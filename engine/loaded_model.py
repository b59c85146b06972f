"""`LoadedModel`: a model in its slot — weights on a back end, tokenizer, scheduler and block pool.

`load_model` is the whole way from a path to a model that can take steps: open and check the file, choose the back
end, check memory, load with progress, allocate the KV cache. It runs on a loader thread; the result is handed to the
engine thread, which alone uses it from then on.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable
from pathlib import Path

import torch

from inglenook.engine.adapter_shelf import AdapterShelf
from inglenook.engine.backend import Backend, BackendModel
from inglenook.engine.backend_choice import choose_backend
from inglenook.engine.cards.placement import CardOptions
from inglenook.engine.cpu import default_num_threads
from inglenook.engine.kv_blocks import KVBlocks
from inglenook.engine.memory import estimate_need, kv_bytes
from inglenook.engine.memory_plan import memory_places, plan_memory
from inglenook.engine.memory_promises import MemoryPromises
from inglenook.engine.model_runner import ModelRunner
from inglenook.engine.models.spec import ModelSpec
from inglenook.engine.request import Loaded, LoadOptions, LoadProgress
from inglenook.engine.scheduler import Scheduler
from inglenook.engine.sequence import StepPlan
from inglenook.engine.tokenizer.tokenizer import Tokenizer
from inglenook.engine.weights.blank_tensors import blank_notice
from inglenook.engine.weights.loader import ModelFile, open_model


class LoadCancelledError(Exception):
    """The load was cancelled; raised through the progress callback."""


@dataclasses.dataclass(slots=True)
class LoadedModel:
    """Everything of one slot. `facts` is what its `Loaded` event said, `speculates` whether tokens are guessed.

    `adapters` are those that requests have asked for; the tokenizing thread alone uses them.
    """

    facts: Loaded
    spec: ModelSpec
    tokenizer: Tokenizer
    runner: ModelRunner
    scheduler: Scheduler
    speculates: bool
    adapters: AdapterShelf

    @property
    def unmapped_bytes(self) -> int:
        """Bytes of the KV cache in this computer's memory that were never written, and so still count as free."""
        pools = zip(self.scheduler.kv.pools, self.runner.lazy_block_bytes, strict=True)
        return sum((pool.num_blocks - pool.num_used) * size for pool, size in pools)

    def bytes_read(self, plan: StepPlan) -> int:
        """Bytes of weights and KV cache that computing a step reads at least."""
        read = self.facts.weight_bytes
        for chunk in plan.chunks:
            for table, size in zip(chunk.sequence.tables.groups, self.runner.block_bytes, strict=True):
                read += size * (len(table) - table.count(-1))
        return read

    def give_up_spare(self) -> int:
        """Cut the KV cache down to one full context, for another model's sake; returns the bytes given up."""
        kv = self.scheduler.kv
        gone = kv.withdraw(self.spec.context_length)
        self.runner.blank(gone)
        return sum(self.runner.block_bytes[group] for group, _ in gone)

    def reset(self) -> None:
        """Start with an empty scheduler and pool, after a step failed half-way."""
        self.scheduler = self.scheduler.fresh()
        pools = enumerate(self.scheduler.kv.pools)
        self.runner.blank([(group, block) for group, pool in pools for block in range(pool.num_blocks)])

    def close(self) -> None:
        """Give all memory back."""
        self.runner.close()
        self.tokenizer.close()


def load_model(
    path: Path,
    slot: str,
    options: LoadOptions,
    progress: Callable[[LoadProgress], None],
    promises: MemoryPromises,
) -> LoadedModel:
    """Load the model at `path`, within the free memory that `promises` leaves.

    `progress` is called often and may raise `LoadCancelledError`; nothing is kept then.

    Raises:
        ModelFileError, NotEnoughMemoryError, InvalidRequestError: as their docstrings say.
    """
    started = time.perf_counter()
    torch.set_num_threads(options.num_threads or default_num_threads())
    progress(LoadProgress("Reading the model file", 0, 1))
    with open_model(path) as file:
        notice = blank_notice(file)
        backend = choose_backend(
            options.backend,
            file.spec,
            file,
            kv_dtype=options.kv_dtype,
            num_threads=options.num_threads or default_num_threads(),
            cards=CardOptions(
                num_cards=options.num_cards,
                card_layers=options.card_layers,
                context_length=options.context_length,
            ),
        )
        with promises.deciding(slot) as reserved:
            plan = plan_memory(
                file.name,
                file.spec,
                file.size_bytes,
                backend,
                wanted=options.context_length,
                reserved_bytes=reserved,
            )
            context, num_blocks = plan.context_length, plan.num_blocks
            share = _Share(file, backend, context)
            promises.make(slot, lambda: share.left_bytes)

        def report(done: int, total: int) -> None:
            share.note(done, total)
            progress(LoadProgress("Loading", done, total))

        spec = dataclasses.replace(file.spec, context_length=context)
        groups = backend.kv_groups(spec)
        tokenizer = Tokenizer.from_model_file(file, chat_template=options.chat_template)
        model: BackendModel | None = None
        try:
            model = backend.load(spec, file, report)
            prepare = getattr(model, "prepare", None)
            if prepare is not None and backend.device == "cuda":
                prepare(
                    lambda done, total: progress(LoadProgress("Compiling kernels for this card", done, total))
                )
            model.allocate_kv((num_blocks,) * len(groups))
        except BaseException:
            tokenizer.close()
            if model is not None:
                model.close()
            raise
    facts = Loaded(
        slot=slot,
        name=file.name,
        architecture=spec.architecture,
        backend=backend.name,
        backend_reason=backend.reason,
        context_length=context,
        weight_bytes=model.weight_bytes,
        kv_bytes=num_blocks * sum(group.block_bytes for group in groups),
        need_bytes=estimate_need(model.weight_bytes, kv_bytes(groups, context), spec.vocab_size),
        load_s=time.perf_counter() - started,
        notices=plan.notices + tuple(filter(None, [getattr(backend, "notice", ""), notice])),
        reasoning=tokenizer.reasoning,
    )
    step_tokens = options.max_step_tokens or backend.step_tokens(spec)
    # One namespace a loaded model is enough: its pools are its own and go with it.
    kv = KVBlocks(tuple(group.window for group in groups), (num_blocks,) * len(groups), facts.name)
    scheduler = Scheduler(kv, max_step_tokens=step_tokens)
    loaded = LoadedModel(
        facts,
        spec,
        tokenizer,
        ModelRunner(model),
        scheduler,
        options.speculation and backend.rows_are_exact,
        AdapterShelf(spec, backend.name),
    )
    promises.make(slot, lambda: loaded.unmapped_bytes)
    return loaded


class _Share:
    """What a model that is being loaded will still take of this computer's memory."""

    def __init__(self, file: ModelFile, backend: Backend, context: int) -> None:
        places = memory_places(file.spec, file.size_bytes, backend)
        here = [place for place in places if place.free_bytes is None]
        vocabulary = file.spec.vocab_size
        self._weights = sum(place.weight_bytes for place in here)
        self.left_bytes = sum(
            estimate_need(place.weight_bytes, kv_bytes(place.groups, context), vocabulary) for place in here
        )
        self._whole = self.left_bytes

    def note(self, done: int, total: int) -> None:
        """Count weights as taken: `done` of `total` bytes of the file are loaded."""
        self.left_bytes = self._whole - self._weights * done // max(1, total)
