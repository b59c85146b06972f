"""The engine process: reads commands from its channel, runs one `EngineCore`, writes answers and heartbeats.

Started fresh by `ChildHome` as `python -I -m inglenook.engine.homes.process CHANNEL PARENT_PID`, never forked. The main
thread reads, the core's thread writes answers, a third thread writes a heartbeat a second. When the channel ends the
parent is gone, and the process ends at once, whatever the core is doing. Any unhandled exception in any thread ends
it too: half an engine would leave requests waiting for ever. Nothing but crash reports is written to stderr.
"""

from __future__ import annotations

import faulthandler
import os
import sys
import threading
import traceback
from collections.abc import Callable
from typing import NoReturn, Protocol

from inglenook.engine.homes.frames import FrameError, command_reader, encode
from inglenook.engine.homes.messages import Answer, Command, Emit, Heartbeat, Shutdown

if sys.platform == "win32":
    from inglenook.engine.homes import process_windows as system
else:
    from inglenook.engine.homes import process_posix as system

HEARTBEAT_S = 1.0
EXIT_MEMORY = 71

_READ_BYTES = 1 << 18
_EXIT_CRASHED = 1
_EXIT_PROTOCOL = 76


class Core(Protocol):
    """What a home needs of an engine core; a `progress` attribute, if there, counts steps and load pieces.

    `on_exhausted`, if set, is called once memory ran out for good: only a new process can help.
    """

    on_exhausted: Callable[[], None] | None

    def post(self, command: Command) -> None:
        """Take a command, from any thread, without blocking."""

    def close(self, timeout_s: float = 10) -> None:
        """Cancel and free everything, and end the core's thread."""


MakeCore = Callable[[Emit], Core]


def engine_core(emit: Emit) -> Core:
    """Make the real engine core; torch is imported here and not before."""
    from inglenook.engine.core import EngineCore

    return EngineCore(emit)


def main(arguments: list[str], make_core: MakeCore = engine_core) -> NoReturn:
    """Run the engine process until it is told to stop or its parent is gone."""
    channel, parent_pid = int(arguments[0]), int(arguments[1])
    system.settle(channel, parent_pid)
    faulthandler.enable()
    threading.excepthook = _end_on_exception
    writing = threading.Lock()

    def emit(id_: int, answer: Answer) -> None:
        frame = memoryview(encode(id_, answer))
        with writing:
            while frame:
                try:
                    frame = frame[os.write(channel, frame) :]
                except OSError:
                    os._exit(0)  # the parent is gone

    core = make_core(emit)
    core.on_exhausted = lambda: _end(EXIT_MEMORY)
    threading.Thread(target=_beat, args=(core, emit), name="engine-heartbeat", daemon=True).start()
    try:
        _read_commands(channel, core)
    except FrameError as error:
        _end(_EXIT_PROTOCOL, f"the client sent {error}")
    core.close()
    _end(0)


def _read_commands(channel: int, core: Core) -> None:
    reader = command_reader()
    while True:
        try:
            data = os.read(channel, _READ_BYTES)
        except ConnectionResetError:
            data = b""
        if not data:
            os._exit(0)  # the parent is gone; a step in progress is of no use to anyone
        for _, command in reader.feed(data):
            if isinstance(command, Shutdown):
                return
            core.post(command)


def _beat(core: Core, emit: Emit) -> None:
    pause = threading.Event()
    while True:
        emit(0, Heartbeat(int(getattr(core, "progress", 0))))
        pause.wait(HEARTBEAT_S)


def _end_on_exception(args: threading.ExceptHookArgs) -> None:
    _end(
        _EXIT_CRASHED, "".join(traceback.format_exception(args.exc_type, args.exc_value, args.exc_traceback))
    )


def _end(code: int, last_words: str = "") -> NoReturn:
    # Without the interpreter's own clean-up, which waits for torch and can hang; there is nothing left to save.
    if last_words:
        print(last_words, file=sys.stderr)
    sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    main(sys.argv[1:])
