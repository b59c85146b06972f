"""Writes conversations to files: one where the user says, many into a folder, a file each and none over another.

GUI thread only; reading and writing are not done there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from PySide6.QtCore import QCoreApplication, QObject
from PySide6.QtWidgets import QFileDialog, QMenu

from inglenook.app.application import Application
from inglenook.app.chat.export import (
    FORMATS,
    ExportedConversation,
    file_name,
    free_path,
    read_conversation,
    write_export,
)
from inglenook.app.text.rich_text import label
from inglenook.app.window.banner import BannerLine
from inglenook.app.window.main_window import MainWindow
from inglenook.storage.errors import NotFoundError


class ExportJoin(QObject):
    """Exports conversations by id; `title_of` names one, for its file."""

    def __init__(
        self, window: MainWindow, application: Application, title_of: Callable[[int], str], parent: QObject
    ) -> None:
        super().__init__(parent)
        self._window, self._app, self._title_of = window, application, title_of
        self._is_cancelled = False

    def export(self, conversation_ids: Sequence[int]) -> None:
        """Ask where to and as what, and write the conversations."""
        if len(conversation_ids) == 1:
            self._ask_one(conversation_ids[0])
        elif conversation_ids:
            self.format_menu(conversation_ids).popup(self._window.cursor().pos())

    def format_menu(self, conversation_ids: Sequence[int]) -> QMenu:
        """Make the menu of the kinds of file that many can be written as."""
        menu = QMenu(self._window)
        menu.addSection(self.tr("Export {0} chats as").format(len(conversation_ids)))
        for suffix, words in FORMATS.items():
            menu.addAction(
                QCoreApplication.translate("export", words),
                partial(self._ask_folder, list(conversation_ids), suffix),
            )
        menu.aboutToHide.connect(menu.deleteLater)
        return menu

    def write_one(self, conversation_id: int, path: Path) -> None:
        """Write a conversation to a file, whose ending says which kind."""

        def done(_result: object) -> None:
            self._tell(self.tr("Exported to {0}.").format(label(path.name, 80)))

        self._write(conversation_id, lambda _exported: path, done, self._fail)

    def write_many(self, conversation_ids: Sequence[int], folder: Path, suffix: str) -> None:
        """Write conversations into a folder, one after the other; one that was deleted meanwhile is left out."""
        total, left, written = len(conversation_ids), list(conversation_ids), []
        self._is_cancelled = False

        def path_of(exported: ExportedConversation) -> Path:
            return free_path(folder, file_name(exported.conversation.title), suffix)

        def done(path: Path | None) -> None:
            if path is not None:
                written.append(path)
            if self._is_cancelled or not left:
                words = self.tr("Exported {0} of {1} chats to {2}.")
                self._tell(words.format(len(written), total, label(folder.name or str(folder), 80)))
                return
            words = self.tr("Exporting chat {0} of {1}…").format(total - len(left) + 1, total)
            line = BannerLine(words, "notice", self.tr("Stop"), self._cancel, is_dismissable=False)
            self._window.banner.show_line("notice", line)
            self._write(left.pop(0), path_of, done, failed)

        def failed(error: Exception) -> None:
            if isinstance(error, NotFoundError):
                done(None)
            else:
                words = self.tr("{0} of {1} chats were exported, then this went wrong: {2}")
                self._tell(words.format(len(written), total, error), is_error=True)

        done(None)

    def _cancel(self) -> None:
        self._is_cancelled = True

    def _ask_one(self, conversation_id: int) -> None:
        named = {suffix: QCoreApplication.translate("export", words) for suffix, words in FORMATS.items()}
        filters = [f"{words} (*.{suffix})" for suffix, words in named.items()]
        dialog = QFileDialog(self._window, self.tr("Export chat"))
        dialog.setAcceptMode(QFileDialog.AcceptMode.AcceptSave)
        dialog.setNameFilters(filters)
        dialog.setDefaultSuffix("md")
        suffixes = dict(zip(filters, FORMATS, strict=True))
        dialog.filterSelected.connect(lambda name: dialog.setDefaultSuffix(suffixes.get(name, "md")))
        dialog.selectFile(file_name(self._title_of(conversation_id)))
        dialog.fileSelected.connect(lambda path: self.write_one(conversation_id, Path(path)))
        dialog.open()

    def _ask_folder(self, conversation_ids: list[int], suffix: str) -> None:
        words = self.tr("Export {0} chats into a folder").format(len(conversation_ids))
        dialog = QFileDialog(self._window, words)
        dialog.setFileMode(QFileDialog.FileMode.Directory)
        dialog.setOption(QFileDialog.Option.ShowDirsOnly)
        dialog.fileSelected.connect(lambda path: self.write_many(conversation_ids, Path(path), suffix))
        dialog.open()

    def _write(
        self,
        conversation_id: int,
        path_of: Callable[[ExportedConversation], Path],
        done: Callable[[Path], object],
        failed: Callable[[Exception], object],
    ) -> None:
        def write(exported: ExportedConversation) -> Path:
            path = path_of(exported)
            write_export(exported, path)
            return path

        self._app.tasks.read(
            lambda db: read_conversation(db, conversation_id),
            lambda exported: self._app.tasks.work("export", lambda _task: write(exported), done, failed),
            failed,
        )

    def _fail(self, error: Exception) -> None:
        self._tell(str(error), is_error=True)

    def _tell(self, sentence: str, *, is_error: bool = False) -> None:
        self._window.banner.show_line("notice", BannerLine(sentence, "error" if is_error else "notice"))
