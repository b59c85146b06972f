from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from inglenook.engine.block_pool import BlockPool
from inglenook.engine.kv_cache import BLOCK_SIZE, num_blocks_for
from inglenook.engine.scheduler import Scheduler, Sequence


def make(num_blocks=8, budget=32):
    return Scheduler(BlockPool(num_blocks), max_step_tokens=budget)


def sequence(number, length):
    return Sequence(number, list(range(length)), length)


def step(scheduler):
    """Plan, pretend to compute, and append a token to each sequence that is complete."""
    plan = scheduler.plan()
    last = [chunk.sequence for chunk in plan.chunks if chunk.is_last]
    scheduler.commit(plan)
    for s in last:
        s.token_ids.append(0)
    return [(c.sequence.id, c.start, c.count) for c in plan.chunks]


def test_a_long_prompt_is_computed_in_chunks_of_the_budget():
    scheduler = make()
    scheduler.add(sequence(1, 70))

    assert [step(scheduler) for _ in range(4)] == [[(1, 0, 32)], [(1, 32, 32)], [(1, 64, 6)], [(1, 70, 1)]]


def test_decoding_goes_first_and_a_prompt_fills_the_rest_of_the_step():
    scheduler = make()
    scheduler.add(sequence(1, 5))
    step(scheduler)
    scheduler.add(sequence(2, 60))

    assert step(scheduler) == [(1, 5, 1), (2, 0, 31)]


def test_no_block_is_held_for_tokens_not_computed_yet():
    scheduler = make(num_blocks=8)
    one = sequence(1, 16)
    scheduler.add(one)
    step(scheduler)
    assert len(one.block_table) == 1

    step(scheduler)

    assert len(one.block_table) == 2


def test_the_newest_sequence_gives_its_blocks_up_when_an_older_one_must_decode():
    scheduler = make(num_blocks=2)
    old, new = sequence(1, 16), sequence(2, 8)
    scheduler.add(old)
    scheduler.add(new)
    step(scheduler)

    assert step(scheduler) == [(1, 16, 1)]

    assert (new.num_computed, new.block_table, new.preemptions) == (0, [], 1)
    assert scheduler.num_waiting == 1


def test_a_preempted_sequence_is_computed_again_with_its_reply():
    scheduler = make(num_blocks=2)
    old, new = sequence(1, 16), sequence(2, 8)
    scheduler.add(old)
    scheduler.add(new)
    step(scheduler)
    step(scheduler)
    scheduler.remove(old)

    assert step(scheduler) == [(2, 0, 9)]


def test_two_half_computed_prompts_never_wait_for_each_other():
    scheduler = make(num_blocks=4, budget=32)
    scheduler.add(sequence(1, 60))
    step(scheduler)
    scheduler.add(sequence(2, 60))

    done = [step(scheduler) for _ in range(6)]

    assert all(done)
    assert (1, 60, 1) in [chunk for chunks in done for chunk in chunks]


class SchedulerMachine(RuleBasedStateMachine):
    """Arrivals, steps and cancellations in any order: no block leaks, nobody is forgotten, budgets hold."""

    @initialize(num_blocks=st.integers(6, 20), budget=st.integers(1, 40))
    def start(self, num_blocks, budget):
        self.scheduler = make(num_blocks, budget)
        self.budget = budget
        self.limit = num_blocks * BLOCK_SIZE
        self.open: dict[int, Sequence] = {}
        self.next_id = 0

    @rule(length=st.integers(1, 90))
    def arrive(self, length):
        self.next_id += 1
        self.open[self.next_id] = sequence(self.next_id, min(length, self.limit))
        self.scheduler.add(self.open[self.next_id])

    @rule()
    def compute(self):
        plan = self.scheduler.plan()

        assert bool(plan.chunks) == bool(self.open), "work is open but nothing is planned"
        assert plan.num_tokens <= self.budget
        assert len({c.sequence.id for c in plan.chunks}) == len(plan.chunks)
        for chunk in plan.chunks:
            assert chunk.start == chunk.sequence.num_computed
            assert len(chunk.sequence.block_table) == num_blocks_for(chunk.start + chunk.count)
        last = [c.sequence for c in plan.chunks if c.is_last]
        self.scheduler.commit(plan)
        for done in last:
            done.token_ids.append(0)
            if len(done.token_ids) > self.limit:
                self.scheduler.remove(self.open.pop(done.id))

    @precondition(lambda self: self.open)
    @rule(data=st.data())
    def cancel(self, data):
        number = data.draw(st.sampled_from(sorted(self.open)))
        self.scheduler.remove(self.open.pop(number))

    @invariant()
    def blocks_add_up(self):
        if not hasattr(self, "scheduler"):
            return
        pool = self.scheduler.pool
        pool.integrity()
        held = [block for s in self.open.values() for block in s.block_table]
        assert len(held) == len(set(held)) == pool.num_live
        assert self.scheduler.num_running + self.scheduler.num_waiting == len(self.open)


TestSchedulerMachine = SchedulerMachine.TestCase
