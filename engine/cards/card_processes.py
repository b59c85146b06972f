"""`Cards`: the processes of all cards that share a model but the first, seen from the engine.

Each is started fresh, told what to do through a pipe, and answers in lines of JSON. A thread for each waits for its end: a
process that ends unasked loses the model, its reason is kept, and what waits for it is ended. A pipe that is not emptied
for `_SEND_S` counts as a card that does not answer.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

import torch

from inglenook.engine.cards.rank_frames import RankMessage
from inglenook.engine.cards.ranks import ProcessRanks
from inglenook.engine.errors import CardLostError, EngineError, error_from_kind

_COMMAND = (sys.executable, "-P", "-m", "inglenook.engine.cards.tensor_parallel_worker")
_SEND_S = 10.0
_START_S = 900.0  # loading a share and compiling its kernels
_TELL_S = 2.0  # until the end of a process is noticed after its connections closed
_POLL_S = 0.1
_END_S = 2.0
_SPIN_S = 0.02


class Cards:
    """Cards 1 .. count - 1, and the sums over all from this one. Used from one thread at a time but where said."""

    def __init__(self, count: int, *, is_card: bool) -> None:
        self.count = count
        self.ranks: ProcessRanks | None = None
        self.weight_bytes = 0
        self._is_card = is_card
        self._folder = Path(tempfile.mkdtemp(prefix="inglenook-cards-"))  # open to this user alone
        self._lock = threading.Lock()
        self._reason = ""
        self._failed: dict[int, EngineError] = {}
        self._closing = False
        self._heard: dict[int, bytes] = dict.fromkeys(range(1, count), b"")
        self._states: dict[int, str] = dict.fromkeys(range(1, count), "")
        self._processes: dict[int, subprocess.Popen[bytes]] = {}
        for rank in range(1, count):
            process = subprocess.Popen(
                _COMMAND, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0, process_group=0
            )
            assert process.stdin is not None
            assert process.stdout is not None
            for stream in (process.stdin, process.stdout):
                os.set_blocking(stream.fileno(), False)
            self._processes[rank] = process
            threading.Thread(target=self._watch, args=(rank,), name=f"card-{rank}", daemon=True).start()

    @property
    def rendezvous(self) -> Path:
        """Where the processes find each other."""
        return self._folder / "rendezvous"

    @property
    def is_lost(self) -> bool:
        """Whether a card is gone."""
        return bool(self._reason)

    @property
    def pids(self) -> tuple[int, ...]:
        """The processes of cards 1, 2, ..."""
        return tuple(process.pid for process in self._processes.values())

    def meet(self, wait: Callable[[], None], *, timeout_s: float) -> None:
        """Wait for all processes and connect; `timeout_s` is then that of every sum. `wait` may raise to give up."""
        self.wait_for("here", wait)
        try:
            self.ranks = ProcessRanks(
                self.rendezvous, 0, self.count, is_card=self._is_card, timeout_s=timeout_s
            )
        except RuntimeError as error:
            raise self.lost(error) from error

    def send(self, rank: int, message: RankMessage) -> None:
        """Tell one card.

        Raises:
            CardLostError: a card is gone, or does not read.
        """
        stream = self._processes[rank].stdin
        assert stream is not None
        left = memoryview(message.encode())
        deadline = time.monotonic() + _SEND_S
        while left:
            if self.is_lost:
                raise self.lost()
            try:
                left = left[os.write(stream.fileno(), left) :]
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise self.lost(TimeoutError(f"card {rank} took nothing for {_SEND_S:.0f} s")) from None
                select.select([], [stream], [], _POLL_S)
            except (OSError, ValueError) as error:
                raise self.lost(error) from error

    def tell(self, message: RankMessage) -> None:
        """Tell all cards; raises as `send`."""
        for rank in self._processes:
            self.send(rank, message)

    def wait_for(self, state: str, wait: Callable[[], None]) -> None:
        """Wait until all processes say `state`, calling `wait` every now and then, which may raise to give up.

        Raises:
            EngineError: what a card said went wrong, or CardLostError.
        """
        deadline = time.monotonic() + _START_S
        while any(said != state for said in self._states.values()):
            wait()
            if time.monotonic() > deadline:
                raise self.lost(TimeoutError(f"a card was not {state} within {_START_S:.0f} s"))
            ranks = {self._output(rank): rank for rank, said in self._states.items() if said != state}
            for stream in select.select(list(ranks), [], [], _POLL_S)[0]:
                self._hear(ranks[stream], stream)
            if self._failed:
                raise next(iter(self._failed.values()))
            if self.is_lost:
                raise self.lost()

    def wait_for_device(self, device: torch.device, timeout_s: float) -> None:
        """Wait until this card has done what it was given; one that waits for a lost card is not waited for.

        Raises:
            CardLostError: a card is gone, or the work is not done in time.
        """
        if device.type != "cuda":
            return
        event = torch.cuda.Event()  # type: ignore[no-untyped-call]  # untyped in torch, as is query
        event.record()
        started = time.monotonic()
        while not event.query():  # type: ignore[no-untyped-call]
            waited = time.monotonic() - started
            if self.is_lost:
                raise self.lost()
            if waited > timeout_s:
                raise self.lost(TimeoutError(f"the cards did not end a step within {timeout_s:.0f} s"))
            if waited > _SPIN_S:
                time.sleep(1e-4)

    def lost(self, error: Exception | None = None) -> EngineError:
        """The error to raise: why a card is gone, as far as that is known within two seconds, else `error` itself."""
        deadline = time.monotonic() + _TELL_S
        while not self._reason and time.monotonic() < deadline:
            time.sleep(_POLL_S / 10)
        with self._lock:
            if not self._reason:
                self._reason = f"The cards that share this model no longer work together ({error})."
        for rank in self._processes:
            with contextlib.suppress(OSError, ValueError):
                self._hear(rank, self._output(rank))
        if self._failed:
            return next(iter(self._failed.values()))
        return CardLostError(f"{self._reason} Load the model again.")

    def close(self) -> None:
        """End the processes. Closing twice is fine."""
        self._closing = True
        for process in self._processes.values():
            if process.stdin is not None:
                process.stdin.close()
        deadline = time.monotonic() + _END_S
        for process in self._processes.values():
            try:
                process.wait(max(0.0, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            if process.stdout is not None:
                process.stdout.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _output(self, rank: int) -> int:
        stream = self._processes[rank].stdout
        assert stream is not None
        return stream.fileno()

    def _watch(self, rank: int) -> None:
        status = self._processes[rank].wait()
        with self._lock:
            if not self._closing and not self._reason:
                how = f"with status {status}" if status >= 0 else f"by {signal.Signals(-status).name}"
                self._reason = f"The process of card {rank} was ended {how}."
        if self._is_card and self.ranks is not None and not self._closing:
            self.ranks.abort()

    def _hear(self, rank: int, stream: int) -> None:
        """Read what a card says."""
        try:
            data = os.read(stream, 1 << 16)
        except BlockingIOError:
            return
        *lines, self._heard[rank] = (self._heard[rank] + data).split(b"\n")
        for line in lines:
            facts = json.loads(line)
            self._states[rank] = facts["state"]
            if facts["state"] == "failed":
                error = error_from_kind(facts["kind"], f"Card {rank}: {facts['message']}")
                self._failed.setdefault(rank, error)
            elif facts["state"] == "ready":
                self.weight_bytes += facts["weight_bytes"]
