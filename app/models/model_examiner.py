"""Has the doctor look at models: once at each model's first load, and again when asked. GUI thread only.

The look itself is a process at the lowest priority, waited for on a thread of `Tasks`. It begins when a chat model has
been loaded and no reply is being written, and ends early when that model is unloaded, another one is loaded, or the
program closes. What was found earlier is shown without a look.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Protocol

from PySide6.QtCore import QObject, Signal

from inglenook.app.bridge import CHAT, EngineBridge, ModelState
from inglenook.app.models.model_verdict import ModelVerdict, finding_line, verdict_of
from inglenook.app.tasks import Task, Tasks
from inglenook.engine.model_doctor.process import known_report
from inglenook.engine.model_doctor.report import DoctorReport, Finding

_NOT_EXAMINED = ModelVerdict()


class Look(Protocol):
    """Examine the model at `path`, as `engine.model_doctor.process.first_look` does; blocks."""

    def __call__(
        self,
        path: Path,
        *,
        backend: str,
        again: bool,
        on_finding: Callable[[Finding], None],
        cancelled: threading.Event,
    ) -> DoctorReport: ...


class ModelExaminer(QObject):
    """Keeps what is known of each model's soundness, by its path. GUI thread only; close it.

    `look` None examines nothing. `backend` is asked for the back end at each look.

    Signals:
        changed(str): the verdict on the model at that path is another one.
    """

    changed = Signal(str)

    def __init__(
        self,
        bridge: EngineBridge,
        tasks: Tasks,
        look: Look | None,
        backend: Callable[[], str],
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._bridge, self._tasks, self._look, self._backend = bridge, tasks, look, backend
        self._verdicts: dict[str, ModelVerdict] = {}
        self._running: _Running | None = None
        self._due = ""
        self._looked_at: set[str] = set()
        bridge.model_state_changed.connect(self._take_model)
        bridge.reply_finished.connect(self._begin_due)
        bridge.reply_failed.connect(self._begin_due)

    @property
    def can_examine(self) -> bool:
        """Whether there is a doctor."""
        return self._look is not None

    def verdict(self, path: Path) -> ModelVerdict:
        """Return what is known of the model at `path`."""
        return self._verdicts.get(str(path), _NOT_EXAMINED)

    def recall(self, paths: Iterable[Path]) -> None:
        """Read what was found earlier of these models, as far as their files are unchanged."""
        if self._look is None:
            return
        chosen = [path for path in paths if str(path) not in self._verdicts]

        def read(_task: Task) -> list[tuple[str, DoctorReport]]:
            reports = [(str(path), known_report(path)) for path in chosen]
            return [(path, report) for path, report in reports if report is not None]

        def known(found: list[tuple[str, DoctorReport]]) -> None:
            for path, report in found:
                if path not in self._verdicts:
                    self._set(path, verdict_of(report))

        self._tasks.work("models", read, known)

    def examine(self, path: Path, *, again: bool = True) -> None:
        """Look at a model now, in place of a look that goes on; `again` also where a report is kept."""
        look = self._look
        if look is None:
            return
        self.stop()
        key, cancelled, backend = str(path), threading.Event(), self._backend()
        self._looked_at.add(key)
        before = self._verdicts.get(key, _NOT_EXAMINED)
        found: list[str] = []

        def heard(finding: Finding) -> None:
            found.append(finding_line(finding))
            self._set(key, replace(self.verdict(path), findings=tuple(found)))

        def done(report: DoctorReport) -> None:
            self._running = None
            self._set(key, verdict_of(report))

        def failed(error: Exception) -> None:
            self._running = None
            self._set(key, replace(before, problem=str(error)))

        task = self._tasks.work(
            "doctor",
            lambda task: look(
                path, backend=backend, again=again, on_finding=task.report, cancelled=cancelled
            ),
            done,
            failed,
            heard,
        )
        self._running = _Running(key, before, task, cancelled)
        self._set(key, ModelVerdict(is_running=True))

    def stop(self) -> None:
        """End the look that goes on, if any; what was known before is known again."""
        running, self._running = self._running, None
        if running is not None:
            running.cancelled.set()
            running.task.cancel()
            self._set(running.path, running.before)

    def drop(self, path: Path) -> None:
        """Know nothing of a model any more, since its files are new."""
        if self._running is not None and self._running.path == str(path):
            self.stop()
        self._looked_at.discard(str(path))
        self._set(str(path), _NOT_EXAMINED)
        del self._verdicts[str(path)]

    def close(self) -> None:
        """End the look that goes on; no other begins."""
        self._look, self._due = None, ""
        if self._running is not None:
            self._running.cancelled.set()
            self._running.task.cancel()
            self._running = None

    def _take_model(self, state: ModelState) -> None:
        if state.slot != CHAT:
            return
        is_other = self._running is not None and self._running.path != state.path
        if state.phase == "unloaded" or (state.phase == "loading" and is_other):
            self._due = ""
            self.stop()
        elif state.phase == "ready" and state.path not in self._looked_at:
            self._due = state.path
            self._begin_due()

    def _begin_due(self, *_ignored: object) -> None:
        """Look at the model that was loaded, unless a reply is being written; its end comes back here."""
        if self._due and not self._bridge.is_replying:
            path, self._due = self._due, ""
            self.examine(Path(path), again=False)

    def _set(self, path: str, verdict: ModelVerdict) -> None:
        is_new = self._verdicts.get(path, _NOT_EXAMINED) != verdict
        self._verdicts[path] = verdict
        if is_new:
            self.changed.emit(path)


class _Running:
    """The look that goes on."""

    def __init__(self, path: str, before: ModelVerdict, task: Task, cancelled: threading.Event) -> None:
        self.path, self.before, self.task, self.cancelled = path, before, task, cancelled
