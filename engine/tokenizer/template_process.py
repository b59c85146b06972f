"""`TemplateProcess`: the parent's side of the template worker.

The worker is started by the first render, or ahead of it by `start`, and kept for the next ones. A render that goes
over its time costs the worker: it is killed, the render fails, and the next one gets a fresh worker. A worker that
died in between is replaced without a word. No orphan stays: the worker ends when its input does, which also happens
when this process is killed, and the kernel bounds its processor time in the middle of a render. (A death signal tied
to the parent is no use here: Linux sends it when the thread that started the worker ends.)

May be called from any thread; renders wait for each other.
"""

from __future__ import annotations

import contextlib
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from types import TracebackType

import msgspec

from inglenook.engine.errors import TEMPLATE_ADVICE, TemplateError
from inglenook.engine.tokenizer.template_worker import LENGTH, READY, Rendered, RenderRequest, read_frame

RENDER_SECONDS = 2.0
START_SECONDS = 30.0
MAX_FRAME_BYTES = 256 << 20


class TemplateProcess:
    """A worker that renders chat templates, started when needed."""

    def __init__(self, *, render_seconds: float = RENDER_SECONDS) -> None:
        self._render_seconds = render_seconds
        self._lock = threading.Lock()
        self._worker: subprocess.Popen[bytes] | None = None
        self._is_ready = False

    @property
    def pid(self) -> int | None:
        """The worker's process id, or None when there is no worker."""
        return self._worker.pid if self._worker else None

    def start(self) -> None:
        """Start the worker without waiting for it."""
        with self._lock:
            self._start()

    def render(
        self,
        template: str,
        chats: list[list[dict[str, str]]],
        variables: Mapping[str, str],
        *,
        max_characters: int,
    ) -> list[Rendered]:
        """Render `template` for each list of messages.

        Raises:
            TemplateError: over the budget of time or memory, or the worker cannot be started.
        """
        request = RenderRequest(template, chats, dict(variables), time.time(), max_characters)
        frame = msgspec.msgpack.encode(request)
        with self._lock:
            self._start()
            self._wait_until_ready()
            answer = self._exchange(frame, self._render_seconds * len(chats))
        try:
            rendered = msgspec.msgpack.decode(answer, type=list[Rendered])
        except msgspec.MsgspecError as error:
            raise TemplateError("The process that renders chat templates answered nonsense.") from error
        if len(rendered) != len(chats):
            raise TemplateError("The process that renders chat templates answered nonsense.")
        return rendered

    def close(self) -> None:
        """End the worker. Closing twice is fine."""
        with self._lock:
            self._stop()

    def __enter__(self) -> TemplateProcess:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _start(self) -> None:
        if self._worker is not None and self._worker.poll() is None:
            return
        self._stop()
        try:
            self._worker = subprocess.Popen(
                [sys.executable, "-I", "-m", "inglenook.engine.tokenizer.template_worker"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
            )
        except OSError as error:
            raise TemplateError(f"The process that renders chat templates did not start: {error}.") from error

    def _wait_until_ready(self) -> None:
        worker = self._worker
        assert worker is not None
        assert worker.stdout is not None
        if not self._is_ready:
            with self._deadline(worker, START_SECONDS):
                self._is_ready = worker.stdout.read(len(READY)) == READY
        if not self._is_ready:
            self._stop()
            raise TemplateError("The process that renders chat templates did not start.")

    def _exchange(self, frame: bytes, seconds: float) -> bytes:
        worker = self._worker
        assert worker is not None
        assert worker.stdin is not None
        assert worker.stdout is not None
        answer = None
        with self._deadline(worker, seconds), contextlib.suppress(BrokenPipeError):
            worker.stdin.write(LENGTH.pack(len(frame)) + frame)
            worker.stdin.flush()
            answer = read_frame(worker.stdout, MAX_FRAME_BYTES)
        if answer is None:
            self._stop()
            raise TemplateError(
                f"This model's chat template is not usable: it goes over its budget of {seconds:g} seconds and "
                f"512 MB. {TEMPLATE_ADVICE}"
            )
        return answer

    @contextlib.contextmanager
    def _deadline(self, worker: subprocess.Popen[bytes], seconds: float) -> Iterator[None]:
        """Kill the worker when the block takes longer; drop it when the block fails half-way."""
        expired = threading.Event()

        def expire() -> None:
            expired.set()
            worker.kill()

        timer = threading.Timer(seconds, expire)
        timer.daemon = True
        timer.start()
        try:
            yield
        except BaseException:
            self._stop()
            raise
        finally:
            timer.cancel()
            timer.join()
            if expired.is_set():
                worker.wait()

    def _stop(self) -> None:
        worker, self._worker, self._is_ready = self._worker, None, False
        if worker is None:
            return
        worker.kill()
        for stream in (worker.stdin, worker.stdout):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()
        worker.wait()
