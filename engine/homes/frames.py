"""Frames: messages between a client and its engine process, as bytes.

A frame is a 4-byte big-endian length and a msgpack array [class name, id, fields]. Each side names the classes that
it accepts; everything else, a wrong type, a value out of range or a length above the cap is a `FrameError`, after
which the stream cannot be trusted and the connection ends. The reader keeps no more than what has arrived: a header
that announces a gigabyte allocates nothing. No input or output happens here.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Generic, TypeVar, get_args

import msgspec

from inglenook.engine.errors import EngineError
from inglenook.engine.homes.messages import Answer, Command

MAX_FRAME_BYTES = 64 * 2**20

_HEADER = struct.Struct(">I")
_ENVELOPE = msgspec.msgpack.Decoder(tuple[str, int, msgspec.Raw])
_ENCODER = msgspec.msgpack.Encoder()

M = TypeVar("M")


class FrameError(Exception):
    """Bytes that are no frame, or a message that cannot become one; the connection has to end."""


class FrameReader(Generic[M]):
    """Turn a stream of bytes, cut anywhere, into (id, message) pairs; make one with `command_reader` or so."""

    def __init__(self, classes: tuple[type[M], ...]) -> None:
        self._decoders = {cls.__name__: msgspec.msgpack.Decoder(cls) for cls in classes}
        self._buffer = bytearray()

    def feed(self, data: bytes) -> Iterator[tuple[int, M]]:
        """Take bytes and yield what they complete; must be iterated to its end.

        Raises:
            FrameError: after the messages before the bad frame have been yielded.
        """
        buffer, start = self._buffer, 0
        buffer += data
        while len(buffer) - start >= _HEADER.size:
            (length,) = _HEADER.unpack_from(buffer, start)
            if length > MAX_FRAME_BYTES:
                raise FrameError(f"a frame of {length} bytes, at most {MAX_FRAME_BYTES} are allowed")
            end = start + _HEADER.size + length
            if len(buffer) < end:
                break
            yield self._decode(bytes(memoryview(buffer)[start + _HEADER.size : end]))
            start = end
        del buffer[:start]

    def finish(self) -> None:
        """Say that the stream has ended.

        Raises:
            FrameError: it ended inside a frame.
        """
        if self._buffer:
            raise FrameError(f"the connection ended {len(self._buffer)} bytes into a frame")

    def _decode(self, body: bytes) -> tuple[int, M]:
        try:
            name, id_, fields = _ENVELOPE.decode(body)
            decoder = self._decoders.get(name)
            if decoder is None:
                raise FrameError(f"a message of unknown kind {name[:40]!r}")
            return id_, decoder.decode(fields)
        except (msgspec.MsgspecError, EngineError, UnicodeDecodeError, RecursionError) as error:
            raise FrameError(f"a malformed message ({error})") from error


def command_reader() -> FrameReader[Command]:
    """Make the reader of the engine's side."""
    return FrameReader(get_args(Command))


def answer_reader() -> FrameReader[Answer]:
    """Make the reader of the client's side."""
    return FrameReader(get_args(Answer))


def encode(id_: int, message: Command | Answer) -> bytes:
    """Make a frame.

    Raises:
        FrameError: a text is not valid Unicode, a value has no msgpack form, or the frame is over the cap.
    """
    try:
        body = _ENCODER.encode((type(message).__name__, id_, message))
    except UnicodeEncodeError as error:
        raise FrameError("a text holds half of a surrogate pair, which is no character") from error
    except (TypeError, OverflowError, msgspec.MsgspecError) as error:
        raise FrameError(f"a value cannot be sent ({error})") from error
    if len(body) > MAX_FRAME_BYTES:
        raise FrameError(f"it takes {len(body)} bytes, at most {MAX_FRAME_BYTES} are allowed")
    return _HEADER.pack(len(body)) + body


def encode_command(command: Command) -> bytes:
    """Make a command's frame and prove that the engine will accept it, so that a bad one fails here and alone.

    Raises:
        FrameError: as `encode`, or a field has the wrong type.
    """
    frame = encode(command.id, command)
    list(command_reader().feed(frame))
    return frame
