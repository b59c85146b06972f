"""`WaitingQueue`: sequences that hold no blocks yet, or no longer. Pure Python.

Of each priority it finds the shortest and the oldest without looking at the others, so that ten thousand that wait
cost a step nothing. Two heaps a priority remember who came; entries of those who left are skipped when they surface,
and swept out when they outnumber the others.
"""

from __future__ import annotations

import heapq
import itertools
from collections import Counter

from inglenook.engine.sequence import Sequence

_Entry = tuple[int, int, int, Sequence]  # what is sorted by, arrival, number of the entry, sequence


class WaitingQueue:
    """Who waits, by priority, length and arrival. What a sequence has pending must not change while it waits."""

    def __init__(self) -> None:
        self._members: dict[Sequence, int] = {}  # with the number of their entry
        self._counts: Counter[int] = Counter()  # by priority
        self._heaps: dict[
            int, tuple[list[_Entry], list[_Entry]]
        ] = {}  # by priority: shortest first, oldest first
        self._numbers = itertools.count()

    def __len__(self) -> int:
        return len(self._members)

    def __contains__(self, sequence: Sequence) -> bool:
        return sequence in self._members

    @property
    def priorities(self) -> list[int]:
        """The priority numbers of those who wait, the smallest first."""
        return sorted(self._counts)

    def add(self, sequence: Sequence) -> None:
        """Let a sequence wait."""
        number = next(self._numbers)
        self._members[sequence] = number
        self._counts[sequence.priority] += 1
        by_length, by_age = self._heaps.setdefault(sequence.priority, ([], []))
        heapq.heappush(by_length, (sequence.num_pending, sequence.arrival, number, sequence))
        heapq.heappush(by_age, (sequence.arrival, 0, number, sequence))

    def remove(self, sequence: Sequence) -> None:
        """Take a waiting sequence out."""
        del self._members[sequence]
        priority = sequence.priority
        self._counts[priority] -= 1
        if not self._counts[priority]:
            del self._counts[priority], self._heaps[priority]
            return
        for heap in self._heaps[priority]:
            if len(heap) > 2 * self._counts[priority] + 64:
                heap[:] = [entry for entry in heap if self._is_current(entry)]
                heapq.heapify(heap)

    def first(self, priority: int, count: int) -> list[Sequence]:
        """Return the `count` shortest and the `count` oldest of a priority, each once."""
        found: dict[Sequence, None] = {}
        for heap in self._heaps.get(priority, ()):
            entries: list[_Entry] = []
            while heap and len(entries) < count:
                entry = heapq.heappop(heap)
                if self._is_current(entry):
                    entries.append(entry)
            for entry in entries:
                heapq.heappush(heap, entry)
                found[entry[-1]] = None
        return list(found)

    def _is_current(self, entry: _Entry) -> bool:
        return self._members.get(entry[-1]) == entry[-2]
