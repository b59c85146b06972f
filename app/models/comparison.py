"""One question to two models: both at once where memory allows it, else one after the other.

Each model stands in a slot of its own, unless the chat's slot holds it already. What does not fit beside the chat's
model takes its place for a while; `close` puts everything back. GUI thread only.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal

from PySide6.QtCore import QObject, Signal

from inglenook.app.bridge import CHAT, EngineBridge, ModelState
from inglenook.app.models.memory_need import memory_need
from inglenook.app.settings import AppSettings
from inglenook.app.tasks import Tasks
from inglenook.app.translations import figures
from inglenook.engine.library.model_details import ModelDetails, read_details
from inglenook.engine.memory import LISTED_CONTEXT, memory_state
from inglenook.engine.model_library import InstalledModel
from inglenook.engine.request import Failed, Finished, Request

SLOTS = ("compare-left", "compare-right")
_OWNER = "comparison"

Phase = Literal["empty", "waiting", "loading", "writing", "done", "stopped", "failed"]


@dataclass(frozen=True, slots=True)
class Plan:
    """How two models will answer: at the same time, or one after the other, and why in a sentence."""

    is_together: bool
    sentence: str


@dataclass(slots=True)
class Side:
    """One model's part: how far it is, what it has written, and its end. `problem` is the sentence of a failure."""

    model: InstalledModel | None = None
    phase: Phase = "empty"
    slot: str = ""
    pieces: list[str] = field(default_factory=list)
    token_ids: list[int] = field(default_factory=list)
    request_id: int | None = None
    finished: Finished | None = None
    problem: str = ""

    @property
    def text(self) -> str:
        """What it has written."""
        return "".join(self.pieces)

    @property
    def is_open(self) -> bool:
        """Whether it has not ended."""
        return self.phase in ("waiting", "loading", "writing")


