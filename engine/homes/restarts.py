"""`Restarts`: how often an engine process may be started again after it ended by itself."""

from __future__ import annotations

import time
from collections import deque

MAX_RESTARTS = 3
WINDOW_S = 300.0


class Restarts:
    """Remembers unwanted ends: after one more than `MAX_RESTARTS` within `WINDOW_S` the next start has to wait."""

    def __init__(self) -> None:
        self._deaths: deque[float] = deque()
        self._last_reason = ""

    def __len__(self) -> int:
        return len(self._deaths)

    def note(self, reason: str) -> None:
        """Remember that an engine ended, and why."""
        self._deaths.append(time.monotonic())
        self._last_reason = reason

    def refusal(self) -> str | None:
        """Say why no engine is started now; None when one may be."""
        now = time.monotonic()
        while self._deaths and self._deaths[0] < now - WINDOW_S:
            self._deaths.popleft()
        if len(self._deaths) <= MAX_RESTARTS:
            return None
        wait_s = self._deaths[-1 - MAX_RESTARTS] + WINDOW_S - now
        return (
            f"The engine ended {len(self._deaths)} times within {WINDOW_S / 60:.0f} minutes and is not started again "
            f"for {wait_s:.0f} s. The last time: {self._last_reason}"
        )
