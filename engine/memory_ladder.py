"""`MemoryLadder`: what a model gives up, step by step, when computing runs out of memory.

In this order: cached prefixes, with their memory; half of the tokens of a step, down to 16; half of the context, down
to 2,048 tokens, which people are told. What was given up stays given up until the model is loaded again. When nothing
is left, the engine process has to end: a new one starts with all memory that the system can find.
"""

from __future__ import annotations

import dataclasses
import logging

import torch

from inglenook.engine.loaded_model import LoadedModel
from inglenook.engine.memory_plan import SHORTEST_CONTEXT

logger = logging.getLogger(__name__)

SMALLEST_STEP = 16


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an error of a step says that memory ran out. PyTorch's CPU allocator has no class of its own for it."""
    return isinstance(error, MemoryError | torch.OutOfMemoryError) or (
        isinstance(error, RuntimeError) and "allocate memory" in str(error)
    )


class MemoryLadder:
    """The rungs of one loaded model. Used on the engine thread, between steps."""

    def __init__(self, model: LoadedModel) -> None:
        self._model = model

    def climb(self) -> str | None:
        """Give up the next thing.

        Returns the sentence that people should read, "" when they need not know, None when nothing is left.
        """
        model, scheduler = self._model, self._model.scheduler
        if any(pool.num_used > pool.num_live for pool in scheduler.kv.pools):
            logger.warning("memory is short: the cached prefixes of %s go", model.facts.slot)
            model.runner.blank(scheduler.kv.evict())
            return ""
        if scheduler.max_step_tokens > SMALLEST_STEP:
            scheduler.limit_step(max(SMALLEST_STEP, scheduler.max_step_tokens // 2))
            logger.warning(
                "memory is short: steps of %s take %d tokens", model.facts.slot, scheduler.max_step_tokens
            )
            return ""
        if model.spec.context_length <= SHORTEST_CONTEXT:
            return None
        before = model.spec.context_length
        context = max(SHORTEST_CONTEXT, before // 2)
        model.spec = dataclasses.replace(model.spec, context_length=context)
        model.facts = dataclasses.replace(model.facts, context_length=context)
        model.runner.blank(scheduler.kv.withdraw(context))
        logger.warning("memory is short: the context of %s is %d tokens", model.facts.slot, context)
        return (
            f"Memory ran short: the context is {context:,} tokens now instead of {before:,}. "
            "Close other programs and load the model again to get all of it."
        )
