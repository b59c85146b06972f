"""`EngineCore`: the one thread that owns every loaded model and all state of running requests.

Commands arrive through `post` from any thread and are taken up between steps; events leave through `emit` on the
core's thread (load progress on the loader's). Two kinds of work run beside it, so that steps go on meanwhile, and
report back through the same inbox: loading a model (one thread a load) and encoding prompts (one thread, in the order
of arrival). A failing request fails alone; a failing step fails the requests of its model.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

from inglenook.engine.endings import cancelled, fail, finished_before_start
from inglenook.engine.errors import InvalidRequestError, NotEnoughMemoryError, NotLoadedError
from inglenook.engine.homes.messages import (
    Cancel,
    Command,
    EmbedTexts,
    Emit,
    Forget,
    GetStats,
    LoadModel,
    Shutdown,
    Stats,
    Submit,
    UnloadModel,
)
from inglenook.engine.loaded_encoder import EmbeddingJob, LoadedEncoder, is_encoder, load_encoder
from inglenook.engine.loaded_model import LoadCancelledError, LoadedModel, load_model
from inglenook.engine.memory_promises import MemoryPromises
from inglenook.engine.prompt import Prompt, make_prompt
from inglenook.engine.request import Failed, Finished, Forgotten, LoadProgress, Unloaded
from inglenook.engine.slot import Slot

_IDLE_WAIT_S = 0.5
_LONGEST_EMBEDDING_PAUSE_S = 1.0
MAX_VECTOR_BYTES = 32 * 2**20


@dataclass(frozen=True, slots=True)
class _LoadEnded:
    """A loader thread's report: the model, or why there is none."""

    id: int
    command: LoadModel
    result: LoadedModel | LoadedEncoder | BaseException


@dataclass(frozen=True, slots=True)
class _Encoded:
    """The tokenizing thread's report: a prompt or a job, and the model or encoder it is for."""

    id: int
    command: Submit | EmbedTexts
    submitted: float
    model: LoadedModel | LoadedEncoder
    result: Prompt | EmbeddingJob | BaseException


