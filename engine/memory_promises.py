"""`MemoryPromises`: free memory that slots were promised and have not taken yet, so that it is promised once.

The KV cache of a loaded model takes memory as it fills, and a model that is being loaded takes its weights piece by
piece; until then the system counts that memory as free. Loads run on threads of their own and may come at the same
moment, so whoever looks at free memory and decides does it alone.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator

Left = Callable[[], int]  # bytes promised and not taken yet; called on other threads


class MemoryPromises:
    """One account for all slots of an engine. Any thread may use it."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._left: dict[str, Left] = {}

    @contextlib.contextmanager
    def deciding(self, slot: str) -> Iterator[int]:
        """Give the bytes promised to slots other than `slot`; nobody else decides until the block ends."""
        with self._lock:
            yield sum(max(0, left()) for name, left in self._left.items() if name != slot)

    def make(self, slot: str, left: Left) -> None:
        """Promise a slot memory, in place of what it was promised before."""
        with self._lock:
            self._left[slot] = left

    def drop(self, slot: str) -> None:
        """Take a slot's promise back, because it was emptied or its load failed."""
        with self._lock:
            self._left.pop(slot, None)
