"""Blocks handed out, shared and given back."""

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from inglenook.engine.block_pool import BlockPool, OutOfBlocksError


def test_the_block_freed_longest_ago_is_handed_out_first():
    pool = BlockPool(3)
    first, second, third = pool.allocate(3)
    pool.release([second])
    pool.release([first])
    pool.release([third])

    assert pool.allocate(3) == [second, first, third]


def test_the_tail_of_a_sequence_is_reused_before_its_beginning():
    pool = BlockPool(4)
    blocks = pool.allocate(4)
    pool.release(blocks)

    assert pool.allocate(1) == [blocks[-1]]


def test_asking_for_too_many_allocates_nothing():
    pool = BlockPool(4)
    pool.allocate(2)

    with pytest.raises(OutOfBlocksError, match="3 blocks asked for, 2 of 4 are free"):
        pool.allocate(3)

    assert pool.num_free == 2


def test_a_shared_block_is_freed_by_its_last_holder():
    pool = BlockPool(1)
    [block] = pool.allocate(1)
    pool.acquire(block)
    pool.release([block])
    assert pool.num_free == 0

    pool.release([block])

    assert pool.num_free == 1


def test_releasing_twice_is_caught():
    pool = BlockPool(2)
    [block] = pool.allocate(1)
    pool.release([block])

    with pytest.raises(AssertionError, match="released twice"):
        pool.release([block])


class PoolMachine(RuleBasedStateMachine):
    """Random allocations, shares and releases keep the pool's promises."""

    def __init__(self):
        super().__init__()
        self.pool = BlockPool(12)
        self.held: list[list[int]] = []

    @rule(count=st.integers(0, 14))
    def allocate(self, count):
        try:
            blocks = self.pool.allocate(count)
        except OutOfBlocksError:
            assert count > self.pool.num_free
        else:
            assert len(set(blocks)) == count
            self.held.append(blocks)

    @precondition(lambda self: self.held)
    @rule(data=st.data())
    def share(self, data):
        blocks = data.draw(st.sampled_from(self.held))
        for block in blocks:
            self.pool.acquire(block)
        self.held.append(list(blocks))

    @precondition(lambda self: self.held)
    @rule(data=st.data())
    def release(self, data):
        index = data.draw(st.integers(0, len(self.held) - 1))
        self.pool.release(self.held.pop(index))

    @invariant()
    def promises_hold(self):
        self.pool.integrity()
        live = {block for blocks in self.held for block in blocks}
        assert self.pool.num_live == len(live)
        assert self.pool.num_free + self.pool.num_live == self.pool.num_blocks


TestPoolMachine = PoolMachine.TestCase
