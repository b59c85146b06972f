"""One parser process as its owner sees it: started fresh, spoken to by frames, ended by a kill.

The process is a new Python, never a fork, in a session of its own with an empty environment, and inherits one
descriptor: its end of a socket pair. Linux ends it with the thread that started it, so a thread of its own does that,
and waits until it is gone.
"""

from __future__ import annotations

import contextlib
import os
import queue
import subprocess
import sys
import threading
from pathlib import Path

from inglenook.storage.parsing import frames
from inglenook.storage.parsing.document import ParsingLimits
from inglenook.storage.parsing.errors import ParserStoppedError, error_from_kind
from inglenook.storage.parsing.restrictions import Restrictions

START_TIMEOUT_S = 30.0
# Processor time of one process over all its documents; it is replaced well before.
_CPU_LIMIT_S = 1200
_REPLACED_AFTER_CPU_S = 400.0
_REPLACED_AFTER_JOBS = 100
_STOP_TIMEOUT_S = 5.0


class ParserProcess:
    """A started parser process. `restrictions` says what it is kept from.

    Raises:
        ParserStoppedError: it could not be started, or the tokenizer file cannot be used.
    """

    def __init__(self, *, limits: ParsingLimits, tokenizer: Path | None, max_tokens: int) -> None:
        ours, theirs = frames.open_pair()
        self._connection = ours
        with theirs:
            self._process = _start(theirs.fileno())
        self._answers = frames.AnswerReader(ours)
        self._num_jobs = 0
        self.cpu_s = 0.0
        try:
            self.restrictions = self._set_up(limits, tokenizer, max_tokens)
        except BaseException:
            self.close()
            raise

    @property
    def pid(self) -> int:
        """The process id."""
        return self._process.pid

    def is_fresh(self) -> bool:
        """Say whether it is alive and may take another job."""
        is_worn = self._num_jobs >= _REPLACED_AFTER_JOBS or self.cpu_s >= _REPLACED_AFTER_CPU_S
        return self._process.poll() is None and self._answers.is_open() and not is_worn

    def start_job(self, job: frames.ParseJob | frames.RenderJob, descriptor: int) -> None:
        """Send a job with its open document; the descriptor stays the caller's.

        Raises:
            EOFError: the process is gone.
        """
        self._num_jobs += 1
        try:
            self._answers.send(job, descriptor, _STOP_TIMEOUT_S)
        except OSError as error:
            raise EOFError from error

    def receive(self, timeout_s: float) -> frames.Answer | None:
        """Give the next answer, or None after the timeout; raises EOFError when the process is gone."""
        return self._answers.receive(timeout_s)

    def end(self) -> None:
        """End the process at once; may be called while another thread waits in `receive`, which then sees its end."""
        self._process.kill()

    def close(self) -> None:
        """End the process and free what belongs to it; twice is fine."""
        self._process.kill()
        self._connection.close()
        with contextlib.suppress(
            subprocess.TimeoutExpired
        ):  # one that hangs in the kernel dies when that lets go
            self._process.wait(_STOP_TIMEOUT_S)

    def death_cause(self) -> str:
        """Say how the process ended, for a message: a signal's number or an exit status."""
        try:
            status = self._process.wait(_STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            return "it does not answer"
        return f"signal {-status}" if status < 0 else f"exit status {status}"

    def _set_up(self, limits: ParsingLimits, tokenizer: Path | None, max_tokens: int) -> Restrictions:
        setup = frames.Setup(
            limits=limits, cpu_s=_CPU_LIMIT_S, max_tokens=max_tokens, has_tokenizer=tokenizer is not None
        )
        try:
            self._send_setup(setup, tokenizer)
            ready = self._answers.receive(START_TIMEOUT_S)
        except (EOFError, OSError) as error:
            raise ParserStoppedError(
                f"The parser could not be started ({self.death_cause()}). Restart the program; "
                "if that does not help, install it again."
            ) from error
        if isinstance(ready, frames.Failed):
            raise error_from_kind(ready.kind, ready.message)
        if not isinstance(ready, frames.Ready):
            raise ParserStoppedError(
                f"The parser did not start within {START_TIMEOUT_S:.0f} seconds. Close other programs and try again."
            )
        return Restrictions(ready.in_force, ready.missing)

    def _send_setup(self, setup: frames.Setup, tokenizer: Path | None) -> None:
        if tokenizer is None:
            self._answers.send(setup, None, START_TIMEOUT_S)
            return
        try:
            # A model library may link to its files: this path is ours, not a document's.
            descriptor = os.open(tokenizer, os.O_RDONLY | os.O_CLOEXEC)
        except OSError as error:
            raise ParserStoppedError(
                f"The embedder's tokenizer cannot be read ({error.strerror}). Fetch the embedder again."
            ) from error
        try:
            self._answers.send(setup, descriptor, START_TIMEOUT_S)
        finally:
            os.close(descriptor)


def _start(descriptor: int) -> subprocess.Popen[bytes]:
    started: queue.SimpleQueue[subprocess.Popen[bytes] | OSError] = queue.SimpleQueue()

    def keep() -> None:
        try:
            process = subprocess.Popen(
                [sys.executable, "-I", "-m", "inglenook.storage.parsing.worker", str(descriptor)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=(descriptor,),
                cwd="/",
                env={"TOKENIZERS_PARALLELISM": "false", "LC_ALL": "C.UTF-8"},
                start_new_session=True,
            )
        except OSError as error:
            started.put(error)
            return
        started.put(process)
        # The one wait without a timeout: this thread has to live exactly as long as the process.
        process.wait()

    threading.Thread(target=keep, name="parser keeper", daemon=True).start()
    result = started.get(timeout=START_TIMEOUT_S)
    if isinstance(result, OSError):
        raise ParserStoppedError(
            f"The parser could not be started ({result.strerror}). Close other programs and try again."
        ) from result
    return result
