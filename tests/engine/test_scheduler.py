"""Which sequences get how much of a step."""

import random

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from inglenook.engine.kv_blocks import KVBlocks
from inglenook.engine.kv_cache import BLOCK_SIZE, num_blocks_for
from inglenook.engine.scheduler import Scheduler
from inglenook.engine.sequence import Sequence


def make(num_blocks=8, budget=32, windows=(0,)):
    return Scheduler(KVBlocks(windows, (num_blocks,) * len(windows), "model"), max_step_tokens=budget)


def sequence(number, length, **options):
    """Sequences of different numbers share no tokens."""
    return Sequence(number, [number * 1000 + i for i in range(length)], length, **options)


def finish(plan, scheduler, accepted=lambda chunk: 0):
    """Pretend that a plan was computed: confirm drafts and append a token to each sequence that is complete."""
    last = [chunk for chunk in plan.chunks if chunk.is_last]
    scheduler.commit(plan)
    for chunk in last:
        count = accepted(chunk)
        chunk.sequence.token_ids += [*chunk.drafts[:count], -chunk.sequence.id]
        scheduler.confirm(chunk.sequence, count)


def step(scheduler):
    plan = scheduler.plan()
    finish(plan, scheduler)
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


def test_prompts_share_a_step_evenly_and_a_short_one_leaves_its_rest():
    scheduler = make(num_blocks=40, budget=30)
    for number, length in ((1, 100), (2, 4), (3, 100)):
        scheduler.add(sequence(number, length))

    assert sorted(step(scheduler)) == [(1, 0, 13), (2, 0, 4), (3, 0, 13)]


def test_no_block_is_held_for_tokens_not_computed_yet():
    scheduler = make()
    one = sequence(1, 16)
    scheduler.add(one)
    step(scheduler)
    assert len(one.tables.groups[0]) == 1

    step(scheduler)

    assert len(one.tables.groups[0]) == 2


def test_the_newest_sequence_gives_its_blocks_up_when_an_older_one_must_decode():
    scheduler = make(num_blocks=6)
    old, new = sequence(1, 16), sequence(2, 8)
    scheduler.add(old)
    scheduler.add(new)
    step(scheduler)
    [pool] = scheduler.kv.pools
    pool.allocate(pool.num_free)

    assert step(scheduler) == [(1, 16, 1)]

    assert (new.num_computed, new.preemptions, scheduler.num_waiting) == (0, 1, 1)


def test_a_preempted_sequence_finds_its_blocks_again_if_nobody_needed_them():
    scheduler = make(num_blocks=8)
    one = sequence(1, 40)
    scheduler.add(one)
    step(scheduler)
    step(scheduler)

    scheduler._preempt(one)

    assert step(scheduler) == [(1, 40, 1)]


def test_a_prompt_seen_before_starts_at_its_last_token():
    scheduler = make()
    scheduler.add(first := sequence(1, 40))
    step(scheduler)
    step(scheduler)
    scheduler.remove(first)
    again = Sequence(2, list(first.token_ids[:40]), 40)
    scheduler.add(again)

    assert step(scheduler) == [(2, 39, 1)]
    assert again.cached_tokens == 39


def test_a_person_is_served_before_background_work_and_pauses_it():
    scheduler = make(num_blocks=40, budget=20)
    for number in (1, 2):
        scheduler.add(sequence(number, 5, priority=2))
    step(scheduler)
    scheduler.add(sequence(3, 30, priority=0))

    assert step(scheduler) == [(3, 0, 20)]
    assert step(scheduler) == [(3, 20, 10)]
    assert sorted(step(scheduler)) == [(1, 5, 1), (2, 5, 1), (3, 30, 1)]


def test_background_work_gives_its_blocks_to_a_person():
    scheduler = make(num_blocks=4, budget=64)
    scheduler.add(background := sequence(1, 60, priority=1))
    step(scheduler)
    scheduler.add(sequence(2, 30))

    assert step(scheduler) == [(2, 0, 30)]
    assert background.preemptions == 1


def test_two_half_computed_prompts_never_wait_for_each_other():
    scheduler = make(num_blocks=4, budget=32)
    scheduler.add(sequence(1, 60))
    scheduler.add(sequence(2, 60))

    done = [chunk for _ in range(7) for chunk in step(scheduler)]

    assert (1, 60, 1) in done or (2, 60, 1) in done


def test_accepted_drafts_count_as_computed_and_rejected_ones_are_computed_again():
    scheduler = make()
    one = sequence(1, 5)
    scheduler.add(one)
    step(scheduler)
    one.drafts = [50, 51, 52]
    plan = scheduler.plan()
    assert [(c.start, c.count, c.num_rows, c.num_logits) for c in plan.chunks] == [(5, 1, 4, 4)]

    finish(plan, scheduler, accepted=lambda chunk: 2)

    assert (one.num_computed, one.token_ids[5:]) == (8, [-1, 50, 51, -1])
    assert step(scheduler) == [(1, 8, 1)]


