"""`EngineClient`: the way into the engine. One API over two homes: this process, or a child process.

The client numbers commands, matches answers to `Handle`s, and remembers what was loaded into which slot. When an
engine process dies, every open handle fails with the reason and keeps its text; the next request or load starts a
fresh process, loads the slots again and goes on. An idle engine may be put to sleep in the same way: its models are
unloaded, and the next request loads them again. Importing this module does not import torch.

Any thread may call any method; none blocks but `stats` and `close`.
"""

from __future__ import annotations

import functools
import itertools
import logging
import os
import threading
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Any, Self

from inglenook.engine.errors import EngineStoppedError
from inglenook.engine.handle import Handle, Reply
from inglenook.engine.homes.child_home import ChildHome
from inglenook.engine.homes.frames import FrameError, encode_command
from inglenook.engine.homes.home import Home, InProcessHome, MakeHome
from inglenook.engine.homes.messages import (
    Answer,
    Cancel,
    Command,
    EmbedTexts,
    Forget,
    GetStats,
    Heartbeat,
    LoadModel,
    Notice,
    Stats,
    Submit,
    UnloadModel,
)
from inglenook.engine.homes.process import MakeCore, engine_core
from inglenook.engine.homes.restarts import Restarts
from inglenook.engine.idle_timer import IdleTimer
from inglenook.engine.request import (
    TERMINAL_EVENTS,
    Embedded,
    Event,
    Failed,
    Forgotten,
    Loaded,
    LoadOptions,
    Purpose,
    Request,
    Unloaded,
)
from inglenook.engine.slot_account import SlotAccount

logger = logging.getLogger(__name__)

_CLOSE_S = 10.0
_AFTERWARDS = " What was written so far is kept; ask again to go on."

OnEvent = Callable[[Event], None]


@dataclass(frozen=True, slots=True)
class _Open:
    """A command without its last answer; `last` is one held back until the home has ended."""

    command: Command
    home: Home
    handle: Handle[Any] | None  # of any result; None: the client's own, to load a slot again
    last: Event | Stats | None = None


