"""What travels between a program and its parser process: length-prefixed msgpack over a socket pair, never pickle.

A frame is four bytes of length, big-endian, and a message. A document's open descriptor travels beside the first byte
of its request (SCM_RIGHTS, so POSIX; the counterpart on Windows is DuplicateHandle). The program sends `Setup` once,
then one job at a time; the process answers `Ready` once, then any number of `Progress` and `PageDone`, and exactly one
of `ParseDone`, `PictureDone` and `Failed` for each job.
"""

from __future__ import annotations

import socket
import struct
import time

import msgspec

from inglenook.storage.parsing.document import Chunk, DocumentKind, PagePicture, ParsedPage, ParsingLimits
from inglenook.storage.parsing.errors import ParserStoppedError

MAX_FRAME_BYTES = 96 * 1024 * 1024

_LENGTH = struct.Struct(">I")


class Setup(msgspec.Struct, frozen=True, tag="setup", kw_only=True):
    """The limits of the process, and how many tokens the embedder reads; its tokenizer file is attached if any."""

    limits: ParsingLimits
    cpu_s: int
    max_tokens: int
    has_tokenizer: bool


class ParseJob(msgspec.Struct, frozen=True, tag="parse", kw_only=True):
    """Parse the attached document. `title` is what its chunks' context begins with.

    `suffix` is of the file's name (".md"), which tells apart what is text all the same. `encoding` is the user's choice.
    """

    title: str
    suffix: str
    password: str | None
    encoding: str | None = None


class RenderJob(msgspec.Struct, frozen=True, tag="render", kw_only=True):
    """Draw a page of the attached document; `start` and `end` are the passage to give rectangles of."""

    page_index: int
    scale: float
    start: int
    end: int
    password: str | None
    sha256: str | None


class Ready(msgspec.Struct, frozen=True, tag="ready", kw_only=True):
    """The process is restricted and waits for jobs."""

    in_force: tuple[str, ...]
    missing: tuple[str, ...]


class Progress(msgspec.Struct, frozen=True, tag="progress", kw_only=True):
    """So many pages of so many are done."""

    done: int
    total: int


class PageDone(msgspec.Struct, frozen=True, tag="page", kw_only=True):
    """A page and its chunks."""

    page: ParsedPage
    chunks: tuple[Chunk, ...]


class ParseDone(msgspec.Struct, frozen=True, tag="parsed", kw_only=True):
    """The document is read; all its pages were sent before."""

    kind: DocumentKind
    sha256: str
    size_bytes: int
    num_pages: int
    title: str | None
    encoding: str | None
    is_encoding_guessed: bool
    notes: tuple[str, ...]
    cpu_s: float


class PictureDone(msgspec.Struct, frozen=True, tag="picture", kw_only=True):
    """The picture that was asked for."""

    picture: PagePicture
    cpu_s: float


class Failed(msgspec.Struct, frozen=True, tag="failed", kw_only=True):
    """The job ended in the error of class name `kind`. `is_unsound` asks for a fresh process."""

    kind: str
    message: str
    is_unsound: bool


Request = Setup | ParseJob | RenderJob
Answer = Ready | Progress | PageDone | ParseDone | PictureDone | Failed

_encoder = msgspec.msgpack.Encoder()
_request_decoder = msgspec.msgpack.Decoder(Request)
_answer_decoder = msgspec.msgpack.Decoder(Answer)


def open_pair() -> tuple[socket.socket, socket.socket]:
    """Make two connected sockets without an address, that no other process can reach."""
    return socket.socketpair()


class AnswerReader:
    """The program's side: sends requests and reads answers, each wait with a timeout."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._buffer = bytearray()

    def send(self, request: Request, descriptor: int | None, timeout_s: float) -> None:
        """Send a request, with an open file attached.

        Raises:
            OSError: the process is gone or does not read.
        """
        self._connection.settimeout(timeout_s)
        frame = _frame(request)
        if descriptor is None:
            self._connection.sendall(frame)
        else:
            sent = socket.send_fds(self._connection, [frame], [descriptor])
            self._connection.sendall(memoryview(frame)[sent:])

    def is_open(self) -> bool:
        """Say whether the process still has its end."""
        self._connection.setblocking(False)
        try:
            return self._connection.recv(1, socket.MSG_PEEK) != b""
        except BlockingIOError:
            return True
        except OSError:
            return False

    def receive(self, timeout_s: float) -> Answer | None:
        """Give the next answer; None if it has not arrived whole within the timeout.

        Raises:
            EOFError: the process closed its end or is gone.
            ParserStoppedError: what it sent is no answer.
        """
        deadline = time.monotonic() + timeout_s
        while True:
            answer = self._take()
            if answer is not None:
                return answer
            remaining = deadline - time.monotonic()
            if remaining <= 0:
                return None
            self._connection.settimeout(remaining)
            try:
                data = self._connection.recv(1 << 20)
            except TimeoutError:
                return None
            except OSError as error:
                raise EOFError from error
            if not data:
                raise EOFError
            self._buffer += data

    def _take(self) -> Answer | None:
        if len(self._buffer) < _LENGTH.size:
            return None
        (size,) = _LENGTH.unpack_from(self._buffer)
        if size > MAX_FRAME_BYTES:
            raise ParserStoppedError(
                f"The parser sent {size:,} bytes at once; the limit is {MAX_FRAME_BYTES:,}."
            )
        end = _LENGTH.size + size
        if len(self._buffer) < end:
            return None
        body = bytes(memoryview(self._buffer)[_LENGTH.size : end])
        del self._buffer[:end]
        try:
            return _answer_decoder.decode(body)
        except (msgspec.DecodeError, ValueError) as error:
            raise ParserStoppedError("The parser sent an answer that cannot be read. Try again.") from error


def send_answer(connection: socket.socket, answer: Answer) -> None:
    """Send an answer from the parser process; waits until it is taken."""
    connection.sendall(_frame(answer))


def receive_request(connection: socket.socket) -> tuple[Request, int | None]:
    """Wait for a request in the parser process; give it and the descriptor that came with it.

    Raises:
        EOFError: the program closed its end or is gone.
    """
    head, descriptors, _, _ = socket.recv_fds(connection, _LENGTH.size, 1)
    head += _receive_exactly(connection, _LENGTH.size - len(head)) if head else b""
    if not head:
        raise EOFError
    body = _receive_exactly(connection, _LENGTH.unpack(head)[0])
    return _request_decoder.decode(body), descriptors[0] if descriptors else None


def _frame(message: Request | Answer) -> bytes:
    body = _encoder.encode(message)
    return _LENGTH.pack(len(body)) + body


def _receive_exactly(connection: socket.socket, size: int) -> bytes:
    data = bytearray()
    while len(data) < size:
        piece = connection.recv(min(1 << 20, size - len(data)))
        if not piece:
            raise EOFError
        data += piece
    return bytes(data)
