"""`until`: progress that ends a load when the model doctor's time is up."""

from __future__ import annotations

import time

from inglenook.engine.backend import Progress


class OutOfTimeError(Exception):
    """The time is up; raised through a progress callback."""


def until(deadline: float) -> Progress:
    """Progress that raises `OutOfTimeError` after `deadline`, a `time.perf_counter()`."""

    def progress(done: int, total: int) -> None:
        if time.perf_counter() > deadline:
            raise OutOfTimeError

    return progress
