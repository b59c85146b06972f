"""`ChildHome`: an engine in a child process, seen from the client's side.

One thread owns everything: it starts the child, reads and writes the channel without blocking, drains the child's
stderr into a short tail, watches the heartbeat, ends the child and tells why it ended. Other threads only put frames
into a queue and wake it. The end of the channel is the end of the child, so a death shows at once.
"""

from __future__ import annotations

import contextlib
import math
import os
import selectors
import signal
import subprocess
import sys
import threading
import time
from collections import deque

from inglenook.engine.homes.frames import FrameError, FrameReader, answer_reader, encode
from inglenook.engine.homes.home import Home, OnAnswer, OnEnd
from inglenook.engine.homes.messages import Answer, Cancel, Command, Heartbeat, Shutdown
from inglenook.engine.homes.process import EXIT_MEMORY
from inglenook.engine.request import TERMINAL_EVENTS

if sys.platform == "win32":
    from inglenook.engine.homes import process_windows as system
else:
    from inglenook.engine.homes import process_posix as system

ENGINE_COMMAND = (sys.executable, "-I", "-m", "inglenook.engine.homes.process")

_READ_BYTES = 1 << 18
_TAIL_BYTES = 8192
_REAP_S = 2.0
_TERMINATE_S = 1.0
_LONGEST_WAIT_S = 60.0
_LAST_LINE_CHARACTERS = 200