def test_drafts_are_left_out_when_they_lack_blocks_or_budget():
    scheduler = make(num_blocks=1, budget=3)
    one = sequence(1, 3)
    scheduler.add(one)
    step(scheduler)
    one.drafts = list(range(30))
    assert scheduler.plan().chunks[0].num_rows == 3

    one.drafts = []
    for _ in range(12):
        step(scheduler)
    one.drafts = [7, 8]

    assert scheduler.plan().chunks[0].drafts == ()


def test_a_fork_goes_on_from_the_same_tokens():
    scheduler = make()
    one = sequence(1, 20)
    scheduler.add(one)
    step(scheduler)
    other = Sequence(1, [*one.token_ids[:20], 77], 20, choice=1)

    scheduler.fork(one, other)

    assert step(scheduler) == [(1, 20, 1), (1, 20, 1)]
    assert one.tables.groups[0][0] == other.tables.groups[0][0]
    assert one.tables.groups[0][1] != other.tables.groups[0][1]


def test_blocks_for_an_interrupted_step_are_given_back_when_the_next_one_is_smaller():
    scheduler = make()
    scheduler.add(one := sequence(1, 30))
    scheduler.plan()
    assert len(one.tables.groups[0]) == 2

    scheduler.limit_step(8)
    scheduler.plan()

    assert len(one.tables.groups[0]) == 1


