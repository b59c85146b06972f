"""Joins the taking in of model files with the shelf: chosen in a dialog or dropped, copied or in fewer bits.

Quantising runs in a process of its own (`quantize_worker.py`), read by a thread of `Tasks`. GUI thread only.
"""

from __future__ import annotations

import json
import os
import selectors
import subprocess
import sys
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from PySide6.QtCore import QObject, Qt, Signal
from PySide6.QtWidgets import QFileDialog

from inglenook.app.application import Application
from inglenook.app.errors import AppError
from inglenook.app.models.import_dialog import COPY, EIGHT_BITS, FOUR_BITS, REFERENCE, ImportDialog
from inglenook.app.models.memory_need import fit_of
from inglenook.app.models.model_settings_join import free_for_a_model
from inglenook.app.tasks import Task
from inglenook.app.translations import figures
from inglenook.app.window.main_window import MainWindow
from inglenook.engine.library.model_import import ModelFacts, inspect_model
from inglenook.engine.library.model_names import suggest_name
from inglenook.engine.memory import estimate_listed_need

_END_S = 3.0
_LOOK_S = 0.2
# Codes and their scales, against the 16 bits that a weight has in the file.
_PARTS = {EIGHT_BITS: 0.54, FOUR_BITS: 0.30}


class ImportJoin(QObject):
    """Takes model files in.

    Signals, of a model that is quantised: `progress(str, str, int, int)` name, stage in words, done and total;
    `done(str, str)` and `failed(str, str)` name and sentence.
    """

    progress = Signal(str, str, object, object)
    done = Signal(str, str)
    failed = Signal(str, str)

    def __init__(self, window: MainWindow, application: Application) -> None:
        super().__init__(window)
        self._window, self._app = window, application
        self._running: dict[str, Task] = {}
        self._waiting: list[Path] = []

    @property
    def running(self) -> dict[str, Task]:
        """What is being quantised, by name."""
        return self._running

    def choose(self) -> None:
        """Ask for a model file in a dialog."""
        dialog = QFileDialog(self._window, self.tr("Use a model file"))
        dialog.setFileMode(QFileDialog.FileMode.ExistingFile)
        dialog.setNameFilters([self.tr("Models (*.gguf *.safetensors)"), self.tr("All files (*)")])
        dialog.filesSelected.connect(lambda files: self.ask(Path(files[0])))
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        dialog.open()

    def add(self, paths: Sequence[Path]) -> None:
        """Ask of each model among dropped files how to take it in, one after the other; several shards are one model."""
        is_asking = bool(self._waiting)
        self._waiting += [path for path in dict.fromkeys(map(model_of, paths)) if path not in self._waiting]
        if not is_asking:
            self._ask_next()

    def _ask_next(self) -> None:
        if self._waiting:
            self.ask(self._waiting[0]).finished.connect(self._take_answer)

    def _take_answer(self) -> None:
        del self._waiting[:1]
        self._ask_next()

    def ask(self, path: Path) -> ImportDialog:
        """Say what a file is, and ask how to take it in."""
        path = model_of(path)
        dialog = ImportDialog(self._window.theme, path, self._window)
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        task = self._app.tasks.work(
            "models",
            lambda _task: inspect_model(path),
            partial(self._show_facts, dialog, path),
            lambda error: dialog.show_problem(str(error)),
        )
        # Left before the file was looked through, there is nothing to tell it to.
        dialog.finished.connect(lambda _result: task.cancel())
        dialog.open()
        return dialog

    def cancel(self, name: str) -> None:
        """End a quantising; nothing of it is kept."""
        task = self._running.pop(name, None)
        if task is not None:
            task.cancel()

    def _show_facts(self, dialog: ImportDialog, path: Path, facts: ModelFacts) -> None:
        need = estimate_listed_need(facts.size_bytes, facts.num_parameters, facts.kv_bytes_per_token)
        free = free_for_a_model(self._app)
        kind = (
            self.tr("Language model") if facts.kind == "chat" else self.tr("Sentence encoder, for documents")
        )
        billions = figures.decimal(facts.num_parameters / 1e9, 1 if facts.num_parameters >= 1e8 else 2)
        what = self.tr("{0}, {1} billion parameters, {2} on disk.").format(
            kind, billions, figures.size(facts.size_bytes)
        )
        fit = {
            "yes": self.tr("Fits: it needs {0}, and {1} are free."),
            "maybe": self.tr("May be slow: it needs {0}, nearly all of the {1} that are free."),
            "no": self.tr("Won't fit: it needs {0}; {1} are free."),
        }[fit_of(need, free)].format(figures.size(need), figures.size(free))
        hints = {
            REFERENCE: self.tr("Takes no room. The file has to stay where it is."),
            COPY: self.tr("Takes {0} more on the disk; the file may go afterwards.").format(
                figures.size(facts.size_bytes)
            ),
        }
        is_full = facts.num_parameters and facts.size_bytes >= 1.8 * facts.num_parameters
        if path.is_dir() and facts.kind == "chat" and is_full:
            for way, part in _PARTS.items():
                size = round(2 * facts.num_parameters * part)
                words = self.tr(
                    "Makes a new model of about {0} and measures what that costs; it takes some minutes."
                )
                hints[way] = words.format(figures.size(size))
        dialog.show_facts(what, fit, hints)
        dialog.chosen.connect(lambda way: self._take_in(path, facts, way))

    def _take_in(self, path: Path, facts: ModelFacts, way: str) -> None:
        if way in (REFERENCE, COPY):
            self._app.models.add(path, copy=way == COPY)
            return
        name = f"{suggest_name(path)[:56]}-{way}"
        order = {
            "folder": str(self._app.folders.models),
            "source": str(path),
            "name": name,
            "weights": way,
            "title": facts.title,
            "licence": facts.licence,
        }
        self.cancel(name)
        self._running[name] = self._app.tasks.work(
            f"quantise-{name}",
            lambda task: _quantize(task, order),
            partial(self._take_done, name),
            partial(self._take_failure, name),
            lambda far: self._take_progress(name, *far),
        )
        self.progress.emit(name, self.tr("Reading the model"), 0, 0)

    def _take_progress(self, name: str, stage: str, done: int, total: int) -> None:
        words = {
            "quantise": self.tr("Making it smaller"),
            "before": self.tr("Measuring the original"),
            "after": self.tr("Measuring the new model"),
        }
        self.progress.emit(name, words.get(stage, ""), done, total)

    def _take_done(self, name: str, sentence: str) -> None:
        self._running.pop(name, None)
        self.done.emit(name, sentence)
        self._app.models.refresh()

    def _take_failure(self, name: str, error: Exception) -> None:
        self._running.pop(name, None)
        self.failed.emit(name, str(error))