class EngineClient:
    """Load models, submit requests, read events. Close it, or use it as a context manager.

    `on_event` of the methods is called with each event as it comes, on the engine's reading thread (or, when a
    command cannot be sent at all, on the caller's before the method returns). It must be quick and must not block:
    a Qt bridge puts the event into its own queue there. `on_death` is told on the same thread, with the reason as a
    sentence, that the engine ended by itself, before the open handles fail with it; `on_notice`, there too, what
    people should know of a slot that changed by itself; `on_sleep`, on the timer's thread, that the models were unloaded.
    """

    def __init__(self, make_home: MakeHome) -> None:
        self._make_home = make_home
        self._lock = threading.Lock()
        self._ids = itertools.count(1)
        self._open: dict[int, _Open] = {}
        self._slots = SlotAccount()
        self._home: Home | None = None
        self._retiring: Home | None = None
        self._restarts = Restarts()
        self._idle = IdleTimer(_weakly(self._sleep))
        self._closed = False
        self.on_death: Callable[[str], None] | None = None
        self.on_notice: Callable[[Notice], None] | None = None
        self.on_sleep: Callable[[], None] | None = None
        # Homes hold only a weak reference, so that a forgotten client can be collected and its child ended.
        self._homes: list[Home] = []
        self._finalizer = weakref.finalize(self, _end_homes, self._homes)

    @classmethod
    def in_process(cls, make_core: MakeCore = engine_core) -> Self:
        """Make a client whose engine runs in this process."""
        return cls(functools.partial(InProcessHome, make_core=make_core))

    @classmethod
    def child(cls) -> Self:
        """Make a client whose engine runs in a child process, started by the first load."""
        return cls(ChildHome)

    def load(
        self,
        path: str | os.PathLike[str],
        slot: str = "chat",
        options: LoadOptions = LoadOptions(),  # noqa: B008 - frozen
        on_event: OnEvent | None = None,
    ) -> Handle[Loaded]:
        """Load the GGUF file or safetensors folder at `path` into `slot`, in place of what is there."""
        command = LoadModel(next(self._ids), slot, os.path.abspath(os.fspath(path)), options)
        return self._send(command, on_event)

    def unload(self, slot: str = "chat", on_event: OnEvent | None = None) -> Handle[Unloaded]:
        """Empty a slot. A child process without a model ends; the answer waits for that, so memory is truly free."""
        return self._send(UnloadModel(next(self._ids), slot), on_event)

    def submit(self, request: Request, on_event: OnEvent | None = None) -> Handle[Reply]:
        """Ask for a reply. While the slot's model is still being loaded, the request waits for it."""
        return self._send(Submit(next(self._ids), request), on_event)

    def embed(
        self,
        texts: Sequence[str],
        slot: str = "embedder",
        on_event: OnEvent | None = None,
        *,
        purpose: Purpose = "plain",
    ) -> Handle[Embedded]:
        """Turn texts into vectors with the sentence encoder in `slot`.

        `purpose` says what they are, "query" or "document", so that an encoder which wants words before them gets
        those; "plain" embeds them as they are.
        """
        return self._send(EmbedTexts(next(self._ids), slot, tuple(texts), purpose), on_event)

    def forget(self, owner: str, on_event: OnEvent | None = None) -> Handle[Forgotten]:
        """Cancel the requests of an owner and drop its text from the caches of all models."""
        return self._send(Forget(next(self._ids), owner), on_event)

    def end_engine(self) -> None:
        """End a child process whatever it does, by force if need be; what is open fails, the next request starts it again."""
        with self._lock:
            if self._home is not None and self._home.ends_when_empty:
                self._retiring, self._home = self._home, None
                self._retiring.stop()

    def unload_when_idle(self, after_s: float | None) -> None:
        """Unload all models once nothing was asked for so long, None never; the next request loads them again."""
        self._idle.after_s = after_s
        with self._lock:
            self._mind_idleness()

    def vital_signs(self) -> dict[str, float]:
        """Return what is known without asking the engine, which may be stuck: also part of `stats`.

        "deaths" counts the engine's unwanted ends of late; while an engine runs, "progress" counts its steps and
        load pieces, and in a child process "progress_age_s" and "heartbeat_age_s" say how long ago it was heard of.
        """
        with self._lock:
            home, deaths = self._home, float(len(self._restarts))
        return {"deaths": deaths} | (home.facts() if home is not None else {})

    def stats(self, timeout_s: float = 5.0) -> Stats:
        """Ask the engine for its numbers and add the vital signs; never starts an engine.

        Raises:
            TimeoutError: the engine has not answered in that time.
            EngineError: the engine ended meanwhile.
        """
        handle: Handle[Stats] = self._send(GetStats(next(self._ids)))
        try:
            stats = handle.result(timeout_s)
        except TimeoutError:
            with self._lock:
                self._open.pop(handle.id, None)
            raise
        return replace(stats, values=stats.values | self.vital_signs())

    def close(self) -> None:
        """End the engine; what is open ends too, first "cancelled" or then failed. Closing twice is fine."""
        with self._lock:
            self._closed = True
            self._idle.cancel()
            homes = list(self._homes)
        for home in homes:
            home.stop()
        for home in homes:
            home.join(_CLOSE_S)
        self._finalizer.detach()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _cancel(self, target: int) -> None:
        with self._lock:
            entry = self._open.get(target)
            if entry is not None:
                cancel = Cancel(next(self._ids), target)
                entry.home.send(cancel, encode_command(cancel))

    def _send(
        self,
        command: LoadModel | UnloadModel | Submit | EmbedTexts | Forget | GetStats,
        on_event: OnEvent | None = None,
    ) -> Handle[Any]:
        """Send a command, starting an engine if need be; the handle is of what answers the command."""
        handle: Handle[Any] = Handle(command.id, self._cancel, on_event)
        try:
            frame = encode_command(command)
        except FrameError as error:
            handle.deliver(Failed("InvalidRequestError", f"This cannot be sent to the engine: {error}."))
            return handle
        with self._lock:
            if self._closed:
                raise EngineStoppedError("This engine client is closed.")
            answer: Event | Stats | None = None
            if isinstance(command, LoadModel | UnloadModel):
                self._slots.note_sent(command)
            if self._home is None and isinstance(command, UnloadModel):
                answer = Unloaded(command.slot)
            elif self._home is None and isinstance(command, GetStats):
                answer = Stats({}, {})
            elif self._home is None and isinstance(command, Forget):
                answer = Forgotten(0, 0)
            elif self._home is None and isinstance(command, Submit | EmbedTexts) and not self._slots:
                missing = f"No model is loaded in {command.slot!r}. Load one first."
                answer = self._slots.not_loaded(command.slot, missing)
            elif self._home is None:
                answer = self._start_home()
            if self._home is not None:
                if isinstance(command, Submit | EmbedTexts) and self._slots.sleeps(command.slot):
                    self._load_again(self._home, command.slot)
                self._open[command.id] = _Open(command, self._home, handle)
                self._home.send(command, frame)
                if not isinstance(command, GetStats):
                    self._mind_idleness()
        if answer is not None:
            handle.deliver(answer)
        return handle

    def _start_home(self) -> Failed | None:
        """Start an engine and load again what was loaded; return why not, if it ended too often."""
        if (refusal := self._restarts.refusal()) is not None:
            return Failed("EngineStoppedError", refusal)
        home = self._make_home(_weakly(self._on_answer), _weakly(self._on_end))
        home.start(self._retiring)
        self._home = home
        self._homes.append(home)
        for slot in list(self._slots):
            self._load_again(home, slot)
        return None

    def _load_again(self, home: Home, slot: str) -> None:
        again = self._slots.load_again(slot, next(self._ids))
        self._open[again.id] = _Open(again, home, None)
        home.send(again, encode_command(again))

    def _mind_idleness(self) -> None:
        """Let the idle timer run while nothing is open."""
        if self._closed or self._is_busy():
            self._idle.cancel()
        else:
            self._idle.restart()

    def _sleep(self) -> None:
        """Unload all models but remember them; on the timer's thread."""
        with self._lock:
            if self._closed or self._home is None or self._is_busy() or not self._slots:
                return
            logger.info("the engine was idle for %s s and unloads its models", self._idle.after_s)
            if self._home.ends_when_empty:
                self._retiring, self._home = self._home, None
                self._retiring.stop()
            else:
                for slot in self._slots.put_to_sleep():
                    unload = UnloadModel(next(self._ids), slot)
                    self._home.send(unload, encode_command(unload))
        if (on_sleep := self.on_sleep) is not None:
            on_sleep()

    def _on_answer(self, home: Home, id_: int, answer: Answer) -> None:
        if isinstance(answer, Heartbeat):
            return
        if isinstance(answer, Notice):
            if (on_notice := self.on_notice) is not None:
                on_notice(answer)
            return
        with self._lock:
            entry = self._open.get(id_)
            if entry is None:
                return
            if isinstance(answer, (*TERMINAL_EVENTS, Stats)):
                answer = self._slots.settle(entry.command, answer)
                del self._open[id_]
                if not isinstance(answer, Stats):
                    self._mind_idleness()
                if home is self._home and home.ends_when_empty and not self._slots and not self._is_busy():
                    self._home, self._retiring = None, home
                    home.stop()
                    if isinstance(answer, Unloaded):
                        self._open[id_] = replace(entry, last=answer)
                        return
        if entry.handle is not None:
            entry.handle.deliver(answer)

    def _is_busy(self) -> bool:
        return any(not isinstance(entry.command, GetStats) for entry in self._open.values())

    def _on_end(self, home: Home, reason: str | None) -> None:
        with self._lock:
            self._homes.remove(home)
            if self._home is home:
                self._home = None
            if self._retiring is home:
                self._retiring = None
            if reason is not None:
                self._restarts.note(reason)
            ended = [entry for entry in self._open.values() if entry.home is home]
            for entry in ended:
                del self._open[entry.command.id]
                # A model that was loaded before is tried again; one that was being loaded may be the cause.
                if isinstance(entry.command, LoadModel) and entry.handle is not None and reason is not None:
                    self._slots.note_death(entry.command.slot, reason)
        if reason is not None:
            logger.error("the engine ended with %d open commands", len(ended))
            if (on_death := self.on_death) is not None:
                on_death(reason)
        sentence = "The engine was closed." if reason is None else reason + _AFTERWARDS
        for entry in ended:
            if entry.handle is not None:
                entry.handle.deliver(entry.last or Failed("EngineStoppedError", sentence))


def _weakly(method: Callable[..., None]) -> Callable[..., None]:
    reference = weakref.WeakMethod(method)

    def call(*arguments: object) -> None:
        alive = reference()
        if alive is not None:
            alive(*arguments)

    return call


def _end_homes(homes: list[Home]) -> None:
    """End the engine of a client that was forgotten, or is open when the interpreter exits."""
    homes = list(homes)
    for home in homes:
        home.stop()
    if threading.current_thread() is threading.main_thread():
        for home in homes:
            home.join(_CLOSE_S)