class SchedulerMachine(RuleBasedStateMachine):
    """Arrivals, steps, drafts, forks and cancellations in any order: no block leaks, nobody starves, budgets hold."""

    @initialize(
        num_blocks=st.integers(6, 20),
        budget=st.integers(1, 40),
        windows=st.sampled_from([(0,), (0, 20), (24,)]),
    )
    def start(self, num_blocks, budget, windows):
        self.scheduler = make(num_blocks, budget, windows)
        self.budget = budget
        self.limit = (num_blocks - 1) * BLOCK_SIZE
        self.open: list[Sequence] = []
        self.next_id = 0
        self.idle: dict[Sequence, int] = {}

    @rule(
        length=st.integers(1, 90),
        shared=st.booleans(),
        priority=st.integers(0, 2),
        owner=st.sampled_from("ab"),
    )
    def arrive(self, length, shared, priority, owner):
        self.next_id += 1
        length = min(length, self.limit)
        new = sequence(0 if shared else self.next_id, length, priority=priority, owner=owner)
        new.id = self.next_id
        self.open.append(new)
        self.scheduler.add(new)

    @rule(data=st.data())
    def compute(self, data):
        for s in self.open:
            if s.num_pending == 1 and s.num_computed:
                room = max(0, self.limit - len(s.token_ids))
                s.drafts = data.draw(st.lists(st.integers(0, 9), max_size=min(4, room)))
        plan = self.scheduler.plan()

        assert bool(plan.chunks) == bool(self.open), "work is open but nothing is planned"
        assert plan.num_tokens <= self.budget
        assert len({id(c.sequence) for c in plan.chunks}) == len(plan.chunks)
        for chunk in plan.chunks:
            assert chunk.start == chunk.sequence.num_computed
            for table in chunk.sequence.tables.groups:
                assert len(table) <= num_blocks_for(chunk.start + chunk.num_rows)
                written = range(chunk.start // BLOCK_SIZE, num_blocks_for(chunk.start + chunk.num_rows))
                assert all(table[n] >= 0 for n in written)
        written = [
            (group, table[n])
            for c in plan.chunks
            for group, table in enumerate(c.sequence.tables.groups)
            for n in range(c.start // BLOCK_SIZE, num_blocks_for(c.start + c.num_rows))
        ]
        assert len(written) == len(set(written)), "two sequences write to one block"
        self.scheduler.kv.take_copies()
        chunks = list(plan.chunks)
        finish(plan, self.scheduler, accepted=lambda chunk: data.draw(st.integers(0, len(chunk.drafts))))
        for chunk in chunks:
            if len(chunk.sequence.token_ids) > self.limit:
                self.scheduler.remove(chunk.sequence)
                self.open.remove(chunk.sequence)

    @precondition(lambda self: self.open)
    @rule(data=st.data())
    def cancel(self, data):
        one = self.open.pop(data.draw(st.integers(0, len(self.open) - 1)))
        self.scheduler.remove(one)

    @precondition(lambda self: any(s.num_pending == 1 and s.num_computed for s in self.open))
    @rule(data=st.data())
    def fork(self, data):
        one = data.draw(st.sampled_from([s for s in self.open if s.num_pending == 1 and s.num_computed]))
        other = Sequence(one.id, list(one.token_ids), one.num_prompt_tokens, choice=1, priority=one.priority)
        self.open.append(other)
        self.scheduler.fork(one, other)

    @rule()
    def interrupt(self):
        """A step that is planned and then ended early counts for nothing."""
        self.scheduler.plan()
        self.scheduler.kv.take_copies()

    @rule(owner=st.sampled_from("ab"))
    def forget(self, owner):
        blank = self.scheduler.kv.forget(owner)

        assert not self.held() & set(blank)
        indexes = self.scheduler.kv.indexes
        assert not any(entry.owner == owner for index in indexes for entry in index.entries())

    @rule()
    def evict(self):
        blank = self.scheduler.kv.evict()

        assert not self.held() & set(blank)
        assert not any(len(index) for index in self.scheduler.kv.indexes)
        assert all(pool.num_used == pool.num_live for pool in self.scheduler.kv.pools)

    @rule(num_blocks=st.integers(4, 20))
    def shrink(self, num_blocks):
        """The context becomes shorter: blocks go, and with them the sequences that no longer fit."""
        gone = self.scheduler.kv.withdraw(num_blocks * BLOCK_SIZE)

        assert not self.held() & set(gone)
        self.limit = min(self.limit, (num_blocks - 1) * BLOCK_SIZE)
        for one in [s for s in self.open if len(s.token_ids) > self.limit]:
            self.open.remove(one)
            self.scheduler.remove(one)

    @rule(limit=st.integers(1, 40))
    def shorten_steps(self, limit):
        self.budget = min(self.budget, limit)
        self.scheduler.limit_step(self.budget)

    def held(self):
        return {(g, b) for s in self.open for g, table in enumerate(s.tables.groups) for b in table}

    @invariant()
    def blocks_add_up(self):
        if not hasattr(self, "scheduler"):
            return
        kv = self.scheduler.kv
        kv.integrity()
        for group, pool in enumerate(kv.pools):
            held = {
                b for s in self.open for b in (s.tables.groups[group] if s.tables.groups else []) if b >= 0
            }
            assert len(held) == pool.num_live
        assert self.scheduler.num_running + self.scheduler.num_waiting == len(self.open)


TestSchedulerMachine = SchedulerMachine.TestCase


def test_a_fork_counts_as_newer_than_what_it_was_forked_from():
    scheduler = make()
    one = sequence(1, 16)
    scheduler.add(one)
    step(scheduler)
    other = Sequence(1, [*one.token_ids[:16], 77], 16, choice=1)

    scheduler.fork(one, other)

    assert scheduler._victim() is other


def test_blocks_of_wrong_drafts_are_given_back():
    scheduler = make()
    one = sequence(1, 14)
    scheduler.add(one)
    step(scheduler)
    one.drafts = list(range(20))
    finish(scheduler.plan(), scheduler)
    assert len(one.tables.groups[0]) == 3

    step(scheduler)

    assert len(one.tables.groups[0]) == 1


def test_a_short_prompt_is_computed_soon_behind_ten_thousand_long_ones_and_the_oldest_too():
    scheduler = make(num_blocks=400, budget=64)
    crowd = [sequence(n, 300) for n in range(10_000)]
    for one in crowd:
        scheduler.add(one)
    scheduler.commit(scheduler.plan())
    late = sequence(10_000, 12)
    scheduler.add(late)

    steps = 0
    while late.num_pending and steps < 5:
        scheduler.commit(scheduler.plan())
        steps += 1
    half_computed = scheduler.num_running
    for _ in range(60):
        scheduler.commit(scheduler.plan())

    assert steps <= 2
    assert half_computed <= 9
    assert crowd[0].num_pending <= 1
    assert scheduler.num_preemptions == 0


def test_many_short_prompts_fill_a_step():
    scheduler = make(num_blocks=400, budget=128)
    for n in range(100):
        scheduler.add(sequence(n, 5))

    assert scheduler.plan().num_tokens == 128


def serve(scheduler, lengths, replies, arrivals=None, most_steps=20_000):
    """Run requests to their ends; returns the steps, the tokens computed, and in which order they ended."""
    open_, order, computed, steps = {}, [], 0, 0
    arrivals = arrivals or [0] * len(lengths)
    while (open_ or steps <= max(arrivals)) and steps < most_steps:
        for number in [n for n, when in enumerate(arrivals) if when == steps]:
            open_[number] = sequence(number, lengths[number])
            scheduler.add(open_[number])
        plan = scheduler.plan()
        scheduler.kv.take_copies()
        computed += plan.num_tokens
        steps += 1
        finish(plan, scheduler)
        for number, one in list(open_.items()):
            if len(one.token_ids) >= lengths[number] + replies[number]:
                scheduler.remove(one)
                del open_[number]
                order.append(number)
    return steps, computed, order


@pytest.mark.parametrize("budget", [16, 64, 512])
@pytest.mark.parametrize("num_blocks", [32, 64, 256])
def test_far_more_than_fits_is_all_served_and_little_is_computed_twice(num_blocks, budget):
    """Half-computed prompts that held all blocks once made each other start again for ever."""
    rng = random.Random(1)
    lengths = [rng.choice([33, 100, 300, 400]) for _ in range(40)]
    replies = [rng.choice([7, 30, 90]) for _ in range(40)]

    _, computed, order = serve(make(num_blocks, budget), lengths, replies)

    assert sorted(order) == list(range(40))
    assert computed < 1.1 * (sum(lengths) + sum(replies))


def test_a_long_prompt_is_not_passed_over_for_ever():
    """Short ones keep coming, and there is never room for the long one beside them."""
    lengths, replies = [200, 480] + [40] * 300, [20, 5] + [30] * 300
    arrivals = [0, 1, *range(2, 302)]

    _, _, order = serve(make(32, 64), lengths, replies, arrivals)

    assert order.index(1) < 60