class Comparison(QObject):
    """Asks two models. `sides` are the left and the right one.

    `restore` is called with the model of the chat that had to make room, to load it again. Signals: `changed(int)`, a
    side; `ended()` when both have.
    """

    changed = Signal(int)
    ended = Signal()

    def __init__(
        self,
        bridge: EngineBridge,
        tasks: Tasks,
        settings: AppSettings,
        restore: Callable[[str], object],
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._bridge, self._tasks, self._settings, self._restore = bridge, tasks, settings, restore
        self._question = ""
        self._seed = 0
        self._plan = Plan(True, "")
        self._owed = ""  # the chat's model, where it had to make room
        self.sides = [Side(), Side()]
        bridge.model_state_changed.connect(self._take_model)
        bridge.reply_text.connect(self._take_text)
        bridge.reply_finished.connect(self._take_finished)
        bridge.reply_failed.connect(self._take_failed)

    @property
    def question(self) -> str:
        """What was asked last."""
        return self._question

    @property
    def seed(self) -> int:
        """The seed that both draw with."""
        return self._seed

    @property
    def is_running(self) -> bool:
        """Whether an answer is still to come."""
        return any(side.is_open for side in self.sides)

    def plan(self, left: InstalledModel, right: InstalledModel) -> Plan:
        """Say how these two would answer now."""
        needs = [self._need(model) for model in (left, right)]
        free = memory_state().free_bytes + sum(self._held(model) for model in (left, right))
        numbers = figures.size(sum(needs)), figures.size(free)
        if sum(needs) <= free:
            words = self.tr(
                "Both fit: together they need {0}, and {1} are free. They answer at the same time."
            )
            return Plan(True, words.format(*numbers))
        words = self.tr("Together they need {0}; {1} are free. They answer one after the other.")
        return Plan(False, words.format(*numbers))

    def begin(self, question: str, left: InstalledModel, right: InstalledModel) -> None:
        """Ask both; what was answered before is gone."""
        self.stop()
        self._question = question
        self._seed = self._settings.value("chat.seed") or secrets.randbelow(2**31)
        self._plan = self.plan(left, right)
        chat = self._bridge.model_state(CHAT)
        for number, model in enumerate((left, right)):
            is_there = chat.name == model.name and chat.phase in ("ready", "asleep")
            slot = CHAT if is_there else SLOTS[number]
            self.sides[number] = Side(model, "waiting", slot)
            if slot == CHAT and self._bridge.model_state(SLOTS[number]).phase != "unloaded":
                self._bridge.unload(SLOTS[number])
            self.changed.emit(number)
        self._go_on()

    def stop(self) -> None:
        """End both where they are; what was written stays."""
        for number, side in enumerate(self.sides):
            if side.is_open:
                if side.request_id is not None:
                    self._bridge.cancel(side.request_id)
                side.phase, side.request_id = "stopped", None
                self.changed.emit(number)

    def close(self) -> None:
        """End both, give their memory back, and load the chat's model again if it had to make room."""
        self.stop()
        self._bridge.forget(_OWNER)
        for slot in SLOTS:
            self._unload(slot)
        if self._owed:
            owed, self._owed = self._owed, ""
            self._restore(owed)

    def forget_restore(self) -> None:
        """Owe the chat nothing any more, since another model is used for it."""
        self._owed = ""

    def kept_sampling(self) -> dict[str, Any]:
        """Return what a reply keeps of how it was written here."""
        kept = replace(self._settings.sampling(), seed=self._seed)
        return asdict(kept) | {
            "system": self._settings.value("chat.system").strip(),
            "preset": self._settings.value("chat.preset"),
        }

    def _go_on(self) -> None:
        """Begin with what may begin now."""
        # The model that is there already goes first, since it may have to make room.
        for number, side in sorted(enumerate(self.sides), key=lambda pair: pair[1].slot != CHAT):
            if side.phase == "waiting":
                if not self._plan.is_together and any(
                    other.phase in ("loading", "writing") for other in self.sides
                ):
                    return
                self._begin_side(number, side)

    def _begin_side(self, number: int, side: Side) -> None:
        assert side.model is not None
        side.phase = "loading"
        self.changed.emit(number)
        if side.slot == CHAT or self._holds(side):
            self._bridge.wake()
            self._submit(number, side)
            return
        if not self._plan.is_together:
            self._make_room(side)
        model = side.model

        def read(details: ModelDetails) -> None:
            if side.phase == "loading" and side.model is model:
                options = self._settings.load_options(model.name)
                context = options.context_length or min(LISTED_CONTEXT, details.context_length)
                self._bridge.load(
                    Path(model.path),
                    name=model.name,
                    slot=side.slot,
                    options=replace(options, context_length=context),
                )

        self._tasks.work(
            "models", lambda _task: read_details(model.path), read, partial(self._fail_of, number)
        )

    def _make_room(self, side: Side) -> None:
        """Unload the other side's model, and the chat's where even that is not enough."""
        assert side.model is not None
        for slot in SLOTS:
            if slot != side.slot:
                self._unload(slot)
        chat = self._bridge.model_state(CHAT)
        if self._need(side.model) > memory_state().free_bytes and chat.facts is not None:
            self._owed = chat.name
            self._bridge.unload(CHAT)

    def _submit(self, number: int, side: Side) -> None:
        side.phase = "writing"
        system = self._settings.value("chat.system").strip()
        messages = [{"role": "system", "content": system}] if system else []
        messages.append({"role": "user", "content": self._question})
        side.request_id = self._bridge.submit(
            Request(
                messages=tuple(messages),
                sampling=replace(self._settings.sampling(), seed=self._seed),
                slot=side.slot,
                owner=_OWNER,
            )
        )
        self.changed.emit(number)

    def _take_model(self, state: ModelState) -> None:
        for number, side in enumerate(self.sides):
            if side.slot != state.slot or side.phase != "loading":
                continue
            if state.phase == "ready":
                self._submit(number, side)
            elif state.phase == "failed":
                self._fail(number, state.sentence)
            else:
                self.changed.emit(number)

    def _take_text(self, request_id: int, text: str, token_ids: tuple[int, ...]) -> None:
        for number, side in enumerate(self.sides):
            if side.request_id == request_id and side.phase == "writing":
                side.pieces.append(text)
                side.token_ids += token_ids
                self.changed.emit(number)

    def _take_finished(self, request_id: int, event: Finished) -> None:
        for number, side in enumerate(self.sides):
            if side.request_id == request_id and side.phase == "writing":
                side.finished = event
                self._end(number, "stopped" if event.finish_reason == "cancelled" else "done")

    def _take_failed(self, request_id: int, event: Failed) -> None:
        for number, side in enumerate(self.sides):
            if side.request_id == request_id and side.phase == "writing":
                self._fail(number, event.message)

    def _fail_of(self, number: int, error: Exception) -> None:
        if self.sides[number].phase == "loading":
            self._fail(number, str(error))

    def _fail(self, number: int, sentence: str) -> None:
        self.sides[number].problem = sentence
        self._end(number, "failed")

    def _end(self, number: int, phase: Phase) -> None:
        side = self.sides[number]
        side.phase, side.request_id = phase, None
        if not self._plan.is_together:
            self._unload(side.slot)
        self.changed.emit(number)
        self._go_on()
        if not self.is_running:
            self.ended.emit()

    def _unload(self, slot: str) -> None:
        if slot in SLOTS and self._bridge.model_state(slot).phase != "unloaded":
            self._bridge.unload(slot)

    def _holds(self, side: Side) -> bool:
        """Whether a side's model stands in its slot from the question before."""
        state = self._bridge.model_state(side.slot)
        return side.model is not None and state.name == side.model.name and state.phase in ("ready", "asleep")

    def _need(self, model: InstalledModel) -> int:
        options = self._settings.load_options(model.name)
        return memory_need(
            model.record, {"context_length": options.context_length, "kv_type": options.kv_dtype or ""}
        )

    def _held(self, model: InstalledModel) -> int:
        """What of a model lies in memory already, here or in the chat."""
        for slot in (CHAT, *SLOTS):
            state = self._bridge.model_state(slot)
            if state.name == model.name and state.facts is not None and state.phase == "ready":
                return state.facts.weight_bytes
        return 0
