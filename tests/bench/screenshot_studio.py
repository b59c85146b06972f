"""`Studio`: one run of the real program in one look, and the camera."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import psutil
from PySide6.QtCore import QCoreApplication, QEvent, QEventLoop
from PySide6.QtGui import QImage
from PySide6.QtWidgets import QApplication, QWidget

from inglenook.app.application import Application
from inglenook.app.paths import UserFolders
from inglenook.app.translations.catalogue import speak
from inglenook.app.window.main_window import MainWindow
from inglenook.app.window.theme import Theme
from inglenook.app.window.window_join import WindowJoin
from inglenook.engine.model_doctor.process import first_look
from inglenook.engine.model_library import ModelLibrary

_WAIT_S = 900
_SETTLE_S = 0.2
# States of pages that are shown twice as large anyway; their pictures would be half of the weight.
_ONCE_AS_LARGE = frozenset(
    [
        "archive",
        "trash",
        "backup",
        "restore",
        "import",
        "import-refused",
        "model-template",
        "find",
        "folders",
        "temporary-chat",
        "documents-refused",
        "selection",
        "persona",
        "large-text",
        "engine-died",
        "chat-de",
        "models-de",
        "models-ar",
        "settings-ar",
    ]
)
_MAX_COLOURS, _KEPT_COLOURS = 256, 96


class Studio:
    """`window`, `application` and `join` of the run that is open; `folder` holds the profile and what is dropped.

    `scheme` is "light", "dark" or "contrast", which is light in high contrast; `factor` "1" or "2".
    """

    def __init__(self, folder: Path, models: Path, out: Path, scheme: str, factor: str) -> None:
        self.folder, self.models, self._out = folder, models, out
        self._look, self._factor = scheme, factor
        self._folders = UserFolders(
            folder / ".local/share/inglenook",
            folder / ".config/inglenook",
            folder / ".local/state/inglenook",
            folder / ".cache/inglenook",
        )
        self._folders.data.mkdir(parents=True)
        self._qt = QApplication([])
        # Once the fonts are found: the privacy page shows paths from the user's own folder on.
        os.environ["HOME"] = str(folder)
        is_high = scheme == "contrast"
        self.theme = Theme(
            self._qt,
            scheme="light" if is_high else scheme,  # type: ignore[arg-type]
            contrast="high" if is_high else "usual",
        )
        self.window: Any = None
        self.application: Any = None
        self.join: Any = None

    def open(self, *, language: str = "en") -> None:
        """Start the program as a person would; what is in the profile is there again."""
        speak(self._qt, language)
        self.window = MainWindow(self.theme)
        self.window.resize(1180, 780 if self._factor == "1" else 720)
        # Once is enough: the doctor takes some seconds of both cores.
        look = first_look if language == "en" else None
        self.application = Application(self._folders, look=look)
        self.join = WindowJoin(self.window, self.application)
        self.window.show()
        self.application.start()

    def open_ready(self, *, language: str = "en") -> None:
        """Start it and wait until its model answers."""
        self.open(language=language)
        self.until(lambda: self.application.bridge.model_state().phase == "ready")

    def close(self) -> None:
        """End the run."""
        self.application.close()
        self.window.close()

    def add_models(self) -> None:
        """Put the chat model and the encoder into the profile."""
        library = ModelLibrary(self._folders.models)
        library.add(self.models / "SmolLM2-135M-Instruct.Q4_1.gguf", name="smollm2-135m", copy=True)
        library.add(self.models / "all-MiniLM-L6-v2", name="minilm-l6", copy=True)

    def settle(self, condition: Callable[[], bool] = lambda: False, limit_s: float = _SETTLE_S) -> None:
        """Let the window work until something is so, or some time is over."""
        end_s = time.monotonic() + limit_s
        while not condition() and time.monotonic() < end_s:
            QCoreApplication.processEvents(QEventLoop.ProcessEventsFlag.AllEvents, 20)
            time.sleep(
                0.005
            )  # it comes back at once where nothing is due, and the engine wants the processor
            # Without a running loop, Qt keeps what is to be deleted, and in sight.
            QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete.value)

    def until(self, condition: Callable[[], bool]) -> None:
        """Wait for something that has to happen, and let the window show it."""
        self.settle(condition, _WAIT_S)
        if not condition():
            sys.exit("something did not happen in time")
        self.settle()

    def grab(self, name: str, widget: QWidget | None = None) -> None:
        """Take a picture of the window, or of a dialog in front of it."""
        self.settle()
        self.snap(name, widget)

    def snap(self, name: str, widget: QWidget | None = None) -> None:
        """Take a picture at this moment, of what does not wait."""
        if self._factor != "1" and name in _ONCE_AS_LARGE:
            return
        picture = _few_colours((widget or self.window).grab().toImage())
        picture.save(str(self._out / f"{name}-{self._look}-{self._factor}00.png"), "PNG", 0)

    def grab_dialog(self, name: str) -> None:
        """Take a picture of the dialog in front, and leave it."""
        dialog = self.dialog()
        self.grab(name, dialog)
        dialog.reject()
        self.settle()

    def dialog(self) -> Any:
        """The dialog in front, once it is there."""
        self.until(lambda: QApplication.activeModalWidget() is not None)
        return QApplication.activeModalWidget()

    def act(self, action: str) -> None:
        """Do what is in the menu."""
        self.window.actions_by_name[action].trigger()

    def ask(self, question: str) -> None:
        """Send a question."""
        self.window.chat.composer.send_requested.emit(question)

    def write(self, work: Callable[[Any], Any]) -> Any:
        """Write to the history, wait for it, and return what came of it."""
        done: list[Any] = []
        self.application.tasks.write(work, done.append)
        self.until(lambda: bool(done))
        return done[0]

    def kill_engine(self) -> None:
        """End the engine's process as a lack of memory would."""
        for process in psutil.Process().children(recursive=True):
            if any("inglenook.engine" in part and "process" in part for part in process.cmdline()):
                process.kill()


