"""ParserClient: documents and page pictures from a limited process, which is replaced whenever it dies or is ended.

One job at a time; a second caller waits. To show pictures while documents are being read, use two clients. Calls block
and belong in a worker thread. Nothing of a document is interpreted on this side: the file is opened, handed over and closed.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Self, TypeVar

from inglenook.storage.parsing import frames
from inglenook.storage.parsing.document import (
    MIB,
    Chunk,
    PagePicture,
    ParsedDocument,
    ParsedPage,
    ParsingLimits,
)
from inglenook.storage.parsing.errors import (
    ParserStoppedError,
    ParsingCancelledError,
    ParsingError,
    ParsingTimeoutError,
    error_from_kind,
)
from inglenook.storage.parsing.opening import open_document
from inglenook.storage.parsing.parser_process import ParserProcess
from inglenook.storage.parsing.restrictions import Restrictions

ProgressCallback = Callable[[int, int], None]
"""Receives how many pages of how many are done, a few times a second, in the calling thread."""

Done = TypeVar("Done", frames.ParseDone, frames.PictureDone)

_POLL_S = 0.05
_CLOSE_TIMEOUT_S = 5.0


class ParserClient:
    """Reads documents in a process that is started on first use.

    `tokenizer` is the embedder's tokenizer.json and `max_tokens` what the embedder reads; without a tokenizer chunks
    are measured by approximation.
    """

    def __init__(
        self, *, tokenizer: Path | None = None, max_tokens: int = 256, limits: ParsingLimits | None = None
    ) -> None:
        self._tokenizer = tokenizer
        self._max_tokens = max_tokens
        self._limits = limits or ParsingLimits()
        self._job = threading.Lock()
        # Guards the process's exchange against `close` from another thread.
        self._state = threading.Lock()
        self._process: ParserProcess | None = None
        self._is_closed = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def restrictions(self) -> Restrictions:
        """What the parser process is kept from on this system; starts it if need be."""
        with self._job:
            return self._fresh_process().restrictions

    @property
    def process_id(self) -> int | None:
        """The parser process now alive, if any."""
        process = self._process
        return process.pid if process else None

    def parse(
        self,
        path: Path,
        *,
        title: str | None = None,
        password: str | None = None,
        encoding: str | None = None,
        progress: ProgressCallback = lambda done, total: None,
        cancelled: Callable[[], bool] = lambda: False,
    ) -> ParsedDocument:
        """Read a document: its pages and chunks. `title`, by default the file's name, begins the chunks' context.

        `encoding` is for a text, web page or table whose own was guessed wrongly; text_encoding.py lists some.

        Raises:
            ParsingError: one of the tree in `errors.py`; each message is for the user.
        """
        job = frames.ParseJob(
            title=_readable(path.stem) if title is None else title,
            suffix=_readable(path.suffix.lower())[:20],
            password=password,
            encoding=encoding,
        )
        pages = _PageCollector(self._limits)

        def take(answer: frames.Answer) -> None:
            if isinstance(answer, frames.PageDone):
                pages.add(answer)
            elif isinstance(answer, frames.Progress):
                progress(answer.done, answer.total)

        done = self._run(path, job, frames.ParseDone, take, cancelled)
        pages.check_count(done.num_pages)
        return ParsedDocument(
            kind=done.kind,
            sha256=done.sha256,
            size_bytes=done.size_bytes,
            pages=tuple(pages.pages),
            chunks=tuple(pages.chunks),
            title=done.title,
            encoding=done.encoding,
            is_encoding_guessed=done.is_encoding_guessed,
            notes=done.notes,
        )

    def render_page(
        self,
        path: Path,
        page_index: int,
        *,
        scale: float = 1.5,
        highlight: tuple[int, int] | None = None,
        password: str | None = None,
        sha256: str | None = None,
        cancelled: Callable[[], bool] = lambda: False,
    ) -> PagePicture:
        """Draw a page of a PDF at `scale` pixels per point, with the rectangles of a range of its text.

        With `sha256` given, a file that is no longer the one that was parsed is refused.

        Raises:
            ParsingError: one of the tree in `errors.py`; each message is for the user.
            ValueError: the scale is not between 0.05 and 20.
        """
        if not 0.05 <= scale <= 20:
            raise ValueError(f"scale must be from 0.05 to 20, got {scale}")
        start, end = highlight or (0, 0)
        job = frames.RenderJob(
            page_index=page_index, scale=scale, start=start, end=end, password=password, sha256=sha256
        )
        picture = self._run(path, job, frames.PictureDone, lambda answer: None, cancelled).picture
        if len(picture.pixels) != picture.width * picture.height * 4:
            raise ParserStoppedError("The parser sent a picture of another size than it says. Try again.")
        return picture

    def close(self) -> None:
        """End the parser process; a job in another thread fails. Twice is fine."""
        with self._state:
            self._is_closed = True
            process = self._process
        if process:
            process.end()
            # A job that was waiting sees the end and leaves; only then is what it reads from closed.
            if self._job.acquire(timeout=_CLOSE_TIMEOUT_S):
                self._discard(process)
                self._job.release()

    def _run(
        self,
        path: Path,
        job: frames.ParseJob | frames.RenderJob,
        wanted: type[Done],
        take: Callable[[frames.Answer], None],
        cancelled: Callable[[], bool],
    ) -> Done:
        while not self._job.acquire(timeout=_POLL_S):
            if cancelled():
                raise _cancelled_error()
        try:
            descriptor = open_document(path, self._limits)
            try:
                process = self._fresh_process()
                try:
                    process.start_job(job, descriptor)
                    return self._wait(process, wanted, take, cancelled)
                except EOFError:
                    raise self._stopped_error(process) from None
                except _SoundFailure as failure:
                    raise failure.error from None
                except BaseException:
                    self._discard(process)
                    raise
            finally:
                os.close(descriptor)
        finally:
            self._job.release()

    def _wait(
        self,
        process: ParserProcess,
        wanted: type[Done],
        take: Callable[[frames.Answer], None],
        cancelled: Callable[[], bool],
    ) -> Done:
        started_s = last_s = time.monotonic()
        while True:
            answer = process.receive(_POLL_S)
            now_s = time.monotonic()
            if cancelled():
                raise _cancelled_error()
            if isinstance(answer, frames.Failed):
                error = error_from_kind(answer.kind, answer.message)
                raise error if answer.is_unsound else _SoundFailure(error)
            if isinstance(answer, wanted):
                process.cpu_s = answer.cpu_s
                return answer
            if answer is not None:
                last_s = now_s
                take(answer)
            self._check_time(now_s - last_s, now_s - started_s)

    def _check_time(self, stalled_s: float, total_s: float) -> None:
        limits = self._limits
        if stalled_s > limits.stall_timeout_s:
            raise ParsingTimeoutError(
                f"One page took more than {limits.stall_timeout_s:g} seconds, so reading was ended. "
                "Print the document to a new PDF and add that."
            )
        if total_s > limits.total_timeout_s:
            raise ParsingTimeoutError(
                f"This document took more than {limits.total_timeout_s:g} seconds, so reading was ended. "
                "Split it and add the parts."
            )

    def _fresh_process(self) -> ParserProcess:
        process = self._process
        if process and process.is_fresh():
            return process
        if process:
            self._discard(process)
        started = ParserProcess(limits=self._limits, tokenizer=self._tokenizer, max_tokens=self._max_tokens)
        with self._state:
            if not self._is_closed:
                self._process = started
                return started
        started.close()
        raise _closed_error()

    def _discard(self, process: ParserProcess) -> None:
        with self._state:
            if self._process is process:
                self._process = None
        process.close()

    def _stopped_error(self, process: ParserProcess) -> ParsingError:
        if self._is_closed:
            return _closed_error()
        cause = process.death_cause()
        self._discard(process)
        return ParserStoppedError(
            f"The parser ended while reading this document ({cause}): it is damaged, or needs more than "
            f"{self._limits.memory_bytes // MIB:,} MiB of memory. Print it to a new PDF and add that."
        )


class _SoundFailure(Exception):  # noqa: N818 - carries the error out of a process that may go on
    def __init__(self, error: ParsingError) -> None:
        super().__init__(str(error))
        self.error = error


class _PageCollector:
    """Gathers pages and checks what a process that reads foreign files says about them."""

    def __init__(self, limits: ParsingLimits) -> None:
        self.pages: list[ParsedPage] = []
        self.chunks: list[Chunk] = []
        self._limits = limits
        self._num_chars = 0

    def add(self, answer: frames.PageDone) -> None:
        page = answer.page
        self._num_chars += len(page.text) + sum(
            len(chunk.text) + len(chunk.context) for chunk in answer.chunks
        )
        is_sound = (
            page.index == len(self.pages)
            and len(self.pages) < self._max_pages()
            # A chunk may repeat the end of the one before, and has a context: at most four times the text.
            and self._num_chars <= 4 * self._limits.max_text_chars
            and all(
                chunk.page_index == page.index and chunk.text == page.text[chunk.start : chunk.end]
                for chunk in answer.chunks
            )
        )
        if not is_sound:
            raise ParserStoppedError("The parser sent pages that do not fit together. Try again.")
        self.pages.append(page)
        self.chunks += answer.chunks

    def check_count(self, num_pages: int) -> None:
        if num_pages != len(self.pages):
            raise ParserStoppedError(f"The parser sent {len(self.pages)} of {num_pages} pages. Try again.")

    def _max_pages(self) -> int:
        # A text is cut into pages of some thousand characters.
        return self._limits.max_pages + self._limits.max_text_chars // 1000


def _readable(name: str) -> str:
    """Write a file's name as words; bytes of it that are no text become question marks."""
    return os.fsencode(name).decode("utf-8", "replace").replace("_", " ")


def _cancelled_error() -> ParsingCancelledError:
    return ParsingCancelledError("Reading was cancelled. Add the document again to read it.")


def _closed_error() -> ParserStoppedError:
    return ParserStoppedError("The parser was closed. Start the program again to read documents.")
