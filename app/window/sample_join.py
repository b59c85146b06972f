"""Puts the sample document into the library at the very first start, and its questions before whoever asks about it.

It is copied beside the history, so that it stays a file like any other when the program is updated. GUI thread only.
"""

from __future__ import annotations

import logging
from pathlib import Path

from PySide6.QtCore import QCoreApplication, QObject

from inglenook.app.application import Application
from inglenook.app.errors import AppError
from inglenook.app.paths import ensure
from inglenook.app.window.banner import BannerLine
from inglenook.app.window.main_window import MainWindow
from inglenook.app.window.sample_document import QUESTIONS, SAMPLE_NAME, sample_path
from inglenook.storage.database import Database

logger = logging.getLogger(__name__)

SAMPLES_FOLDER = "samples"


class SampleJoin(QObject):
    """Does the action "sample"; call `begin` once the history is open, at a first start only."""

    def __init__(self, window: MainWindow, application: Application) -> None:
        super().__init__(window)
        self._window, self._app = window, application
        texts = [QCoreApplication.translate("sample", question) for question in QUESTIONS]
        window.chat.greeting.set_examples_for(SAMPLE_NAME, texts)
        window.on_action("sample", self.add)

    def begin(self) -> None:
        """Add the sample where nothing was ever kept; a profile that is in use stays as it is."""

        def is_empty(db: Database) -> bool:
            row = db.row("SELECT (SELECT count(*) FROM conversations) + (SELECT count(*) FROM documents)")
            return row is not None and row[0] == 0

        self._app.tasks.read(is_empty, lambda empty: self.add() if empty else None)

    def add(self) -> None:
        """Add the sample, read it, and let the next question be about it."""
        try:
            copy = ensure(self._app.folders.data / SAMPLES_FOLDER) / SAMPLE_NAME
            if not copy.exists():
                copy.write_bytes(_sample())
        except (AppError, OSError) as error:
            logger.warning("the sample could not be kept: %s", type(error).__name__)
            words = self.tr("The sample document could not be copied to {0}.").format(self._app.folders.data)
            self._window.banner.show_line("notice", BannerLine(words, "error"))
            return
        self._window.files_dropped.emit([copy])


def _sample() -> bytes:
    path: Path = sample_path()
    return path.read_bytes()
