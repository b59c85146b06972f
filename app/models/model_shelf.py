"""The models of this computer and those that can be fetched, for the window: listed, fetched, imported, removed.

The library blocks, so it works on two threads: one lists and changes, one downloads. A download begins only by `fetch`,
which is the user's click. GUI thread only.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from PySide6.QtCore import QObject, Signal

from inglenook.app.errors import AppError
from inglenook.app.tasks import Task, Tasks
from inglenook.engine.library.model_catalogue import CATALOGUE, CatalogueEntry, ModelKind
from inglenook.engine.memory import memory_state
from inglenook.engine.model_library import InstalledModel, ModelLibrary

_REPORT_S = 0.1


@dataclass(frozen=True, slots=True)
class ShelfState:
    """What is on the shelf, the memory that is free for a model now, and the best of each kind that fits."""

    models: tuple[InstalledModel, ...] = ()
    free_bytes: int = 0
    preferred_chat: InstalledModel | None = None
    preferred_embedder: InstalledModel | None = None

    def get(self, name: str) -> InstalledModel | None:
        """Return the model of that name, or None."""
        return next((model for model in self.models if model.name == name), None)


class ModelShelf(QObject):
    """The model library for the window. GUI thread only.

    Signals:
        changed(ShelfState): the models are known, or others than before.
        progress(str, int, int): name, bytes done, bytes in all (0: not known) of a download or a copy.
        fetched(InstalledModel): a download or an import is complete.
        removed(str, int): name, and the bytes that this freed.
        failed(str, str): name, and the sentence why a download, an import or a removal did not work.
    """

    changed = Signal(object)
    progress = Signal(str, object, object)  # whole numbers beyond 32 bits
    fetched = Signal(object)
    removed = Signal(str, object)
    failed = Signal(str, str)

    def __init__(
        self,
        folder: Path,
        tasks: Tasks,
        *,
        catalogue: tuple[CatalogueEntry, ...] = CATALOGUE,
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self.catalogue = catalogue
        self._folder = folder
        self._tasks = tasks
        self._state = ShelfState()
        self._fetches: dict[str, Task] = {}

    @property
    def state(self) -> ShelfState:
        """What is on the shelf, as far as it is known."""
        return self._state

    @property
    def fetching(self) -> set[str]:
        """The names of what is being downloaded or copied."""
        return set(self._fetches)

    def title(self, name: str) -> str:
        """Return what people call a model: as the catalogue does, but for a file of the user's own; else its name."""
        model = self._state.get(name)
        if model is None:
            return name
        known = next((entry.title for entry in self.catalogue if entry.name == name), "")
        return known if known and not model.is_reference else model.record.title

    def refresh(self) -> None:
        """Look again what is there and how much memory is free."""
        self._tasks.work("models", lambda _task: self._look(), self._take, partial(self._fail, ""))

    def fetch(self, name: str) -> None:
        """Download a model of the catalogue; fine if it is being downloaded."""
        if name not in self._fetches:
            self._start(name, "fetch", lambda library, progress: library.fetch(name, progress))

    def add(self, path: Path, *, name: str | None = None, copy: bool = False) -> None:
        """Import a .gguf file or a safetensors folder, by reference or as a copy."""
        shown = name or path.name
        self._start(
            shown,
            "models",
            lambda library, progress: library.add(path, name=name, copy=copy, progress=progress),
        )

    def cancel(self, name: str) -> None:
        """End a download or a copy."""
        task = self._fetches.pop(name, None)
        if task is not None:
            task.cancel()
            self.refresh()

    def remove(self, name: str) -> None:
        """Remove a model; a file that was imported by reference stays where it is."""
        self._tasks.work(
            "models",
            lambda _task: ModelLibrary(self._folder, self.catalogue).remove(name),
            lambda freed: self._take_removed(name, freed),
            partial(self._fail, name),
        )

    def _take_removed(self, name: str, freed_bytes: int) -> None:
        self.removed.emit(name, freed_bytes)
        self.refresh()

    def _look(self) -> ShelfState:
        library = ModelLibrary(self._folder, self.catalogue)
        free = memory_state().free_bytes

        def preferred(kind: ModelKind) -> InstalledModel | None:
            return library.preferred(kind, free)

        return ShelfState(tuple(library.models()), free, preferred("chat"), preferred("embedding"))

    def _start(
        self,
        name: str,
        thread: str,
        get: Callable[[ModelLibrary, Callable[[int, int], None]], InstalledModel],
    ) -> None:
        def work(task: Task) -> InstalledModel:
            last_s = 0.0

            def progress(done: int, total: int) -> None:
                nonlocal last_s
                if task.is_cancelled:
                    raise AppError("This was cancelled.")
                now_s = time.monotonic()
                if now_s - last_s >= _REPORT_S:
                    last_s = now_s
                    task.report((done, total))

            return get(ModelLibrary(self._folder, self.catalogue), progress)

        def done(model: InstalledModel) -> None:
            self._fetches.pop(name, None)
            self.fetched.emit(model)
            self.refresh()

        self._fetches[name] = self._tasks.work(
            thread,
            work,
            done,
            partial(self._fail, name),
            lambda bytes_: self.progress.emit(name, *bytes_),
        )

    def _take(self, state: ShelfState) -> None:
        self._state = state
        self.changed.emit(state)

    def _fail(self, name: str, error: Exception) -> None:
        self._fetches.pop(name, None)
        self.failed.emit(name, str(error))
        if name:
            self.refresh()
