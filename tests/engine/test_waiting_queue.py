"""Who waits: the shortest and the oldest of each priority, whoever comes and goes."""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

from inglenook.engine.sequence import Sequence
from inglenook.engine.waiting_queue import WaitingQueue


def waiting(arrival: int, length: int, priority: int = 0) -> Sequence:
    return Sequence(arrival, [0] * length, length, priority=priority, arrival=arrival)


@given(
    st.lists(st.tuples(st.booleans(), st.integers(1, 9), st.integers(0, 2)), max_size=60), st.integers(1, 5)
)
def test_it_finds_what_a_search_through_all_finds(moves: list[tuple[bool, int, int]], count: int) -> None:
    queue, naive, left = WaitingQueue(), list[Sequence](), list[Sequence]()
    for arrival, (comes, length, priority) in enumerate(moves):
        if comes or not naive:
            # One that left comes back at times, longer than it was, as after a preemption.
            one = left.pop() if left and length > 5 else waiting(arrival, length, priority)
            one.token_ids.append(0)
            queue.add(one)
            naive.append(one)
        else:
            one = naive.pop(length % len(naive))
            queue.remove(one)
            left.append(one)

        assert len(queue) == len(naive)
        assert queue.priorities == sorted({s.priority for s in naive})
        assert all(s in queue for s in naive)
        assert not any(s in queue for s in left)
        for number in range(3):
            mine = [s for s in naive if s.priority == number]
            shortest = sorted(mine, key=lambda s: (s.num_pending, s.arrival))[:count]
            oldest = sorted(mine, key=lambda s: s.arrival)[:count]
            assert set(queue.first(number, count)) == {*shortest, *oldest}


def test_what_left_is_not_kept() -> None:
    queue, rng = WaitingQueue(), random.Random(0)
    queue.add(waiting(0, 1))
    for arrival in range(1, 3000):
        one = waiting(arrival, rng.randrange(1, 100))
        queue.add(one)
        queue.remove(one)

    assert sum(len(heap) for heap in queue._heaps[0]) < 300
