"""The parser process: `python -I -m inglenook.storage.parsing.worker FD`, where FD is its end of a socket pair.

It imports what it needs, puts itself under restrictions, and then takes one document at a time as an open descriptor:
it knows no path and could open none. Every expected failure is answered with its class and sentence; after a failure
of its own it asks to be replaced. It logs nothing, as whatever it could log is the user's text.
"""

from __future__ import annotations

import hashlib
import os
import resource
import socket
import sys
import time
from collections.abc import Callable

from tokenizers import Tokenizer

from inglenook.storage.chunking import ChunkLimits, TokenOffsets, approximate_tokens
from inglenook.storage.parsing import frames, text_encoding
from inglenook.storage.parsing.document import MIB
from inglenook.storage.parsing.errors import (
    DocumentChangedError,
    DocumentTooLargeError,
    ParserStoppedError,
    ParsingError,
)
from inglenook.storage.parsing.opening import too_large
from inglenook.storage.parsing.reading import Reader, render
from inglenook.storage.parsing.restrictions import restrict

_PROGRESS_INTERVAL_S = 0.25
_MAX_TOKENIZER_BYTES = 64 * MIB
_READ_BYTES = 1 << 22


def main() -> int:
    """Serve jobs until the program closes its end of the socket pair."""
    connection = socket.socket(fileno=int(sys.argv[1]))
    try:
        setup, tokenizer_file = frames.receive_request(connection)
        if not isinstance(setup, frames.Setup):
            return 2
        text_encoding.load_codecs()
        restrictions = restrict(memory_bytes=setup.limits.memory_bytes, cpu_s=setup.cpu_s)
        try:
            token_offsets = _load_tokenizer(tokenizer_file) if setup.has_tokenizer else approximate_tokens
        except Exception:  # noqa: BLE001 - the library raises a bare Exception for a file it cannot use
            message = "The embedder's tokenizer cannot be used. Fetch the embedder again."
            frames.send_answer(connection, _failed(ParserStoppedError(message)))
            return 1
        frames.send_answer(
            connection, frames.Ready(in_force=restrictions.in_force, missing=restrictions.missing)
        )
        while True:
            job, document = frames.receive_request(connection)
            if document is not None:
                _serve(connection, job, document, setup, token_offsets)
    except (EOFError, BrokenPipeError, ConnectionResetError):
        return 0


def _serve(
    connection: socket.socket,
    job: frames.Request,
    document: int,
    setup: frames.Setup,
    token_offsets: TokenOffsets,
) -> None:
    try:
        with os.fdopen(document, "rb", buffering=0) as file:
            data = _read_all(file.read, setup.limits.max_file_bytes)
        answer = _do(connection, job, data, setup, token_offsets)
    except ParsingError as error:
        answer = frames.Failed(kind=type(error).__name__, message=str(error), is_unsound=False)
    except MemoryError:
        answer = _failed(
            DocumentTooLargeError(
                f"This document needs more than {setup.limits.memory_bytes // MIB:,} MiB of memory to read. "
                "Split it and add the parts."
            )
        )
    except (EOFError, BrokenPipeError, ConnectionResetError):
        raise
    except Exception as error:  # noqa: BLE001 - any other failure costs one document, never the program
        answer = _failed(
            ParsingError(
                f"This document could not be read ({type(error).__name__}). Save or export it again."
            )
        )
    frames.send_answer(connection, answer)


def _do(
    connection: socket.socket,
    job: frames.Request,
    data: bytes,
    setup: frames.Setup,
    token_offsets: TokenOffsets,
) -> frames.Answer:
    sha256 = hashlib.sha256(data).hexdigest()
    if isinstance(job, frames.RenderJob):
        if job.sha256 not in (None, sha256):
            raise DocumentChangedError(
                "This file was changed since it was added. Add it again to see its present pages."
            )
        return frames.PictureDone(picture=render(data, job, setup.limits), cpu_s=_cpu_s())
    assert isinstance(job, frames.ParseJob)
    reader = Reader(
        limits=setup.limits,
        chunk_limits=ChunkLimits(max_tokens=setup.max_tokens),
        token_offsets=token_offsets,
        on_page=_PageSender(connection),
    )
    summary = reader.read(
        data, title=job.title, suffix=job.suffix, password=job.password, encoding=job.encoding
    )
    return frames.ParseDone(
        kind=summary.kind,
        sha256=sha256,
        size_bytes=len(data),
        num_pages=summary.num_pages,
        title=summary.title,
        encoding=summary.encoding,
        is_encoding_guessed=summary.is_encoding_guessed,
        notes=summary.notes,
        cpu_s=_cpu_s(),
    )


class _PageSender:
    """Sends each page as it is done, and a few times a second how far the document is."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._last_s = 0.0

    def __call__(self, page: frames.PageDone, total: int) -> None:
        frames.send_answer(self._connection, page)
        now = time.monotonic()
        if now - self._last_s >= _PROGRESS_INTERVAL_S or page.page.index + 1 == total:
            self._last_s = now
            frames.send_answer(self._connection, frames.Progress(done=page.page.index + 1, total=total))


def _failed(error: ParsingError) -> frames.Failed:
    return frames.Failed(kind=type(error).__name__, message=str(error), is_unsound=True)


def _read_all(read: Callable[[int], bytes], limit: int) -> bytes:
    """Read a file that may grow or lie about its size."""
    pieces: list[bytes] = []
    size = 0
    while piece := read(_READ_BYTES):
        size += len(piece)
        if size > limit:
            raise too_large(size, limit)
        pieces.append(piece)
    return b"".join(pieces)


def _load_tokenizer(descriptor: int | None) -> TokenOffsets:
    assert descriptor is not None
    with os.fdopen(descriptor, "rb", buffering=0) as file:
        tokenizer = Tokenizer.from_buffer(_read_all(file.read, _MAX_TOKENIZER_BYTES))
    # A tokenizer file may cut and pad; offsets of the whole page are wanted.
    tokenizer.no_truncation()
    tokenizer.no_padding()

    def token_offsets(text: str) -> list[tuple[int, int]]:
        offsets: list[tuple[int, int]] = tokenizer.encode(text, add_special_tokens=False).offsets
        return offsets

    return token_offsets


def _cpu_s() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


if __name__ == "__main__":
    sys.exit(main())