def _few_colours(picture: QImage) -> QImage:
    """Return a picture of at most 256 colours, each at most a hair from its own: a third of the size of a full one.

    The most frequent ones are kept as they are. The rest are chosen one by one, each the farthest from all before, so
    that a rare colour, of a word in code for instance, is not lost (Gonzalez 1985, farthest-point clustering).
    """
    picture = picture.convertToFormat(QImage.Format.Format_RGB32)
    width, height = picture.width(), picture.height()
    pixels = np.frombuffer(picture.constBits(), np.uint32).reshape(height, -1)[:, :width] & 0xFFFFFF
    colours, places, counts = np.unique(pixels, return_inverse=True, return_counts=True)
    parts = np.stack([colours >> 16, colours >> 8 & 255, colours & 255], 1).astype(np.int32)
    chosen = list(np.argsort(-counts)[:_KEPT_COLOURS])
    distances = np.full(len(colours), np.iinfo(np.int32).max)
    nearest = np.zeros(len(colours), np.uint8)
    for number in range(_MAX_COLOURS):
        if number >= len(chosen):
            chosen.append(int(np.argmax(distances)))
            if not distances[chosen[-1]]:
                break
        to_this = ((parts - parts[chosen[number]]) ** 2).sum(1)
        nearest[to_this < distances] = number
        distances = np.minimum(distances, to_this)
    rows = np.zeros((height, -(-width // 4) * 4), np.uint8)  # Qt's lines end at whole words
    rows[:, :width] = nearest[places.reshape(height, width)]
    made = QImage(rows.tobytes(), width, height, rows.shape[1], QImage.Format.Format_Indexed8).copy()
    made.setColorTable([int(colours[place]) | 0xFF000000 for place in chosen[:_MAX_COLOURS]])
    return made
