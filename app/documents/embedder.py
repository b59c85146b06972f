"""The sentence encoder behind document search: loaded when first wanted, asked through the bridge.

Without one in the library, or where it cannot be loaded, every question is answered with None and search goes by
words alone. GUI thread only.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QObject, QTimer, Signal

from inglenook.app.bridge import EMBEDDER, EngineBridge, ModelState
from inglenook.engine.model_library import InstalledModel
from inglenook.engine.request import Failed, Purpose

OnVectors = Callable[[NDArray[np.float32] | None], object]


class Embedder(QObject):
    """Turns texts into vectors. GUI thread only.

    Signals:
        changed(): another encoder is used from now on, or none; vectors of `name` may be missing.
    """

    changed = Signal()

    def __init__(self, bridge: EngineBridge, parent: QObject | None = None, *, slot: str = EMBEDDER) -> None:
        super().__init__(parent)
        self._bridge = bridge
        self._slot = slot
        self._model: InstalledModel | None = None
        self._waiting: dict[int, OnVectors] = {}
        bridge.embedded.connect(self._take)
        bridge.embedding_failed.connect(self._fail)

    @property
    def name(self) -> str:
        """The encoder's name, under which its vectors are stored; "" without one."""
        return self._model.name if self._model is not None else ""

    @property
    def bridge(self) -> EngineBridge:
        """What it is asked through."""
        return self._bridge

    @property
    def tokenizer(self) -> Path | None:
        """The encoder's tokenizer file, by which passages are measured; None without one."""
        file = self._model.path / "tokenizer.json" if self._model is not None else None
        return file if file is not None and file.is_file() else None

    @property
    def state(self) -> ModelState:
        """What stands in its slot."""
        return self._bridge.model_state(self._slot)

    @property
    def is_usable(self) -> bool:
        """Whether there is an encoder that has not failed to load."""
        return self._model is not None and self.state.phase != "failed"

    def use(self, model: InstalledModel | None) -> None:
        """Use another encoder of the library, or none; it is loaded when it is first wanted."""
        if model is not None and model.is_missing:
            model = None
        if (model and (model.name, model.path)) == (self._model and (self._model.name, self._model.path)):
            return
        if self.state.phase != "unloaded":
            self._bridge.unload(self._slot)
        self._model = model
        self.changed.emit()

    def embed(
        self,
        texts: Sequence[str],
        on_vectors: OnVectors,
        *,
        purpose: Purpose = "document",
        timeout_s: float | None = None,
    ) -> None:
        """Call `on_vectors` with float32 [N, D], or None when there are none within the time given.

        `purpose` is "query" for a question, "document" for passages: some encoders want other words before each.
        """
        if self._model is None or not self.is_usable:
            on_vectors(None)
            return
        if self.state.phase == "unloaded":
            self._bridge.load(self._model.path, name=self._model.name, slot=self._slot)
        request_id = self._bridge.embed(texts, self._slot, purpose=purpose)
        self._waiting[request_id] = on_vectors
        if timeout_s is not None:
            QTimer.singleShot(round(1000 * timeout_s), self, partial(self._give_up, request_id))

    def _take(self, request_id: int, vectors: NDArray[np.float32]) -> None:
        on_vectors = self._waiting.pop(request_id, None)
        if on_vectors is not None:
            on_vectors(vectors)

    def _fail(self, request_id: int, _event: Failed) -> None:
        on_vectors = self._waiting.pop(request_id, None)
        if on_vectors is not None:
            on_vectors(None)

    def _give_up(self, request_id: int) -> None:
        if request_id in self._waiting:
            self._bridge.cancel(request_id)
            self._waiting.pop(request_id)(None)