class ChildHome:
    """An engine in a child process: the desktop's choice. A crash there costs the open requests, nothing else.

    `start_timeout_s` is how long the imports may take, `heartbeat_timeout_s` how long the child may be silent,
    `stall_timeout_s` how long a cancelled request may go on without any progress, `stop_timeout_s` how long the
    child may take to stop by itself; after each the child is ended by force.
    """

    ends_when_empty = True

    def __init__(
        self,
        on_answer: OnAnswer,
        on_end: OnEnd,
        *,
        command: tuple[str, ...] = ENGINE_COMMAND,
        start_timeout_s: float = 120.0,
        heartbeat_timeout_s: float = 10.0,
        stall_timeout_s: float = 60.0,
        stop_timeout_s: float = 2.0,
    ) -> None:
        self._on_answer = on_answer
        self._on_end = on_end
        self._command = command
        self._start_timeout_s = start_timeout_s
        self._heartbeat_timeout_s = heartbeat_timeout_s
        self._stall_timeout_s = stall_timeout_s
        self._stop_timeout_s = stop_timeout_s
        # Reentrant, because a finalizer may call `stop` on a thread that is inside one of the methods below.
        self._lock = threading.RLock()
        self._outbox: deque[bytes] = deque()
        self._wake_read, self._wake_write = os.pipe()
        self._woken = False
        self._stopping = False
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="engine-client", daemon=True)
        self._after: Home | None = None
        # Everything below belongs to the thread; others may look at the numbers.
        self._process: subprocess.Popen[bytes] | None = None
        self._reader: FrameReader[Answer] = answer_reader()
        self._tail = bytearray()
        self._unsent = memoryview(b"")
        self._heard_at = time.monotonic()
        self._progress: int | None = None
        self._progress_at = self._heard_at
        self._cancelled_at: dict[int, float] = {}

    @property
    def pid(self) -> int | None:
        """The child's process id, once it is started."""
        return self._process.pid if self._process is not None else None

    def start(self, after: Home | None) -> None:
        """Start the thread, which starts the child."""
        self._after = after
        self._thread.start()

    def send(self, command: Command, frame: bytes) -> None:
        """Queue a frame."""
        if isinstance(command, Cancel):
            self._cancelled_at[command.target] = time.monotonic()
        self._outbox.append(frame)
        self._wake()

    def facts(self) -> dict[str, float]:
        """Return the progress counter as last heard, the seconds since it changed, and since anything was heard."""
        now = time.monotonic()
        return {
            "progress": float(self._progress or 0),
            "progress_age_s": now - self._progress_at,
            "heartbeat_age_s": now - self._heard_at,
        }

    def stop(self) -> None:
        """Ask the child to stop; it is ended by force after `stop_timeout_s`."""
        self._stopping = True
        self._wake()

    def join(self, timeout_s: float) -> None:
        """Wait until the child is gone."""
        if threading.current_thread() is not self._thread:
            self._ended.wait(timeout_s)
            self._thread.join(timeout_s)

    def _wake(self) -> None:
        # Under the lock, because once the thread has closed the pipe its number may belong to another file.
        with self._lock:
            if not self._woken and not self._ended.is_set():
                self._woken = True
                os.write(self._wake_write, b"\0")

    def _run(self) -> None:
        reason: str | None = "The connection to the engine failed through a fault in this program."
        try:
            if self._after is not None:
                self._after.join(self._stop_timeout_s + _TERMINATE_S + _REAP_S)
                self._after = None
            reason = self._live()
        finally:
            with self._lock:
                self._ended.set()
                os.close(self._wake_read)
                os.close(self._wake_write)
            self._on_end(self, reason)

    def _live(self) -> str | None:
        """Start the child and stay until it is gone; return the reason unless it was asked to stop."""
        if self._stopping:
            return None
        try:
            process, channel = system.spawn(self._command)
        except OSError as error:
            return f"The engine process could not be started ({error})."
        self._process = process
        self._heard_at = self._progress_at = time.monotonic()
        try:
            fault = self._converse(process, channel)
        finally:
            os.close(channel)
            status = self._reap(process)
        return None if self._stopping else describe_end(status, bytes(self._tail), fault)

    def _converse(self, process: subprocess.Popen[bytes], channel: int) -> str | None:
        """Read, write and watch until the channel ends; return what the child did wrong, if it was that."""
        assert process.stderr is not None
        stderr = process.stderr.fileno()
        os.set_blocking(stderr, False)
        stop_at: float | None = None
        forces = [process.terminate, process.kill]
        with selectors.DefaultSelector() as selector:
            selector.register(channel, selectors.EVENT_READ)
            selector.register(stderr, selectors.EVENT_READ)
            selector.register(self._wake_read, selectors.EVENT_READ)
            while True:
                if self._stopping and stop_at is None:
                    stop_at = time.monotonic() + self._stop_timeout_s
                    self._outbox.append(encode(0, Shutdown(0)))
                self._write(channel)
                wants_to_write = selectors.EVENT_WRITE if self._unsent else 0
                selector.modify(channel, selectors.EVENT_READ | wants_to_write)
                deadline = (
                    min(self._silence_deadline(), self._stall_deadline()) if stop_at is None else stop_at
                )
                wait_s = min(max(0.0, deadline - time.monotonic()), _LONGEST_WAIT_S)
                ready = {key.fd: mask for key, mask in selector.select(wait_s)}
                if self._wake_read in ready:
                    with self._lock:
                        os.read(self._wake_read, 1)
                        self._woken = False
                if stderr in ready and not self._drain(stderr):
                    selector.unregister(stderr)
                if ready.get(channel, 0) & selectors.EVENT_READ:
                    try:
                        if not self._read(channel):
                            self._drain(stderr)
                            return None
                    except FrameError as error:
                        process.kill()
                        return f"sent {error}"
                # Only when nothing lies unread: it may be this process that was suspended, not the child.
                elif stop_at is None and time.monotonic() >= self._silence_deadline():
                    process.kill()
                    return f"did not respond for {time.monotonic() - self._heard_at:.0f} s and was ended"
                if stop_at is None and time.monotonic() >= self._stall_deadline():
                    process.kill()
                    return f"did not stop an answer within {self._stall_timeout_s:.0f} s and was ended"
                if stop_at is not None and time.monotonic() >= stop_at and forces:
                    forces.pop(0)()
                    stop_at += _TERMINATE_S

    def _write(self, channel: int) -> None:
        while self._unsent or self._outbox:
            if not self._unsent:
                self._unsent = memoryview(self._outbox.popleft())
            try:
                self._unsent = self._unsent[os.write(channel, self._unsent) :]
            except BlockingIOError:
                return
            except OSError:
                # The child is gone; what it still said is read up to the end of the channel.
                self._unsent = memoryview(b"")
                self._outbox.clear()

    def _read(self, channel: int) -> bool:
        try:
            data = os.read(channel, _READ_BYTES)
        except BlockingIOError:
            return True
        except OSError:
            data = b""
        self._heard_at = time.monotonic()
        for id_, answer in self._reader.feed(data):
            if isinstance(answer, Heartbeat):
                if answer.progress != self._progress:
                    self._progress, self._progress_at = answer.progress, self._heard_at
                continue
            self._on_answer(self, id_, answer)
            # Only now does the client know, so that it sends no cancel for this one after the entry is gone.
            if isinstance(answer, TERMINAL_EVENTS):
                self._cancelled_at.pop(id_, None)
        if not data:
            self._reader.finish()
        return bool(data)

    def _drain(self, stderr: int) -> bool:
        try:
            data = os.read(stderr, _READ_BYTES)
        except BlockingIOError:
            return True
        self._tail += data
        del self._tail[:-_TAIL_BYTES]
        return bool(data)

    def _silence_deadline(self) -> float:
        started = self._progress is not None
        return self._heard_at + (self._heartbeat_timeout_s if started else self._start_timeout_s)

    def _stall_deadline(self) -> float:
        first_cancel_at = min(list(self._cancelled_at.values()), default=math.inf)
        return max(self._progress_at, first_cancel_at) + self._stall_timeout_s

    def _reap(self, process: subprocess.Popen[bytes]) -> int:
        """Wait for the child's end, which is forced where it does not come; return its status."""
        assert process.stderr is not None
        try:
            process.wait(_REAP_S)
        except subprocess.TimeoutExpired:
            # It closed its channel and lives on.
            process.kill()
            # On an overloaded computer even that takes long; it is reaped when the next child is started.
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(_REAP_S)
        process.stderr.close()
        return -signal.SIGKILL if process.returncode is None else process.returncode


def describe_end(returncode: int, stderr: bytes, fault: str | None) -> str:
    """Say in sentences why the child ended and what to do: `fault` is what it did wrong before we ended it."""
    if fault is not None:
        return f"The engine process {fault}."
    if returncode < 0:
        what = f"The engine process was ended by signal {-returncode} ({_signal_name(-returncode)})."
        if returncode == -signal.SIGKILL:
            what += " The system does this when memory runs out; a smaller model or fewer open programs help."
        return what
    if returncode == EXIT_MEMORY:
        return (
            "The engine process ran out of memory and ended. Close other programs, ask for a shorter context, or use a "
            "smaller model."
        )
    lines = [line.strip() for line in stderr.decode("utf-8", "replace").splitlines() if line.strip()]
    last = f": {lines[-1][:_LAST_LINE_CHARACTERS].removesuffix('.')}" if lines and returncode else ""
    return f"The engine process ended with exit code {returncode}{last}."


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return "unknown"
