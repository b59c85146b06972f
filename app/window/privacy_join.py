"""Joins the privacy page with the folders and the history: what lies where, opened, and forgotten as a whole.

GUI thread only; folders are counted and the history is emptied elsewhere.
"""

from __future__ import annotations

import os
from pathlib import Path

from PySide6.QtCore import QObject, QUrl, Signal
from PySide6.QtGui import QDesktopServices

from inglenook.app.application import HISTORY_FILE, Application
from inglenook.app.window.banner import BannerLine
from inglenook.app.window.confirmation import confirm
from inglenook.app.window.main_window import MainWindow
from inglenook.app.window.privacy_page import KeptPlace, PrivacyPage
from inglenook.storage.backup import automatic_backups
from inglenook.storage.database import Database
from inglenook.storage.forget import forget_conversations

_NAME = "privacy"


class PrivacyJoin(QObject):
    """Feeds the page. Signals: `forgotten()` after all chats and documents are gone."""

    forgotten = Signal()

    def __init__(self, window: MainWindow, application: Application) -> None:
        super().__init__(window)
        self._window, self._app = window, application
        self.page = PrivacyPage(window.theme)
        page = self.page
        page.folder_requested.connect(self._open_folder)
        page.trash_requested.connect(window.actions_by_name["show_trash"].trigger)
        page.trash_requested.connect(window.show_chat)
        page.backup_requested.connect(window.actions_by_name["back_up"].trigger)
        page.forget_requested.connect(self.ask_forget)
        window.add_page(_NAME, page, self.tr("Privacy"), lambda: page.folder_button)
        window.pages.shown.connect(lambda name: self._count() if name == _NAME else None)

    def ask_forget(self) -> None:
        """Ask twice-clearly whether everything is to be forgotten."""
        confirm(
            self._window,
            title=self.tr("Forget everything"),
            question=self.tr("Forget all chats and all documents for good?"),
            detail=self.tr(
                "They cannot be taken back after this. Models and settings stay, and so do the documents' own files "
                "and the backups that you made."
            ),
            button=self.tr("Forget everything"),
            accepted=self._forget,
        )

    def _forget(self) -> None:
        for conversation_id in list(self._window_busy()):
            reply = self._app.answering.active_reply(conversation_id)
            if reply is not None:
                self._app.answering.stop(reply)

        def forgotten(ids: tuple[list[int], list[int]]) -> None:
            conversations, documents = ids
            for conversation_id in conversations:
                self._app.answering.cached_text.forget_conversation(conversation_id)
            for document_id in documents:
                self._app.indexing.forget(document_id)
            words = self.tr("{0} chats and {1} documents were forgotten.")
            self._tell(words.format(len(conversations), len(documents)))
            self._count()
            self.forgotten.emit()

        self._app.tasks.write(_forget_all, forgotten, lambda error: self._tell(str(error), is_error=True))

    def _window_busy(self) -> set[int]:
        entries = self._window.sidebar.chats.model.entries
        return {entry.id for entry in entries if entry.is_busy}

    def _count(self) -> None:
        """Show the places at once, and their sizes when they are counted."""
        places = self._places()
        self.page.set_places([KeptPlace(what, _shown(path), -1) for what, path in places])
        self._app.tasks.work(
            "sizes",
            lambda _task: [KeptPlace(what, _shown(path), _size(path)) for what, path in places],
            self.page.set_places,
        )

    def _places(self) -> list[tuple[str, Path]]:
        folders = self._app.folders
        history = folders.data / HISTORY_FILE
        places = [
            (self.tr("Chats, documents' text, settings"), history),
            (self.tr("Models"), folders.models),
            (self.tr("Size and place of the window"), folders.config),
        ]
        backups = automatic_backups(history)
        places += [(self.tr("Copy from before an update"), backup) for backup in backups]
        return places

    def _open_folder(self) -> None:
        folder = self._app.folders.data
        if not QDesktopServices.openUrl(QUrl.fromLocalFile(str(folder))):
            words = self.tr("No program on this computer opens folders. It is: {0}")
            self._tell(words.format(folder))

    def _tell(self, sentence: str, *, is_error: bool = False) -> None:
        self._window.banner.show_line("notice", BannerLine(sentence, "error" if is_error else "notice"))


def _forget_all(db: Database) -> tuple[list[int], list[int]]:
    """Forget all chats and folders; return the chats, and the documents, which are forgotten one by one."""
    documents = [row[0] for row in db.rows("SELECT id FROM documents")]
    conversations = [row[0] for row in db.rows("SELECT id FROM conversations")]
    db.execute("DELETE FROM folders")
    forget_conversations(db, conversations)
    return conversations, documents


def _shown(path: Path) -> str:
    """Return a path with the user's own folder as "~", as people know it."""
    home = str(Path.home())
    text = str(path)
    return "~" + text[len(home) :] if text.startswith(home + os.sep) else text


def _size(path: Path) -> int:
    """Return how much lies at a path, companions of the history included; what cannot be read counts nothing."""
    total = 0
    if not path.is_dir():
        for name in (path.name, f"{path.name}-wal", f"{path.name}-shm"):
            total += _bytes_of(path.with_name(name))
        return total
    for folder, _folders, names in os.walk(path):
        total += sum(_bytes_of(Path(folder, name)) for name in names)
    return total


def _bytes_of(path: Path) -> int:
    try:
        return path.lstat().st_size
    except OSError:
        return 0
