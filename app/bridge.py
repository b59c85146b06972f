"""The bridge between the engine's threads and Qt: commands go in, signals come out on the GUI thread.

`EngineClient` tells its events on a thread of its own; `event_reader.py` takes them and joins the pieces of a reply: the
first at once, then one signal per 33 ms. Everything public runs on the GUI thread and never waits, but for
`close`. Signals are emitted on the GUI thread too, so any callable may be connected.

The bridge remembers what was asked to stand in each slot. When the engine process dies it says so once, calmly, and
the next request or `restart` loads the same again; after too many deaths the client refuses for a while, which is
passed on. Never imports torch.
"""

from __future__ import annotations

import contextlib
import itertools
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QObject, Qt, Signal, Slot

from inglenook.app.event_reader import Asleep, Death, EventReader, Item
from inglenook.app.tasks import start_thread
from inglenook.engine.client import EngineClient, OnEvent
from inglenook.engine.errors import EngineStoppedError
from inglenook.engine.handle import Handle
from inglenook.engine.homes.messages import Notice
from inglenook.engine.request import (
    Embedded,
    Event,
    Failed,
    Finished,
    Loaded,
    LoadOptions,
    LoadProgress,
    Purpose,
    Request,
    TokenText,
)

logger = logging.getLogger(__name__)

CHAT, EMBEDDER = "chat", "embedder"

_THREAD_END_MS = 2000

ModelPhase = Literal["unloaded", "loading", "ready", "asleep", "stopped", "failed"]
EnginePhase = Literal["idle", "running", "restarting", "stopped", "gave_up"]


@dataclass(frozen=True, slots=True)
class ModelState:
    """What stands in a slot. `sentence` is for the user where `phase` is "failed" or "stopped".

    "loading": `stage`, `done` of `total` bytes (0: unknown). "ready": `facts` is what the engine said of it.
    "asleep": it was unloaded, since nothing was asked for a while; the next message loads it again.
    "stopped": it stood there until the engine ended; the next message loads it again.
    """

    slot: str
    phase: ModelPhase = "unloaded"
    name: str = ""
    path: str = ""
    stage: str = ""
    done: int = 0
    total: int = 0
    sentence: str = ""
    facts: Loaded | None = None


@dataclass(frozen=True, slots=True)
class EngineState:
    """How the engine is, for one calm line with one button: the button is there where `can_restart` is true.

    "idle": no process, nothing asked of it. "stopped": it ended by itself. "gave_up": it ended so often that it is
    not started for a while; the sentence says how long.
    """

    phase: EnginePhase = "idle"
    sentence: str = ""

    @property
    def can_restart(self) -> bool:
        """Whether to offer the button that calls `EngineBridge.restart`."""
        return self.phase in ("stopped", "gave_up")


