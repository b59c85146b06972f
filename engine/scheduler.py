"""`Scheduler`: waiting and running sequences plus a token budget make the next step's plan. Pure Python.

The whole policy is in `plan`: sequences with one token to compute (decode) go first, oldest first; prompt chunks
fill what is left of the budget, in the order of arrival; both share a step. Blocks are taken only for tokens that are
computed, never for tokens to come. When a decoding sequence finds no block, the newest running sequence gives all of
its blocks back and waits at the front of the queue, to be computed again (preemption by recompute).
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from inglenook.engine.block_pool import BlockPool
from inglenook.engine.kv_cache import BLOCK_SIZE, num_blocks_for


@dataclass(slots=True, eq=False)
class Sequence:
    """Token ids of one completion and how far their keys and values are computed.

    `block_table` covers at least `num_computed` tokens. `cached_tokens` counts prompt tokens that were not computed
    again; it is set once, at the first scheduling.
    """

    id: int
    token_ids: list[int]
    num_prompt_tokens: int
    num_computed: int = 0
    cached_tokens: int = 0
    block_table: list[int] = field(default_factory=list)
    preemptions: int = 0

    @property
    def num_pending(self) -> int:
        """Tokens whose keys and values are not computed yet."""
        return len(self.token_ids) - self.num_computed


@dataclass(frozen=True, slots=True)
class Chunk:
    """Tokens `start` .. `start + count` of a sequence; its last row's logits are wanted when it `is_last`."""

    sequence: Sequence
    start: int
    count: int

    @property
    def is_last(self) -> bool:
        """Whether this chunk computes the sequence's newest token."""
        return self.start + self.count == len(self.sequence.token_ids)


@dataclass(frozen=True, slots=True)
class StepPlan:
    """The chunks of one step, at most one for a sequence."""

    chunks: tuple[Chunk, ...]

    @property
    def num_tokens(self) -> int:
        """Tokens computed in this step."""
        return sum(chunk.count for chunk in self.chunks)


class Scheduler:
    """Decides what each step computes, and owns the block tables of its sequences."""

    def __init__(self, pool: BlockPool, *, max_step_tokens: int, max_running: int = 256) -> None:
        self.pool = pool
        self.num_preemptions = 0
        self._max_step_tokens = max_step_tokens
        self._max_running = max_running
        self._waiting: deque[Sequence] = deque()
        self._running: list[Sequence] = []

    def fresh(self) -> Scheduler:
        """Return an empty scheduler over an empty pool of the same size and limits."""
        pool = BlockPool(self.pool.num_blocks)
        return Scheduler(pool, max_step_tokens=self._max_step_tokens, max_running=self._max_running)

    @property
    def num_waiting(self) -> int:
        """Sequences that hold no blocks yet."""
        return len(self._waiting)

    @property
    def num_running(self) -> int:
        """Sequences that take part in steps."""
        return len(self._running)

    def add(self, sequence: Sequence) -> None:
        """Queue a new sequence behind the others."""
        self._waiting.append(sequence)

    def remove(self, sequence: Sequence) -> None:
        """Take a finished or cancelled sequence out and free its blocks; unknown ones are ignored."""
        if sequence in self._running:
            self._running.remove(sequence)
        elif sequence in self._waiting:
            self._waiting.remove(sequence)
        self._free(sequence)

    def plan(self) -> StepPlan:
        """Choose the next step's chunks and allocate their blocks; an empty plan means there is nothing to do."""
        while True:
            plan = self._try_plan()
            if plan.chunks or len(self._running) < 2:
                return plan
            # Several half-computed prompts hold all blocks and none can go on: the newest starts again later.
            self._preempt(self._running[-1])

    def commit(self, plan: StepPlan) -> None:
        """Record that a plan's keys and values are now in the cache."""
        for chunk in plan.chunks:
            chunk.sequence.num_computed = chunk.start + chunk.count

    def _try_plan(self) -> StepPlan:
        chunks: list[Chunk] = []
        budget = self._max_step_tokens
        for sequence in list(self._running):
            if sequence.num_pending == 1 and budget and sequence in self._running:
                while not self._reserve(sequence, 1):
                    self._preempt(self._running[-1])
                    if sequence not in self._running:
                        break
                else:
                    chunks.append(Chunk(sequence, sequence.num_computed, 1))
                    budget -= 1
        for sequence in list(self._running):
            if sequence.num_pending > 1 and budget:
                budget -= self._add_prompt_chunk(sequence, budget, chunks)
        while self._waiting and budget and len(self._running) < self._max_running:
            taken = self._add_prompt_chunk(self._waiting[0], budget, chunks)
            if not taken:
                break
            self._running.append(self._waiting.popleft())
            budget -= taken
        return StepPlan(tuple(chunks))

    def _add_prompt_chunk(self, sequence: Sequence, budget: int, chunks: list[Chunk]) -> int:
        """Plan as many tokens as budget and free blocks allow, without preempting anyone."""
        room = (len(sequence.block_table) + self.pool.num_free) * BLOCK_SIZE - sequence.num_computed
        count = min(sequence.num_pending, budget, room)
        if count <= 0:
            return 0
        self._reserve(sequence, count)
        chunks.append(Chunk(sequence, sequence.num_computed, count))
        return count

    def _reserve(self, sequence: Sequence, count: int) -> bool:
        """Extend the block table to hold `count` more tokens; False when there are too few free blocks."""
        missing = num_blocks_for(sequence.num_computed + count) - len(sequence.block_table)
        if missing > self.pool.num_free:
            return False
        if missing > 0:
            sequence.block_table += self.pool.allocate(missing)
        return True

    def _preempt(self, sequence: Sequence) -> None:
        self._running.remove(sequence)
        self._free(sequence)
        sequence.preemptions += 1
        self.num_preemptions += 1
        self._waiting.appendleft(sequence)

    def _free(self, sequence: Sequence) -> None:
        self.pool.release(sequence.block_table)
        sequence.block_table = []
        sequence.num_computed = 0
