"""Backup and restoring in the window: where to, what a backup holds, how far it is, and an end to it at any moment.

GUI thread only; the work is the storage writer's.
"""

from __future__ import annotations

import threading
from datetime import datetime
from pathlib import Path

from PySide6.QtCore import QObject, Qt, Signal
from PySide6.QtWidgets import QFileDialog

from inglenook.app.application import Application
from inglenook.app.text.rich_text import label
from inglenook.app.translations import figures
from inglenook.app.window.banner import BannerLine
from inglenook.app.window.confirmation import confirm
from inglenook.app.window.main_window import MainWindow
from inglenook.storage.backup import back_up
from inglenook.storage.database import Database
from inglenook.storage.errors import StoppedError
from inglenook.storage.merge import BackupContents, MergeReport, backup_contents, merge_backup
from inglenook.storage.settings import Settings

SUFFIX = "inglenook"
_KEY = "backup"


class BackupJoin(QObject):
    """Does the actions "back_up" and "restore". Signals: `restored()` after something was added."""

    restored = Signal()
    _moved = Signal(int, int)

    def __init__(self, window: MainWindow, application: Application) -> None:
        super().__init__(window)
        self._window, self._app = window, application
        self._stop = threading.Event()
        self._words = ""
        self._moved.connect(self._show_progress, Qt.ConnectionType.QueuedConnection)
        window.on_action("back_up", self.ask_target)
        window.on_action("restore", self.ask_source)

    def ask_target(self) -> None:
        """Ask where the backup is to lie, and make it."""
        dialog = QFileDialog(self._window, self.tr("Back up everything"))
        dialog.setAcceptMode(QFileDialog.AcceptMode.AcceptSave)
        dialog.setNameFilters([self.tr("Backups (*.{0})").format(SUFFIX)])
        dialog.setDefaultSuffix(SUFFIX)
        dialog.selectFile(f"Inglenook {datetime.now():%Y-%m-%d}")
        dialog.fileSelected.connect(lambda path: self.back_up(Path(path)))
        dialog.open()

    def ask_source(self) -> None:
        """Ask for a backup, say what it holds, and restore it once that is meant."""
        dialog = QFileDialog(self._window, self.tr("Restore a backup"))
        dialog.setFileMode(QFileDialog.FileMode.ExistingFile)
        dialog.setNameFilters([self.tr("Backups (*.{0})").format(SUFFIX), self.tr("All files (*)")])
        dialog.fileSelected.connect(lambda path: self.look_at(Path(path)))
        dialog.open()

    def back_up(self, target: Path) -> None:
        """Write everything into a file; what was there under its name is replaced when the new one is whole."""
        self._begin(self.tr("Backing up… {0} %"))

        def work(db: Database) -> int:
            back_up(db, target, self._report)
            return target.stat().st_size

        def done(size: int) -> None:
            shown = figures.size(size)
            words = self.tr("Everything was backed up into {0} ({1}). Models are not in it.")
            self._end(words.format(label(target.name, 80), shown))

        self._app.tasks.write(work, done, self._fail)

    def look_at(self, path: Path) -> None:
        """Say what a backup holds, and ask whether it is to be restored."""
        self._app.tasks.work(
            "backup", lambda _task: backup_contents(path), lambda found: self._ask(path, found), self._fail
        )

    def restore(self, path: Path) -> None:
        """Add what a backup has to what is here."""
        self._begin(self.tr("Restoring… {0} %"))
        self._app.tasks.write(
            lambda db: (merge_backup(db, path, self._report_only, self._stop.is_set), Settings(db).all()),
            self._take_report,
            self._fail,
        )

    def _ask(self, path: Path, found: BackupContents) -> None:
        words = self.tr("“{0}” holds {1} chats with {2} messages, and {3} documents.")
        numbers = [figures.count(n) for n in (found.conversations, found.messages, found.documents)]
        confirm(
            self._window,
            title=self.tr("Restore a backup"),
            question=words.format(label(path.name, 80), *numbers),
            detail=self.tr(
                "What is new in it is added to what is here. Nothing that is here is changed, and restoring the same "
                "backup again adds nothing."
            ),
            button=self.tr("Add what is new"),
            accepted=lambda: self.restore(path),
            is_destructive=False,
        )

    def _take_report(self, result: tuple[MergeReport, dict[str, object]]) -> None:
        report, stored = result
        if report.is_empty:
            self._end(self.tr("Everything of the backup was here already; nothing was added."))
            return
        words = self.tr("Added {0} chats, {1} messages and {2} documents. Nothing that was here was changed.")
        numbers = [figures.count(n) for n in (report.conversations, report.messages, report.documents)]
        self._app.settings.load(stored)
        self._app.indexing.start()
        self._end(words.format(*numbers))
        self.restored.emit()

    # In the writer's thread.

    def _report(self, done: int, total: int) -> None:
        if self._stop.is_set():
            raise StoppedError(self.tr("The backup was stopped; no file was written."))
        self._report_only(done, total)

    def _report_only(self, done: int, total: int) -> None:
        self._moved.emit(done, total)

    # What is said.

    def _begin(self, words: str) -> None:
        self._stop = threading.Event()
        self._words = words
        self._show_progress(0, 1)

    def _show_progress(self, done: int, total: int) -> None:
        if self._words:
            words = self._words.format(100 * done // max(1, total))
            line = BannerLine(words, "notice", self.tr("Stop"), self._stop.set, is_dismissable=False)
            self._window.banner.show_line(_KEY, line)

    def _fail(self, error: Exception) -> None:
        self._end(str(error), is_error=not isinstance(error, StoppedError))

    def _end(self, sentence: str, *, is_error: bool = False) -> None:
        self._words = ""
        self._window.banner.show_line(_KEY, BannerLine(sentence, "error" if is_error else "notice"))