def model_of(path: Path) -> Path:
    """Return what is imported for a file: a shard of safetensors stands for its folder."""
    return path.parent if path.suffix.lower() == ".safetensors" else path


def _quantize(task: Task, order: dict[str, Any]) -> str:
    """Run the worker and pass on how far it is; returns its sentence. On a thread of `Tasks`.

    Raises:
        AppError: it could not be done; the sentence says why.
    """
    command = [sys.executable, "-I", "-m", "inglenook.app.models.quantize_worker"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        try:
            assert child.stdin is not None
            child.stdin.write(json.dumps(order).encode() + b"\n")
            child.stdin.close()
            for told in _told(task, child):
                if "error" in told:
                    raise AppError(told["error"])
                if "sentence" in told:
                    return str(told["sentence"])
                task.report((told["stage"], told["done"], told["total"]))
        finally:
            child.terminate()
            try:
                child.wait(_END_S)
            except subprocess.TimeoutExpired:
                child.kill()
    raise AppError(
        f"The process that makes the smaller model ended by itself (status {child.returncode}); memory may have been "
        "short. Nothing was kept."
    )


def _told(task: Task, child: subprocess.Popen[bytes]) -> Iterator[dict[str, Any]]:
    """The lines of the worker, until it ends.

    Raises:
        AppError: the task was cancelled, which is looked at several times a second.
    """
    assert child.stdout is not None
    rest = b""
    with selectors.DefaultSelector() as selector:
        selector.register(child.stdout, selectors.EVENT_READ)
        while True:
            if task.is_cancelled:
                raise AppError("This was cancelled.")
            if not selector.select(_LOOK_S):
                continue
            data = os.read(child.stdout.fileno(), 65_536)
            if not data:
                return
            *lines, rest = (rest + data).split(b"\n")
            yield from map(json.loads, lines)