class EngineBridge(QObject):
    """Talks to the engine for the window. GUI thread only; owns the client and closes it.

    Signals, all on the GUI thread:
        model_state_changed(ModelState): of one slot.
        engine_state_changed(EngineState).
        reply_text(int, str, tuple): request id, the next piece of text, the token ids that completed with it.
        reply_finished(int, Finished) or reply_failed(int, Failed): exactly one ends each request.
        embedded(int, numpy float32 [N, D]) or embedding_failed(int, Failed): exactly one ends each `embed`.

    After `cancel` no text of that request comes any more, only its one end.
    """

    model_state_changed = Signal(object)
    engine_state_changed = Signal(object)
    reply_text = Signal(int, str, tuple)
    reply_finished = Signal(int, object)
    reply_failed = Signal(int, object)
    embedded = Signal(int, object)
    embedding_failed = Signal(int, object)

    def __init__(self, client: EngineClient | None = None, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._client = client or EngineClient.child()
        self._ids = itertools.count(1)
        self._states: dict[str, ModelState] = {}
        self._engine = EngineState()
        self._options: dict[str, LoadOptions] = {}
        self._loads: dict[int, _Load] = {}
        self._open: dict[int, _Open] = {}
        self._num_deaths = 0
        self._is_closed = False
        self._reader = EventReader(self)
        self._reader.arrived.connect(self._take, Qt.ConnectionType.QueuedConnection)
        self._client.on_death = self._reader.tell_death
        self._client.on_sleep = self._reader.tell_sleep
        self._client.on_notice = self._reader.tell_notice
        start_thread(self._reader)

    @property
    def engine_state(self) -> EngineState:
        """How the engine is now."""
        return self._engine

    def model_state(self, slot: str = CHAT) -> ModelState:
        """Return what stands in a slot now."""
        return self._states.get(slot) or ModelState(slot)

    @property
    def is_replying(self) -> bool:
        """Whether a reply is being written, or waits for its model."""
        return any(not opened.is_embedding for opened in self._open.values())

    def load(
        self,
        path: Path,
        *,
        name: str = "",
        slot: str = CHAT,
        options: LoadOptions = LoadOptions(),  # noqa: B008 - frozen
    ) -> None:
        """Load a model into a slot, in place of what is there; `model_state_changed` tells how it goes."""
        self._options[slot] = options
        self._states[slot] = ModelState(slot, "unloaded", name or path.name, str(path))
        asleep = self._asleep()
        if asleep:
            self._load_anew([slot, *asleep])
        else:
            self._start_load(slot)

    def unload(self, slot: str = CHAT) -> None:
        """Empty a slot. With the last model the engine process ends, and its memory is free."""
        self._options.pop(slot, None)
        self._forget_loads(slot)
        try:
            self._client.unload(slot)
        except EngineStoppedError:
            return
        self._set_model(ModelState(slot))
        if not self._options:
            self._set_engine(EngineState())

    def restart(self) -> None:
        """Start the engine again and load what stood in its slots; for the one button."""
        slots = [s for s in self._options if self.model_state(s).phase in ("stopped", "failed")]
        if not slots or self._is_closed:
            return
        self._set_engine(EngineState("restarting", self.tr("The engine is being started again.")))
        self._load_anew(slots)

    def unload_when_idle(self, after_s: float | None) -> None:
        """Have all models unloaded once nothing was asked for so long, None never; the next request wakes them."""
        self._client.unload_when_idle(after_s)

    def wake(self) -> None:
        """Load what was unloaded because nothing was asked; fine if nothing was."""
        asleep = self._asleep()
        if asleep and not self._is_closed:
            self._load_anew(asleep)

    def submit(self, request: Request) -> int:
        """Ask for a reply and return the request's id. While the model is being loaded, the request waits for it."""
        return self._send(lambda on_event: self._client.submit(request, on_event), is_embedding=False)

    def embed(self, texts: Sequence[str], slot: str = EMBEDDER, *, purpose: Purpose = "plain") -> int:
        """Have texts turned into vectors, after requests for replies; return the request's id."""
        return self._send(
            lambda on_event: self._client.embed(texts, slot, on_event, purpose=purpose), is_embedding=True
        )

    def forget(self, owner: str) -> None:
        """Cancel an owner's requests and drop its text from the engine's caches; nothing is started for it."""
        with contextlib.suppress(EngineStoppedError):
            self._client.forget(owner)

    def cancel(self, request_id: int) -> None:
        """Ask the engine to end a request early; fine if it has ended."""
        opened = self._open.get(request_id)
        if opened is not None and not opened.is_cancelled:
            opened.is_cancelled = True
            if opened.handle is not None:
                opened.handle.cancel()

    def end_engine(self) -> None:
        """End an engine that does not answer; the next request loads its models again."""
        self._client.end_engine()
        for slot in self._options:
            state = self.model_state(slot)
            if state.phase == "ready":
                self._set_model(replace(state, phase="asleep"))

    def close(self) -> None:
        """End the engine and the thread; no signal comes any more. Waits some seconds at most; twice is fine."""
        if self._is_closed:
            return
        self._is_closed = True
        self._client.close()
        self._client.on_death = self._client.on_sleep = self._client.on_notice = None
        self._reader.end()
        if not self._reader.wait(_THREAD_END_MS):
            logger.error("the bridge thread did not end")

    def _asleep(self) -> list[str]:
        return [slot for slot in self._options if self.model_state(slot).phase == "asleep"]

    def _load_anew(self, slots: Sequence[str]) -> None:
        """Load these slots with their progress, which the client would not tell if it loaded them by itself."""
        for slot in slots:
            self._client.unload(slot)
        for slot in sorted(slots, key=lambda s: s != CHAT):
            self._start_load(slot)

    def _start_load(self, slot: str) -> None:
        self._forget_loads(slot)
        load_id = next(self._ids)
        self._loads[load_id] = _Load(slot, self._num_deaths)
        state = self.model_state(slot)
        self._set_model(ModelState(slot, "loading", state.name, state.path, self.tr("Starting")))
        try:
            self._client.load(state.path, slot, self._options[slot], partial(self._reader.put, load_id))
        except EngineStoppedError as error:
            self._reader.put(load_id, Failed("EngineStoppedError", str(error)))

    def _forget_loads(self, slot: str) -> None:
        self._loads = {load_id: load for load_id, load in self._loads.items() if load.slot != slot}

    def _send(self, send: Callable[[OnEvent], Handle[Any]], *, is_embedding: bool) -> int:
        if self._engine.can_restart:
            self.restart()
        self.wake()
        request_id = next(self._ids)
        opened = self._open[request_id] = _Open(is_embedding, self._num_deaths)
        try:
            opened.handle = send(partial(self._reader.put, request_id))
        except EngineStoppedError as error:
            self._reader.put(request_id, Failed("EngineStoppedError", str(error)))
        return request_id

    @Slot(object)
    def _take(self, arrivals: list[Item]) -> None:
        for id_, event in arrivals:
            if self._is_closed:
                return
            if isinstance(event, Death):
                self._take_death(event.reason)
            elif isinstance(event, Asleep):
                self._take_sleep()
            elif isinstance(event, Notice):
                self._take_notice(event)
            elif id_ in self._loads:
                self._take_load(id_, event)
            elif id_ in self._open:
                self._take_answer(id_, event)

    def _take_death(self, reason: str) -> None:
        self._num_deaths += 1
        for slot in self._options:
            state = self.model_state(slot)
            if state.phase == "ready":
                self._set_model(replace(state, phase="stopped", sentence=reason))
        self._set_engine(
            EngineState("stopped", self.tr("The engine stopped. {reason}").format(reason=reason))
        )

    def _take_sleep(self) -> None:
        if self._open or self._loads:
            return  # something was asked since, for which the client has loaded all again
        for slot in self._options:
            state = self.model_state(slot)
            if state.phase == "ready":
                self._set_model(replace(state, phase="asleep"))
        self._set_engine(EngineState())

    def _take_notice(self, notice: Notice) -> None:
        state = self.model_state(notice.slot)
        if state.phase == "ready" and state.facts is not None:
            facts = replace(state.facts, context_length=notice.context_length, notices=(notice.sentence,))
            self._set_model(replace(state, facts=facts))

    def _take_load(self, load_id: int, event: Event) -> None:
        load = self._loads[load_id]
        state = self.model_state(load.slot)
        if isinstance(event, LoadProgress):
            self._set_model(replace(state, stage=event.stage, done=event.done, total=event.total))
            return
        del self._loads[load_id]
        if isinstance(event, Loaded):
            self._set_model(ModelState(load.slot, "ready", state.name, state.path, facts=event))
            self._mark_running()
        elif isinstance(event, Failed):
            self._set_model(ModelState(load.slot, "failed", state.name, state.path, sentence=event.message))
            if event.kind == "EngineStoppedError" and load.num_deaths == self._num_deaths:
                self._set_engine(EngineState("gave_up", event.message))
            elif self._engine.phase == "restarting":
                self._set_engine(EngineState("stopped", event.message))

    def _take_answer(self, request_id: int, event: Event) -> None:
        opened = self._open[request_id]
        if isinstance(event, TokenText):
            if (
                opened.num_deaths == self._num_deaths
            ):  # text that was held back may come after the engine's end
                self._mark_running()
            if not opened.is_cancelled:
                self.reply_text.emit(request_id, event.text, event.token_ids)
            return
        del self._open[request_id]
        if isinstance(event, Failed):
            if event.kind == "NotLoadedError" and self._engine.phase == "gave_up":
                event = Failed("EngineStoppedError", self._engine.sentence)
            (self.embedding_failed if opened.is_embedding else self.reply_failed).emit(request_id, event)
            return
        self._mark_running()
        if isinstance(event, Finished):
            self.reply_finished.emit(request_id, event)
        elif isinstance(event, Embedded):
            self.embedded.emit(request_id, vectors_of(event))

    def _mark_running(self) -> None:
        if self._engine.phase != "running" and not self._is_closed:
            # The client may have started the engine and loaded its slots by itself.
            for slot in self._options:
                state = self.model_state(slot)
                if state.phase == "stopped" and self._engine.phase == "stopped":
                    self._set_model(replace(state, phase="ready", sentence=""))
            self._set_engine(EngineState("running"))

    def _set_model(self, state: ModelState) -> None:
        if self._states.get(state.slot) != state:
            self._states[state.slot] = state
            self.model_state_changed.emit(state)

    def _set_engine(self, state: EngineState) -> None:
        if self._engine != state:
            self._engine = state
            self.engine_state_changed.emit(state)


def vectors_of(event: Embedded) -> NDArray[np.float32]:
    """Return the vectors of an event as float32 [number of texts, dimension]."""
    return np.frombuffer(event.vectors, "<f4").reshape(-1, event.dimension).astype(np.float32)


@dataclass(frozen=True, slots=True)
class _Load:
    slot: str
    num_deaths: int  # of the engine when the load began


@dataclass(slots=True)
class _Open:
    is_embedding: bool
    num_deaths: int  # of the engine, when it was asked
    handle: Handle[Any] | None = None
    is_cancelled: bool = False
