"""`IdleTimer`: calls back once nothing has happened for a while. Any thread may use it."""

from __future__ import annotations

import threading
from collections.abc import Callable


class IdleTimer:
    """Calls `on_idle` on a thread of its own, `after_s` after the last `restart`; None never does."""

    def __init__(self, on_idle: Callable[[], None], after_s: float | None = None) -> None:
        self.after_s = after_s
        self._on_idle = on_idle
        self._lock = threading.Lock()
        self._timer: threading.Timer | None = None

    def restart(self) -> None:
        """Count from now."""
        with self._lock:
            self._stop()
            if self.after_s is not None:
                self._timer = threading.Timer(self.after_s, self._on_idle)
                self._timer.name, self._timer.daemon = "engine-idle", True
                self._timer.start()

    def cancel(self) -> None:
        """Do not call back until the next `restart`. A call that has begun goes on."""
        with self._lock:
            self._stop()

    def _stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
