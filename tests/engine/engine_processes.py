"""Clients of an engine process whose core is a fake one, and looking after processes, for tests."""

from __future__ import annotations

import functools
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import psutil

from inglenook.engine.client import EngineClient
from inglenook.engine.homes.child_home import ChildHome

FAKE_CORE = str(Path(__file__).with_name("fake_core.py"))
COMMAND = (sys.executable, "-I", FAKE_CORE)
TIMEOUT_S = 20


def make_client(command: tuple[str, ...] = COMMAND, **options: float) -> EngineClient:
    """A client whose engine process runs `command`, with options of `ChildHome`."""
    return EngineClient(functools.partial(ChildHome, command=command, **options))


def wait_until(condition: Callable[[], bool], timeout_s: float = TIMEOUT_S) -> bool:
    """Whether a condition comes true in time."""
    deadline = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > deadline:
            return False
        threading.Event().wait(0.01)
    return True


def is_gone(pid: int) -> bool:
    """Whether a process has ended; one that nobody has waited for counts."""
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True
