"""Messages between an `EngineClient` and the engine, the same in both homes.

A client gives every command a new id; each event carries the id of the command that it answers. In this process they
are handed over as objects, to and from a child process as msgpack frames (`frames.py`). `EngineCore.post` takes
commands from any thread; events leave through the `emit` callable the core was made with, on the core's own thread.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import get_args

from inglenook.engine.errors import InvalidRequestError
from inglenook.engine.request import Event, LoadOptions, Purpose, Request


@dataclass(frozen=True, slots=True)
class LoadModel:
    """Load the GGUF file or safetensors folder at `path` into `slot`, in place of what is there."""

    id: int
    slot: str
    path: str
    options: LoadOptions


@dataclass(frozen=True, slots=True)
class UnloadModel:
    """Empty a slot; requests open in it end with finish_reason "cancelled". Answered by `Unloaded`."""

    id: int
    slot: str


@dataclass(frozen=True, slots=True)
class Submit:
    """Answer a request."""

    id: int
    request: Request

    @property
    def slot(self) -> str:
        """The slot whose model is asked."""
        return self.request.slot


@dataclass(frozen=True, slots=True)
class EmbedTexts:
    """Turn texts into vectors with the sentence encoder in `slot`. Answered by `Embedded`.

    `purpose` says what they are, so that the encoder's own prefix is put before each; "plain" puts none.
    Works in steps of about 50 ms, after requests for text: at least one step a second.
    """

    id: int
    slot: str
    texts: tuple[str, ...]
    purpose: Purpose = "plain"

    def __post_init__(self) -> None:
        if self.purpose not in get_args(Purpose):
            raise InvalidRequestError(f"purpose must be plain, query or document, got {self.purpose!r}.")


@dataclass(frozen=True, slots=True)
class Cancel:
    """End the request or load with id `target`; has no answer of its own, and none is needed if it has ended."""

    id: int
    target: int


@dataclass(frozen=True, slots=True)
class Forget:
    """Cancel an owner's requests and drop its text from every prefix cache. Answered by `Forgotten`."""

    id: int
    owner: str

    def __post_init__(self) -> None:
        if not self.owner:
            raise InvalidRequestError("owner must name whose text to forget, got ''.")


@dataclass(frozen=True, slots=True)
class GetStats:
    """Answered by one `Stats`."""

    id: int


@dataclass(frozen=True, slots=True)
class Shutdown:
    """Cancel everything, free everything and stop."""

    id: int


@dataclass(frozen=True, slots=True)
class Stats:
    """A snapshot of the engine: flat names to numbers, and each slot's `Loaded` facts by the slots' names."""

    values: dict[str, float]
    slots: dict[str, str]


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """Sent by the child every second with id 0; `progress` counts steps and load pieces, so a hang shows."""

    progress: int


@dataclass(frozen=True, slots=True)
class Notice:
    """Sent with id 0: something changed in a slot that people should know, with the context that is left."""

    slot: str
    sentence: str
    context_length: int


Command = LoadModel | UnloadModel | Submit | EmbedTexts | Cancel | Forget | GetStats | Shutdown
Answer = Event | Stats | Heartbeat | Notice
Emit = Callable[[int, Answer], None]
