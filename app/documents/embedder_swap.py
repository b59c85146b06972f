"""`EmbedderSwap`: another sentence encoder takes over, once all its vectors are made beside those in use.

Until then questions are searched with the old one. Cancelling, or a failure of the new one, deletes what was made for it
and leaves the old one as it is. GUI thread only.
"""

from __future__ import annotations

from PySide6.QtCore import QObject, Signal

from inglenook.app.bridge import EngineBridge
from inglenook.app.documents.embedder import Embedder
from inglenook.app.documents.embedding_queue import EmbeddingQueue
from inglenook.app.tasks import Tasks
from inglenook.engine.model_library import InstalledModel
from inglenook.storage.vectors import Vectors

_SLOT = "next embedder"


class EmbedderSwap(QObject):
    """Builds the vectors of one encoder beside those of another.

    Signals:
        changed(str, int, int): the new encoder's name, passages with a vector of it, passages in all; "" for none.
        completed(InstalledModel): all its vectors are there; use it from now on.
        failed(str): a sentence why it did not work; the old one stays.
    """

    changed = Signal(str, int, int)
    completed = Signal(object)
    failed = Signal(str)

    def __init__(self, tasks: Tasks, bridge: EngineBridge, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._tasks = tasks
        self._model: InstalledModel | None = None
        self._embedder = Embedder(bridge, self, slot=_SLOT)
        self._queue = EmbeddingQueue(tasks, self._embedder, self)
        self._queue.changed.connect(lambda done, total: self.changed.emit(self.name, done, total))
        self._queue.completed.connect(self._complete)
        self._queue.rested.connect(self._rest)

    @property
    def name(self) -> str:
        """The new encoder's name while its vectors are made, else ""."""
        return self._model.name if self._model is not None else ""

    def start(self, model: InstalledModel) -> None:
        """Make the vectors of another encoder; one that was being made is given up."""
        if model.name == self.name:
            return
        self.cancel()
        self._model = model
        self._embedder.use(model)
        self._queue.go_on()

    def go_on(self) -> None:
        """Make the vectors of what was added since."""
        if self._model is not None:
            self._queue.go_on()

    def cancel(self) -> None:
        """Give up, and delete what was made; fine if nothing is."""
        name, self._model = self.name, None
        if name:
            self._embedder.use(None)
            self._tasks.write(lambda db: Vectors(db).drop(name))
            self.changed.emit("", 0, 0)

    def _complete(self, name: str) -> None:
        model = self._model
        if model is None or name != model.name:
            return
        self._model = None
        self._embedder.use(None)
        self.changed.emit("", 0, 0)
        self.completed.emit(model)

    def _rest(self) -> None:
        if self._model is None or self._embedder.is_usable:
            return
        sentence = self._embedder.state.sentence
        words = self.tr("{0} could not be loaded, and documents are searched as before. {1}")
        name = self.name
        self.cancel()
        self.failed.emit(words.format(name, sentence))
