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
from dataclasses import dataclass
from pathlib import Path

from inglenook.engine.errors import EngineError, InvalidRequestError, NotLoadedError
from inglenook.engine.loaded_model import LoadCancelledError, LoadedModel, load_model
from inglenook.engine.messages import (
    Cancel,
    Command,
    Emit,
    GetStats,
    LoadModel,
    Shutdown,
    Stats,
    Submit,
    UnloadModel,
)
from inglenook.engine.request import Failed, LoadProgress, Request, Unloaded
from inglenook.engine.slot import Slot, fail, finished_before_start
from inglenook.engine.tokenizer.tokenizer import EncodedPrompt

_IDLE_WAIT_S = 0.5


@dataclass(frozen=True, slots=True)
class _LoadEnded:
    """A loader thread's report: the model, or why there is none."""

    id: int
    slot: str
    result: LoadedModel | BaseException


@dataclass(frozen=True, slots=True)
class _Encoded:
    """The encoder thread's report for a request, with the model it encoded for."""

    id: int
    command: Submit
    submitted: float
    model: LoadedModel
    result: EncodedPrompt | BaseException


class EngineCore:
    """Runs requests on loaded models. `post` may be called from any thread; all else happens on its own."""

    def __init__(self, emit: Emit) -> None:
        self.progress = 0  # steps and load pieces so far; a heartbeat carries it, so a hang shows
        self._emit = emit
        self._inbox: queue.SimpleQueue[Command | _LoadEnded | _Encoded] = queue.SimpleQueue()
        self._slots: dict[str, Slot] = {}
        self._encoding: set[int] = set()  # requests at the encoder that nobody cancelled
        self._encoder = ThreadPoolExecutor(max_workers=1, thread_name_prefix="encoder")
        self._loaders: list[threading.Thread] = []
        self._stopping = False
        self._handlers: dict[type, Callable[..., None]] = {
            LoadModel: self._load,
            UnloadModel: self._unload,
            Submit: self._submit,
            Cancel: self._cancel,
            GetStats: self._stats,
            Shutdown: self._stop,
            _LoadEnded: self._load_ended,
            _Encoded: self._encoded,
        }
        self._thread = threading.Thread(target=self._run, name="engine", daemon=True)
        self._thread.start()

    def post(self, command: Command) -> None:
        """Hand a command over; never blocks."""
        self._inbox.put(command)

    def close(self, timeout_s: float = 10) -> None:
        """Cancel everything, free everything and wait for the thread to end. Closing twice is fine."""
        self.post(Shutdown(0))
        self._thread.join(timeout_s)

    def _run(self) -> None:
        while not self._stopping:
            busy = [slot for slot in self._slots.values() if slot.generations]
            self._take_commands(wait=not busy)
            for slot in busy:
                if slot.generations:
                    slot.step()
                    self.progress += 1
        self._shut_down()

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
            error = InvalidRequestError(
                f"The slot {command.slot!r} is loading a model already. Cancel that load first."
            )
            fail(self._emit, command.id, error)
            return
        slot.empty()
        slot.load_id = command.id
        slot.load_cancelled = cancelled = threading.Event()

        def progress(event: LoadProgress) -> None:
            if cancelled.is_set():
                raise LoadCancelledError
            self.progress += 1
            self._emit(command.id, event)

        def work() -> None:
            result: LoadedModel | BaseException
            try:
                result = load_model(Path(command.path), command.slot, command.options, progress)
            except BaseException as error:  # noqa: BLE001 - reported, whatever it is; the engine lives on
                result = error
            self._inbox.put(_LoadEnded(command.id, command.slot, result))

        loader = threading.Thread(target=work, name="loader", daemon=True)
        self._loaders = [*(t for t in self._loaders if t.is_alive()), loader]
        loader.start()

    def _load_ended(self, ended: _LoadEnded) -> None:
        slot, result = self._slots[ended.slot], ended.result
        slot.load_id = None
        if isinstance(result, LoadedModel) and not slot.load_cancelled.is_set():
            slot.model = result
            self._emit(ended.id, result.facts)
        else:
            self._report_failed_load(ended)
        pending, slot.pending = slot.pending, []
        for submit in pending:
            self._submit(submit)

    def _report_failed_load(self, ended: _LoadEnded) -> None:
        result = ended.result
        if isinstance(result, LoadedModel):
            result.close()
        if isinstance(result, LoadedModel | LoadCancelledError):
            self._emit(ended.id, Failed("EngineError", "Loading was cancelled."))
        else:
            fail(self._emit, ended.id, result)

    def _unload(self, command: UnloadModel) -> None:
        slot = self._slots.get(command.slot)
        if slot is not None:
            slot.load_cancelled.set()
            slot.empty()
        self._emit(command.id, Unloaded(command.slot))

    def _submit(self, command: Submit) -> None:
        name = command.request.slot
        slot = self._slots.get(name)
        if slot is not None and slot.load_id is not None:
            slot.pending.append(command)
            return
        if slot is None or slot.model is None:
            fail(self._emit, command.id, NotLoadedError(f"No model is loaded in {name!r}. Load one first."))
            return
        model, submitted = slot.model, time.perf_counter()
        self._encoding.add(command.id)

        def work() -> None:
            result: EncodedPrompt | BaseException
            try:
                result = _encode(model, command.request)
            except BaseException as error:  # noqa: BLE001 - tokenizers panics are no Exceptions; reported
                result = error
            self._inbox.put(_Encoded(command.id, command, submitted, model, result))

        self._encoder.submit(work)

    def _encoded(self, encoded: _Encoded) -> None:
        command, result = encoded.command, encoded.result
        if command.id not in self._encoding:
            return  # cancelled meanwhile, and answered
        self._encoding.remove(command.id)
        slot = self._slots[command.request.slot]
        if slot.model is not encoded.model:
            self._submit(command)  # the slot holds another model by now
        elif isinstance(result, BaseException):
            fail(self._emit, command.id, result)
        else:
            try:
                slot.add(command.id, command.request.sampling, result.token_ids, encoded.submitted)
            except EngineError as error:
                fail(self._emit, command.id, error)

    def _cancel(self, command: Cancel) -> None:
        if command.target in self._encoding:
            self._encoding.remove(command.target)
            self._emit(command.target, finished_before_start())
            return
        for slot in self._slots.values():
            if slot.load_id == command.target:
                slot.load_cancelled.set()
            elif command.target in slot.generations:
                slot.end(command.target, "cancelled")
            else:
                for submit in [s for s in slot.pending if s.id == command.target]:
                    slot.pending.remove(submit)
                    self._emit(submit.id, finished_before_start())

    def _stats(self, command: GetStats) -> None:
        values = {f"{name}.{key}": v for name, slot in self._slots.items() for key, v in slot.stats().items()}
        loaded = {name: slot.model.facts.name for name, slot in self._slots.items() if slot.model is not None}
        self._emit(command.id, Stats(values, loaded))

    def _stop(self, command: Shutdown) -> None:
        self._stopping = True

    def _shut_down(self) -> None:
        for slot in self._slots.values():
            slot.load_cancelled.set()
        for loader in self._loaders:
            loader.join(timeout=5)
        self._encoder.shutdown(wait=False, cancel_futures=True)
        for slot in self._slots.values():
            self._encoding.update(submit.id for submit in slot.pending)
            slot.empty()
        for request_id in self._encoding:
            self._emit(request_id, finished_before_start())
        while not self._inbox.empty():
            late = self._inbox.get_nowait()
            if isinstance(late, _LoadEnded):
                self._report_failed_load(late)


def _encode(model: LoadedModel, request: Request) -> EncodedPrompt:
    """Turn a request's prompt into token ids (on the encoder thread)."""
    if request.messages is not None:
        return model.tokenizer.encode_chat(list(request.messages))
    if request.prompt is not None:
        return model.tokenizer.encode_text(request.prompt)
    return EncodedPrompt(request.prompt_token_ids or (), "", ())
