"""`Scheduler`: waiting and running sequences plus a token budget make the next step's plan. Pure Python.

The policy, all of it in `plan`:

- Sequences with one token to compute (decode) go first, with their drafts; then prompts share what is left of the
  budget evenly, the four shortest and the four oldest of them before others: so a short prompt never stands behind a
  long one, no long one waits for ever, and not all of them are half computed at once. Both kinds mix in a step.
- A smaller priority number goes first. While a prompt of one priority is being computed, decoding of a larger number
  pauses, so that a person's first token does not wait for background work.
- A prompt is begun when the blocks for all of it are free, and one more for each sequence that runs; at most sixteen
  others go before the oldest that finds none.
- Blocks are taken only for tokens that are computed now. When they lack, the running sequence with the largest
  priority number, the newest of these, gives its blocks back and waits to be computed again (preemption by recompute;
  the prefix index usually still finds its blocks).
"""

from __future__ import annotations

import heapq

from inglenook.engine.kv_blocks import BlockTables, KVBlocks
from inglenook.engine.sequence import Chunk, Sequence, StepPlan
from inglenook.engine.waiting_queue import WaitingQueue

_ABREAST = 4  # so many of the shortest prompts and of the oldest share a step
_MOST_OVERTAKES = 16


class Scheduler:
    """Decides what each step computes, and keeps the block tables of its sequences."""

    def __init__(self, kv: KVBlocks, *, max_step_tokens: int, max_running: int = 256) -> None:
        self.kv = kv
        self.max_step_tokens = max_step_tokens
        self.num_preemptions = 0
        self.num_prompt_tokens_queried = 0
        self.num_prompt_tokens_cached = 0
        self._max_running = min(max_running, max_step_tokens)  # so that everyone running gets a token a step
        self._waiting = WaitingQueue()
        self._running: list[Sequence] = []
        self._arrivals = 0
        self._overtaken: Sequence | None = (
            None  # the oldest that waits for blocks, and how many went before it since
        )
        self._num_overtakes = 0

    def fresh(self) -> Scheduler:
        """Return an empty scheduler over empty pools of the same sizes and limits."""
        kv = KVBlocks(self.kv.windows, tuple(pool.num_blocks for pool in self.kv.pools), self.kv.namespace)
        return Scheduler(kv, max_step_tokens=self.max_step_tokens, max_running=self._max_running)

    @property
    def num_waiting(self) -> int:
        """Sequences that hold no blocks yet, or no longer."""
        return len(self._waiting)

    @property
    def num_running(self) -> int:
        """Sequences that take part in steps."""
        return len(self._running)

    @property
    def num_live_tokens(self) -> int:
        """Tokens whose keys and values running sequences hold; shared ones count for each."""
        return sum(sequence.num_computed for sequence in self._running)

    @property
    def decoding(self) -> list[Sequence]:
        """Running sequences with one token to compute."""
        return [sequence for sequence in self._running if sequence.num_pending == 1]

    def add(self, sequence: Sequence) -> None:
        """Queue a new sequence behind those of its priority."""
        self._arrivals += 1
        sequence.arrival = self._arrivals
        self._waiting.add(sequence)

    def limit_step(self, max_step_tokens: int) -> None:
        """Compute at most so many tokens a step from now on."""
        self.max_step_tokens = max_step_tokens
        self._max_running = min(self._max_running, max_step_tokens)

    def fork(self, sequence: Sequence, other: Sequence) -> None:
        """Start `other` with the computed tokens of a running sequence; it is queued like any other if blocks lack."""
        tables = self.kv.fork(sequence.tables, sequence.num_computed)
        if tables is None or len(self._running) >= self._max_running:
            if tables is not None:
                self._release_tables(other, tables, 0)
            self.add(other)
            return
        other.tables, other.num_computed, other.cached_tokens = (
            tables,
            sequence.num_computed,
            sequence.cached_tokens,
        )
        self._arrivals += 1
        other.arrival = self._arrivals
        self._running.append(other)

    def remove(self, sequence: Sequence) -> None:
        """Take a finished or cancelled sequence out; its blocks stay findable until they are needed."""
        if sequence in self._running:
            self._running.remove(sequence)
        elif sequence in self._waiting:
            self._waiting.remove(sequence)
        self._give_back(sequence)

    def plan(self) -> StepPlan:
        """Choose the next step's chunks and allocate their blocks; an empty plan means there is nothing to do."""
        while True:
            chunks: list[Chunk] = []
            budget = self.max_step_tokens
            prompting = [s.priority for s in self._running if s.num_pending > 1]
            pressing = min(prompting + self._waiting.priorities[:1], default=None)
            for sequence in sorted(self._running, key=_order):
                paused = pressing is not None and sequence.priority > pressing
                if sequence.num_pending == 1 and budget and not paused and sequence in self._running:
                    budget -= self._plan_decode(sequence, budget, chunks)
            self._plan_prompts(budget, chunks)
            if chunks or not self._running:
                return StepPlan(tuple(chunks))
            # Half-computed sequences hold all blocks and none can go on: the last of them starts again later.
            self._preempt(self._victim())

    def commit(self, plan: StepPlan) -> None:
        """Record that a plan's keys and values are in the cache; drafts count only once `confirm` accepts them."""
        for chunk in plan.chunks:
            sequence = chunk.sequence
            sequence.num_computed = chunk.start + chunk.count
            sequence.drafts = []
            self._remember(sequence)

    def confirm(self, sequence: Sequence, num_accepted: int) -> None:
        """Record that the first drafts of the last step were the tokens chosen, so that their keys are good."""
        sequence.num_computed += num_accepted
        self._remember(sequence)

    def _plan_decode(self, sequence: Sequence, budget: int, chunks: list[Chunk]) -> int:
        drafts = tuple(sequence.drafts[: budget - 1])
        self.kv.trim(sequence.tables, sequence.num_computed + 1 + len(drafts))
        if drafts and not self.kv.reserve(sequence.tables, sequence.num_computed + 1 + len(drafts)):
            drafts = ()
        while not self.kv.reserve(sequence.tables, sequence.num_computed + 1):
            victim = self._victim()  # never one that is planned: those come before this sequence
            self._preempt(victim)
            if victim is sequence:
                return 0
        chunks.append(Chunk(sequence, sequence.num_computed, 1, drafts))
        return 1 + len(drafts)

    def _plan_prompts(self, budget: int, chunks: list[Chunk]) -> None:
        """Share the budget among prompts of the smallest priority number, then go on to the next number."""
        running = [s for s in self._running if s.num_pending > 1]
        for priority in sorted({s.priority for s in running}.union(self._waiting.priorities)):
            tried: set[Sequence] = set()
            while budget > 0:
                mine = [s for s in running if s.priority == priority and s not in self._waiting]
                mine += self._waiting.first(priority, _ABREAST)
                group = _first([s for s in mine if s not in tried])[:budget]
                tried.update(group)
                before = budget
                for index, sequence in enumerate(group):
                    # The shortest first: what it leaves of its share goes to the longer ones.
                    share = -(-budget // (len(group) - index))
                    budget -= self._plan_prompt(sequence, share, chunks) if share else 0
                if budget == before:
                    break  # nobody is left, or blocks lack

    def _plan_prompt(self, sequence: Sequence, share: int, chunks: list[Chunk]) -> int:
        """Plan as many tokens as share and blocks allow; only larger priority numbers are preempted for it."""
        if sequence in self._waiting and not self._admit(sequence):
            return 0
        while True:
            count = min(sequence.num_pending, share, self.kv.room(sequence.tables) - sequence.num_computed)
            if count > 0:
                break
            victim = self._victim()
            if victim.priority <= sequence.priority or any(chunk.sequence is victim for chunk in chunks):
                return 0
            self._preempt(victim)
        self.kv.trim(
            sequence.tables, sequence.num_computed + count
        )  # a step that was interrupted may have wanted more
        reserved = self.kv.reserve(sequence.tables, sequence.num_computed + count)
        assert reserved, "room() promised these blocks"
        chunks.append(Chunk(sequence, sequence.num_computed, count))
        return count

    def _admit(self, sequence: Sequence) -> bool:
        """Move a waiting sequence to the running ones, with what the prefix index knows of it.

        Only when the blocks for all of its prompt are there, so that half-computed prompts never wait for each other.
        """
        if len(self._running) >= self._max_running or not self._may_overtake(sequence):
            return False
        spare = self._spare_blocks()
        if sequence.refused_at is not None and spare <= sequence.refused_at and not self._victims(sequence):
            return False
        sequence.tables = self.kv.new_tables()
        sequence.num_computed = self.kv.match(sequence.tables, sequence.token_ids, sequence.salt)
        while self._running and self._spare_blocks() < self._blocks_wanted(sequence):
            if not self._preempt_below(sequence):
                self._refuse(sequence, spare)
                return False
        if sequence.cached_tokens is None:
            sequence.cached_tokens = min(sequence.num_computed, sequence.num_prompt_tokens - 1)
            self.num_prompt_tokens_queried += sequence.num_prompt_tokens
            self.num_prompt_tokens_cached += sequence.cached_tokens
        sequence.refused_at = None
        if sequence is self._overtaken:
            self._overtaken = None
        elif self._overtaken is not None and sequence.priority >= self._overtaken.priority:
            self._num_overtakes += 1
        self._waiting.remove(sequence)
        self._running.append(sequence)
        return True

    def _may_overtake(self, sequence: Sequence) -> bool:
        """Whether it may go before the oldest that found no room: only so many of its priority do."""
        first = self._overtaken
        if first is None or first is sequence or first not in self._waiting:
            return True
        return sequence.priority < first.priority or self._num_overtakes < _MOST_OVERTAKES

    def _refuse(self, sequence: Sequence, spare: int) -> None:
        """Let a sequence wait on for blocks, until there are more than now."""
        self._give_back(sequence)
        sequence.refused_at = spare
        first = self._overtaken
        if first is None or first not in self._waiting or _order(sequence) < _order(first):
            self._overtaken, self._num_overtakes = sequence, 0

    def _spare_blocks(self) -> int:
        """Free blocks beyond what running prompts still need, and one for each sequence that runs."""
        wanted = sum(self._blocks_wanted(s) for s in self._running if s.num_pending > 1)
        return self.kv.num_free - wanted - len(self._running)

    def _blocks_wanted(self, sequence: Sequence) -> int:
        """Blocks that the rest of a sequence's tokens need in the group that needs most."""
        return self.kv.wanted(sequence.tables, len(sequence.token_ids), self.max_step_tokens)

    def _victims(self, sequence: Sequence) -> bool:
        """Whether anybody of a larger priority number runs."""
        return bool(self._running) and self._victim().priority > sequence.priority

    def _preempt_below(self, sequence: Sequence) -> bool:
        """Free the blocks of a running sequence with a larger priority number, if there is one."""
        if not self._victims(sequence):
            return False
        self._preempt(self._victim())
        return True

    def _victim(self) -> Sequence:
        """The running sequence that gives way first: of the largest priority number, the newest."""
        return max(self._running, key=_order)

    def _preempt(self, sequence: Sequence) -> None:
        self._running.remove(sequence)
        self._give_back(sequence)
        sequence.preemptions += 1
        self.num_preemptions += 1
        self._waiting.add(sequence)

    def _remember(self, sequence: Sequence) -> None:
        self.kv.commit(
            sequence.tables,
            sequence.token_ids,
            sequence.num_computed,
            salt=sequence.salt,
            owner=sequence.owner,
        )

    def _give_back(self, sequence: Sequence) -> None:
        self._release_tables(sequence, sequence.tables, sequence.num_computed)
        sequence.num_computed = 0
        sequence.drafts = []

    def _release_tables(self, sequence: Sequence, tables: BlockTables, num_computed: int) -> None:
        self.kv.release(tables, sequence.token_ids, num_computed, salt=sequence.salt, owner=sequence.owner)


def _first(prompts: list[Sequence]) -> list[Sequence]:
    """The shortest prompts and the oldest ones, shortest first."""
    by_length = sorted(prompts, key=lambda s: (s.num_pending, s.arrival))
    oldest = set(heapq.nsmallest(_ABREAST, prompts, key=lambda s: s.arrival))
    return [s for place, s in enumerate(by_length) if place < _ABREAST or s in oldest]


def _order(sequence: Sequence) -> tuple[int, int]:
    return sequence.priority, sequence.arrival
