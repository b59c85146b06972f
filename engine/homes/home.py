"""`Home`: where one engine runs, from its start to its end. This process is one home, a child process the other.

A home never starts again: the client makes a new one. Answers and the end are told through two callables, on a
thread of the home's own. After `on_end` nothing more comes.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Protocol

from inglenook.engine.homes.messages import Answer, Command, Shutdown
from inglenook.engine.homes.process import Core, MakeCore, engine_core

OnAnswer = Callable[["Home", int, Answer], None]
OnEnd = Callable[["Home", str | None], None]  # the reason as a sentence, or None when it was asked to stop


class Home(Protocol):
    """Where one engine runs."""

    ends_when_empty: bool  # whether stopping it after the last unload gives memory back

    def start(self, after: Home | None) -> None:
        """Begin, once `after` has ended; returns at once. Commands may be sent from now on."""

    def send(self, command: Command, frame: bytes) -> None:
        """Pass on a command, given in both forms; any thread, never blocks."""

    def facts(self) -> dict[str, float]:
        """What the home itself can say for `stats`."""

    def stop(self) -> None:
        """Ask it to end; returns at once. Any thread, more than once is fine."""

    def join(self, timeout_s: float) -> None:
        """Wait until it has ended, at most `timeout_s`; from its own thread, return at once."""


MakeHome = Callable[[OnAnswer, OnEnd], Home]


class InProcessHome:
    """An engine in this process: for tests and the command line. A crash in native code takes this process along."""

    ends_when_empty = False

    def __init__(self, on_answer: OnAnswer, on_end: OnEnd, *, make_core: MakeCore = engine_core) -> None:
        self._on_answer = on_answer
        self._on_end = on_end
        self._make_core = make_core
        self._core: Core | None = None
        self._ended = False

    def start(self, after: Home | None) -> None:
        """Make the core."""
        self._core = self._make_core(functools.partial(self._on_answer, self))

    def send(self, command: Command, frame: bytes) -> None:
        """Post the command to the core."""
        if self._core is not None:
            self._core.post(command)

    def facts(self) -> dict[str, float]:
        """Return the core's progress counter."""
        return {"progress": float(getattr(self._core, "progress", 0))}

    def stop(self) -> None:
        """Post a shutdown; `join` waits for it."""
        if self._core is not None:
            self._core.post(Shutdown(0))

    def join(self, timeout_s: float) -> None:
        """Close the core and tell the end."""
        if self._core is not None:
            self._core.close(timeout_s)
        if not self._ended:
            self._ended = True
            self._on_end(self, None)