class EngineCore:
    """Runs requests on loaded models. `post` may be called from any thread; all else happens on its own."""

    def __init__(self, emit: Emit) -> None:
        self.progress = 0  # steps and load pieces so far; a heartbeat carries it, so a hang shows
        self.on_exhausted: Callable[[], None] | None = None  # memory ran out, and nothing is left to give up
        self._emit = emit
        self._inbox: queue.SimpleQueue[Command | _LoadEnded | _Encoded] = queue.SimpleQueue()
        self._slots: dict[str, Slot] = {}
        self._promises = MemoryPromises()
        self._encoding: dict[int, Submit | EmbedTexts] = {}  # being tokenized, and not cancelled
        self._tokenizing = ThreadPoolExecutor(max_workers=1, thread_name_prefix="tokenizing")
        self._last_embedding = 0.0
        self._loaders: list[threading.Thread] = []
        self._stopping = False
        self._handlers: dict[type, Callable[..., None]] = {
            LoadModel: self._load,
            UnloadModel: self._unload,
            Submit: self._submit,
            EmbedTexts: self._submit,
            Cancel: self._cancel,
            Forget: self._forget,
            GetStats: self._stats,
            Shutdown: self._stop,
            _LoadEnded: self._load_ended,
            _Encoded: self._encoded,
        }
        self._thread = threading.Thread(target=self._run, name="engine", daemon=True)
        self._thread.start()

    def post(self, command: Command) -> None:
        """Hand a command over; never blocks. What makes the step in flight pointless ends it."""
        self._inbox.put(command)
        for slot in tuple(self._slots.values()):
            if isinstance(command, Cancel):
                slot.interrupt(command.target)
            elif isinstance(command, Shutdown) or (
                isinstance(command, LoadModel | UnloadModel) and command.slot == slot.name
            ):
                slot.interrupt()

    def close(self, timeout_s: float = 10) -> None:
        """Cancel everything, free everything and wait for the thread to end. Closing twice is fine."""
        self.post(Shutdown(0))
        if threading.current_thread() is not self._thread:
            self._thread.join(timeout_s)

    def _run(self) -> None:
        while not self._stopping:
            open_slots = [slot for slot in self._slots.values() if slot.completions or slot.jobs]
            self._take_commands(wait=not open_slots)
            if self._stopping:
                break
            chatting = [slot for slot in open_slots if slot.completions]
            for slot in chatting:
                try:
                    slot.step()
                except Exception as error:  # noqa: BLE001 - whatever it is, the engine goes on
                    if isinstance(error, NotEnoughMemoryError) and self.on_exhausted is not None:
                        self.on_exhausted()  # ends the process, and with it all that is open
                    slot.fail_all(error)
                self.progress += 1
            self._embed(open_slots, chatting=bool(chatting))
        self._shut_down()

    def _embed(self, slots: list[Slot], *, chatting: bool) -> None:
        """Take a step of the first embedding job: when nobody waits for text, or after a long pause."""
        slot = next((slot for slot in slots if slot.jobs), None)
        if slot is None or (
            chatting and time.monotonic() < self._last_embedding + _LONGEST_EMBEDDING_PAUSE_S
        ):
            return
        slot.embed_step()
        self.progress += 1
        self._last_embedding = time.monotonic()

    def _take_commands(self, *, wait: bool) -> None:
        """Handle everything in the inbox; with `wait`, block until there is something or a while has passed."""
        while not self._stopping:
            try:
                command = self._inbox.get(block=wait, timeout=_IDLE_WAIT_S if wait else None)
            except queue.Empty:
                return
            wait = False
            try:
                self._handlers[type(command)](command)
            except Exception as error:  # noqa: BLE001 - answered; one command never takes the engine down
                fail(self._emit, command.id, error)

    def _load(self, command: LoadModel) -> None:
        slot = self._slots.setdefault(command.slot, Slot(command.slot, self._emit))
        if slot.load_id is not None:
            self._after_load(slot, command)
            return
        self._empty(slot)
        slot.load_id = command.id
        slot.load_cancelled = threading.Event()
        self._start_load(command)

    def _start_load(self, command: LoadModel) -> None:
        stop = self._slots[command.slot].load_cancelled

        def progress(event: LoadProgress) -> None:
            if stop.is_set():
                raise LoadCancelledError
            self.progress += 1
            self._emit(command.id, event)

        def work() -> None:
            result: LoadedModel | LoadedEncoder | BaseException
            try:
                path = Path(command.path)
                if is_encoder(path):
                    result = load_encoder(path, command.slot, command.options, progress, self._promises)
                else:
                    result = load_model(path, command.slot, command.options, progress, self._promises)
            except BaseException as error:  # noqa: BLE001 - reported, whatever it is; the engine lives on
                result = error
            self._inbox.put(_LoadEnded(command.id, command, result))

        loader = threading.Thread(target=work, name="loader", daemon=True)
        self._loaders = [*(t for t in self._loaders if t.is_alive()), loader]
        loader.start()

    def _after_load(self, slot: Slot, command: LoadModel | UnloadModel) -> None:
        """Cancel the load that runs in a slot, and do `command` once it has ended and its memory is free."""
        slot.load_cancelled.set()
        slot.after_load.append(command)

    def _load_ended(self, ended: _LoadEnded) -> None:
        slot, result = self._slots[ended.command.slot], ended.result
        if isinstance(result, NotEnoughMemoryError) and not slot.load_cancelled.is_set():
            others = [other.model for other in self._slots.values() if other.model is not None]
            if sum(model.give_up_spare() for model in others):
                self._start_load(ended.command)
                return
        slot.load_id = None
        if isinstance(result, LoadedModel | LoadedEncoder) and not slot.load_cancelled.is_set():
            if isinstance(result, LoadedModel):
                slot.model = result
            else:
                slot.encoder = result
            self._emit(ended.id, result.facts)
        else:
            self._report_failed_load(ended)
        waiting, slot.after_load = slot.after_load, []
        for command in waiting:
            self._handlers[type(command)](command)
        if slot.load_id is None:
            pending, slot.pending = slot.pending, []
            for submit in pending:
                self._submit(submit)

    def _report_failed_load(self, ended: _LoadEnded) -> None:
        result = ended.result
        self._promises.drop(ended.command.slot)
        if isinstance(result, LoadedModel | LoadedEncoder):
            result.close()
            self._emit(ended.id, cancelled("Loading"))
        elif isinstance(result, LoadCancelledError):
            self._emit(ended.id, cancelled("Loading"))
        else:
            fail(self._emit, ended.id, result)

    def _unload(self, command: UnloadModel) -> None:
        slot = self._slots.get(command.slot)
        if slot is not None and slot.load_id is not None:
            self._after_load(slot, command)
            return
        if slot is not None:
            self._empty(slot)
        self._emit(command.id, Unloaded(command.slot))

    def _empty(self, slot: Slot) -> None:
        slot.empty()
        self._promises.drop(slot.name)

    def _submit(self, command: Submit | EmbedTexts) -> None:
        slot = self._slots.get(command.slot)
        if slot is not None and slot.load_id is not None:
            slot.pending.append(command)
            return
        wanted = "sentence encoder" if isinstance(command, EmbedTexts) else "model"
        model = None if slot is None else slot.encoder if isinstance(command, EmbedTexts) else slot.model
        if model is None:
            fail(
                self._emit,
                command.id,
                NotLoadedError(f"No {wanted} is loaded in {command.slot!r}. Load one first."),
            )
            return
        submitted = time.perf_counter()
        self._encoding[command.id] = command

        def work() -> None:
            result: Prompt | EmbeddingJob | BaseException
            try:
                result = _encode(model, command)
            except BaseException as error:  # noqa: BLE001 - tokenizers panics are no Exceptions; reported
                result = error
            self._inbox.put(_Encoded(command.id, command, submitted, model, result))

        self._tokenizing.submit(work)

    def _encoded(self, encoded: _Encoded) -> None:
        command, result = encoded.command, encoded.result
        if self._encoding.pop(command.id, None) is None:
            return  # cancelled meanwhile, and answered
        slot = self._slots[command.slot]
        if encoded.model not in (slot.model, slot.encoder):
            self._submit(command)  # the slot holds another model by now
        elif isinstance(result, BaseException):
            fail(self._emit, command.id, result)
        elif isinstance(result, EmbeddingJob):
            slot.jobs[command.id] = result
        else:
            assert isinstance(command, Submit)
            slot.add(command.id, command.request, result, encoded.submitted)

    def _cancel(self, command: Cancel) -> None:
        target = command.target
        waiting = self._encoding.pop(target, None)
        for slot in self._slots.values():
            for pending in [p for p in slot.pending if p.id == target]:
                slot.pending.remove(pending)
                waiting = pending
            for later in [c for c in slot.after_load if c.id == target and isinstance(c, LoadModel)]:
                slot.after_load.remove(later)
                self._emit(target, cancelled("Loading"))
            if slot.load_id == target:
                slot.load_cancelled.set()
            elif target in slot.completions:
                slot.cancel(target)
            elif slot.jobs.pop(target, None) is not None:
                self._emit(target, cancelled("Embedding"))
        if waiting is not None:
            self._emit(target, _cancelled_before_start(waiting))

    def _forget(self, command: Forget) -> None:
        for id_, waiting in [
            *self._encoding.items(),
            *((p.id, p) for s in self._slots.values() for p in s.pending),
        ]:
            if isinstance(waiting, Submit) and waiting.request.owner == command.owner:
                self._cancel(Cancel(0, id_))
        counts = [slot.forget(command.owner) for slot in self._slots.values()]
        self._emit(command.id, Forgotten(sum(c[0] for c in counts), sum(c[1] for c in counts)))

    def _stats(self, command: GetStats) -> None:
        values = {f"{name}.{key}": v for name, slot in self._slots.items() for key, v in slot.stats().items()}
        held = {name: slot.model or slot.encoder for name, slot in self._slots.items()}
        loaded = {name: model.facts.name for name, model in held.items() if model is not None}
        self._emit(command.id, Stats(values, loaded))

    def _stop(self, command: Shutdown) -> None:
        self._stopping = True

    def _shut_down(self) -> None:
        for slot in self._slots.values():
            slot.load_cancelled.set()
        for loader in self._loaders:
            loader.join(timeout=5)
        self._tokenizing.shutdown(wait=True, cancel_futures=True)
        for slot in self._slots.values():
            self._encoding.update((command.id, command) for command in slot.pending)
            slot.empty()
            for later in slot.after_load:
                is_load = isinstance(later, LoadModel)
                self._emit(later.id, cancelled("Loading") if is_load else Unloaded(later.slot))
        for command in self._encoding.values():
            self._emit(command.id, _cancelled_before_start(command))
        while not self._inbox.empty():
            late = self._inbox.get_nowait()
            if isinstance(late, _LoadEnded):
                self._report_failed_load(late)


def _encode(model: LoadedModel | LoadedEncoder, command: Submit | EmbedTexts) -> Prompt | EmbeddingJob:
    """Turn a request's text into token ids (on the tokenizing thread)."""
    if isinstance(command, EmbedTexts):
        assert isinstance(model, LoadedEncoder)
        size = len(command.texts) * model.encoder.spec.hidden_size * 4
        if size > MAX_VECTOR_BYTES:
            raise InvalidRequestError(
                f"{len(command.texts):,} texts make {size:,} bytes of vectors; at most {MAX_VECTOR_BYTES:,} are made "
                "at once. Send fewer texts at a time."
            )
        return EmbeddingJob(model, *model.tokenize(command.texts, command.purpose))
    assert isinstance(model, LoadedModel)
    request = command.request
    adapter = model.adapters.get(request.adapter) if request.adapter else None
    return replace(make_prompt(request, model.tokenizer, model.spec.context_length), adapter=adapter)


def _cancelled_before_start(command: Submit | EmbedTexts) -> Failed | Finished:
    return cancelled("Embedding") if isinstance(command, EmbedTexts) else finished_before_start()
