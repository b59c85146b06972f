"""One parser process as its owner sees it: started fresh, spoken to by frames, ended by a kill.

The process is a new Python, never a fork, in a session of its own with an empty environment, and inherits one
descriptor: its end of a socket pair.
"""

from __future__ import annotations

import contextlib
import subprocess
import sys
from pathlib import Path

from inglenook.storage.parsing import frames
from inglenook.storage.parsing.document import ParsingLimits
from inglenook.storage.parsing.errors import ParserStoppedError
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
        ParserStoppedError: it could not be started.
        ParsingError: the tokenizer file cannot be read.
    """

    def __init__(self, *, limits: ParsingLimits, tokenizer: Path | None, max_tokens: int) -> None:
        ours, theirs = frames.open_pair()
        with theirs:
            self._connection = ours
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-m", "inglenook.storage.parsing.worker", str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=(theirs.fileno(),),
                cwd="/",
                env={"TOKENIZERS_PARALLELISM": "false", "LC_ALL": "C.UTF-8"},
                start_new_session=True,
            )
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
        return self._process.poll() is None and not is_worn

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
            if tokenizer is None:
                self._answers.send(setup, None, START_TIMEOUT_S)
            else:
                # A model library may link to its files: the path is ours, not the document's.
                with open(tokenizer.resolve(), "rb") as file:
                    self._answers.send(setup, file.fileno(), START_TIMEOUT_S)
            ready = self._answers.receive(START_TIMEOUT_S)
        except (EOFError, OSError) as error:
            raise ParserStoppedError(
                f"The parser could not be started ({self.death_cause()}). Restart the program; if that does not help, install it again."
            ) from error
        if not isinstance(ready, frames.Ready):
            raise ParserStoppedError(
                f"The parser did not start within {START_TIMEOUT_S:.0f} seconds. Close other programs and try again."
            )
        return Restrictions(ready.in_force, ready.missing)
