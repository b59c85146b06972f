"""`FakeCore`: an engine core that does what the prompt says. In this process, or as the child's program.

Run as a script with a channel and a parent's process id it is an engine process, like the real one but for the core.
A prompt is one word and perhaps a number: see `_SCRIPTS`. "missing" in a model's path makes the load fail, "slow"
makes it last until it is cancelled or 0.3 s are over.
"""

from __future__ import annotations

import contextlib
import ctypes
import faulthandler
import os
import queue
import resource
import signal
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

from inglenook.engine.homes.messages import (
    Cancel,
    Command,
    Emit,
    Forget,
    GetStats,
    LoadModel,
    Shutdown,
    Stats,
    Submit,
)
from inglenook.engine.homes.messages import UnloadModel as Unload
from inglenook.engine.request import (
    Failed,
    Finished,
    FinishReason,
    Forgotten,
    Loaded,
    LoadProgress,
    TokenText,
    Unloaded,
)


class FakeCore:
    def __init__(self, emit: Emit) -> None:
        self.progress = 0
        self._emit = emit
        self._inbox: queue.SimpleQueue[Command] = queue.SimpleQueue()
        self._cancelled: set[int] = set()
        self._closing = False
        self._slots: dict[str, str] = {}
        self._thread = threading.Thread(target=self._run, name="fake-core", daemon=True)
        self._thread.start()

    def post(self, command: Command) -> None:
        if isinstance(command, Cancel):
            self._cancelled.add(command.target)
        self._closing = self._closing or isinstance(command, Shutdown)
        self._inbox.put(command)

    def close(self, timeout_s: float = 10) -> None:
        self.post(Shutdown(0))
        self._thread.join(timeout_s)

    def _run(self) -> None:
        while not isinstance(command := self._inbox.get(), Shutdown):
            self.progress += 1
            if isinstance(command, LoadModel):
                self._load(command)
            elif isinstance(command, Unload):
                self._slots.pop(command.slot, None)
                self._emit(command.id, Unloaded(command.slot))
            elif isinstance(command, Forget):
                self._emit(command.id, Forgotten(0, len(command.owner)))
            elif isinstance(command, GetStats):
                self._emit(command.id, Stats({"fake": 1.0}, dict(self._slots)))
            elif isinstance(command, Submit):
                self._answer(command)

    def _load(self, command: LoadModel) -> None:
        self._slots.pop(command.slot, None)
        if "missing" in command.path or ("volatile" in command.path and not Path(command.path).exists()):
            self._emit(command.id, Failed("ModelNotFoundError", "There is no file at that path."))
            return
        for done in range(30 if "slow" in command.path else 3):
            self._emit(command.id, LoadProgress("reading", done, 30))
            if self._is_cancelled(command.id):
                self._emit(command.id, Failed("EngineError", "The load was cancelled."))
                return
            if "slow" in command.path:
                time.sleep(0.01)
        if "deadly" in command.path:
            os.kill(os.getpid(), signal.SIGKILL)
        self._slots[command.slot] = Path(command.path).name
        self._emit(
            command.id,
            Loaded(
                slot=command.slot,
                name=Path(command.path).name,
                architecture="fake",
                backend="fake",
                backend_reason="asked for",
                context_length=64,
                weight_bytes=1,
                kv_bytes=1,
                load_s=0.0,
            ),
        )

    def _is_cancelled(self, id_: int) -> bool:
        return self._closing or id_ in self._cancelled

    def _answer(self, command: Submit) -> None:
        if command.request.slot not in self._slots:
            self._emit(command.id, Failed("NotLoadedError", "The slot holds no model."))
            return
        word, _, number = (command.request.prompt or "").partition(" ")
        count = 0
        reason: FinishReason = "stop"
        for text in _SCRIPTS[word](int(number or 0)):
            # Looked at between two pieces only, so that a script that hangs after one hangs whatever comes meanwhile.
            if self._is_cancelled(command.id):
                reason = "cancelled"
                break
            self._emit(command.id, TokenText(text, (count,)))
            count += 1
            self.progress += 1
        self._emit(
            command.id,
            Finished(
                finish_reason=reason,
                prompt_tokens=1,
                cached_tokens=0,
                completion_tokens=count,
                ttft_s=0.0,
                tpot_s=None,
                seed=0,
            ),
        )


def _count(number: int):
    yield from (f"{i} " for i in range(number))


def _endless(number: int):
    while True:
        yield "x"
        time.sleep(0.001)


def _then(action: Callable[[int], object]):
    def script(number: int):
        yield "so far"
        action(number)

    return script


def _write_raw(data: bytes) -> Callable[[int], object]:
    return lambda number: (os.write(int(sys.argv[1]), data), time.sleep(60))


def _half_frame(number: int) -> None:
    os.write(int(sys.argv[1]), b"\x00\x00\x01\x00half")
    os._exit(0)


def _raise(number: int) -> None:
    raise RuntimeError("the fake core fell over")


def _state(number: int):
    yield f"nice={os.nice(0)} "
    yield f"core={resource.getrlimit(resource.RLIMIT_CORE)[0]} "
    yield f"sigint={signal.getsignal(signal.SIGINT).name} "
    yield f"group={os.getpgid(0) == os.getpid()} "
    with contextlib.suppress(OSError):
        yield f"oom={Path('/proc/self/oom_score_adj').read_text().strip()} "


_SCRIPTS: dict[str, Callable[[int], object]] = {
    "count": _count,
    "endless": _endless,
    "pid": lambda number: iter([str(os.getpid())]),
    "state": _state,
    "flood": lambda number: ("x" for _ in range(number)),
    "abort": _then(lambda number: os.abort()),
    "segfault": _then(lambda number: faulthandler._sigsegv()),
    "exit": _then(os._exit),
    "kill": _then(lambda number: os.kill(os.getpid(), signal.SIGKILL)),
    "raise": _then(_raise),
    # PyDLL keeps the GIL: no thread of the process runs, no heartbeat leaves.
    "hang": _then(lambda number: ctypes.PyDLL(None).sleep(60)),
    "stuck": _then(lambda number: time.sleep(60)),
    "deaf": _then(lambda number: (os.kill(os.getpid(), signal.SIGSTOP), time.sleep(60))),
    "garbage": _then(_write_raw(b"\x00\x00\x00\x08garbage!")),
    "giant": _then(_write_raw(b"\x40\x00\x00\x00" + b"x" * 100)),
    "half": _then(_half_frame),
    "shout": _then(lambda number: os.write(2, b"noise " * 100_000)),
}


if __name__ == "__main__":
    from inglenook.engine.homes.process import main

    main(sys.argv[1:], FakeCore)
