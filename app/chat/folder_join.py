"""Joins the folders of the list of chats with the history: made, renamed, moved into, deleted, opened and closed.

GUI thread only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, QPoint, Signal

from inglenook.app.text.rich_text import label
from inglenook.app.window.banner import BannerLine
from inglenook.storage.conversation_shelf import ConversationShelf
from inglenook.storage.database import Database

if TYPE_CHECKING:
    from inglenook.app.application import Application
    from inglenook.app.window.main_window import MainWindow

_CLOSED = "window.closed_folders"


class FolderJoin(QObject):
    """Does what the list asks for its folders.

    Signals: `changed()` after folders or what lies in them changed; `shown()` after one was opened or closed.
    """

    changed = Signal()
    shown = Signal()

    def __init__(self, window: MainWindow, application: Application, parent: QObject) -> None:
        super().__init__(parent)
        self._window, self._app = window, application
        chats = window.sidebar.chats
        chats.move_requested.connect(self.move)
        chats.folder_requested.connect(self.make)
        chats.folder_rename_requested.connect(self._rename)
        chats.folder_delete_requested.connect(self._delete)
        chats.folder_toggled.connect(self._toggle)
        window.on_action("new_folder", self.make)
        window.on_action("move_chat", self._ask_where)

    @property
    def closed(self) -> set[str]:
        """The folders that do not list what lies in them."""
        kept = self._app.settings.value(_CLOSED)
        return {name for name, is_closed in kept.items() if is_closed is True}

    def make(self, conversation_ids: list[int] | None = None) -> None:
        """Make a folder with these conversations in it, and let it be named."""
        wanted, ids = self.tr("New folder"), conversation_ids or []

        def make(db: Database) -> str:
            shelf = ConversationShelf(db)
            with db.atomic():
                taken = {name.casefold() for name in shelf.folders()}
                names = [wanted, *(f"{wanted} {number}" for number in range(2, len(taken) + 3))]
                name = shelf.make_folder(next(one for one in names if one.casefold() not in taken))
                shelf.put_in_folder(ids, name)
                return name

        def made(name: str) -> None:
            self._window.sidebar.show()
            self._window.sidebar.chats.choose_shelf("chats")
            self.changed.emit()
            # The list is read on the same thread after it, so by then the folder is there.
            self._app.tasks.read(lambda _db: name, self._window.sidebar.chats.rename_folder)

        self._app.tasks.write(make, made)

    def move(self, conversation_ids: list[int], folder: str) -> None:
        """Put conversations into a folder, or with "" out of theirs."""
        self._app.tasks.write(
            lambda db: ConversationShelf(db).put_in_folder(conversation_ids, folder), self._changed
        )

    def _ask_where(self) -> None:
        """Offer the folders for what is chosen in the list."""
        chats = self._window.sidebar.chats
        chosen = chats.chosen
        if chosen:
            self._window.sidebar.show()
            menu = chats.folder_menu(chosen)
            menu.aboutToHide.connect(menu.deleteLater)
            place = chats.view.visualRect(chats.view.currentIndex())
            menu.popup(chats.view.viewport().mapToGlobal(QPoint(place.left(), place.bottom())))

    def _rename(self, name: str, new_name: str) -> None:
        closed = self.closed

        def renamed(kept: str) -> None:
            if name in closed:
                self._keep(closed - {name} | {kept})
            self.changed.emit()

        self._app.tasks.write(
            lambda db: ConversationShelf(db).rename_folder(name, new_name), renamed, self._fail
        )

    def _delete(self, name: str) -> None:
        def deleted(ids: list[int]) -> None:
            self._keep(self.closed - {name})
            words = self.tr("The folder “{0}” was deleted; its chats are in the list.")
            line = BannerLine(
                words.format(label(name, 60)), "notice", self.tr("Undo"), lambda: self._undo(name, ids)
            )
            self._window.banner.show_line("moved", line)
            self.changed.emit()

        self._app.tasks.write(lambda db: ConversationShelf(db).delete_folder(name), deleted, self._fail)

    def _undo(self, name: str, ids: list[int]) -> None:
        self._window.banner.clear_line("moved")
        self.move(ids, name)

    def _toggle(self, name: str, is_open: bool) -> None:
        self._keep(self.closed - {name} if is_open else self.closed | {name})
        self.shown.emit()

    def _keep(self, closed: set[str]) -> None:
        if closed != self.closed:
            self._app.settings.set(_CLOSED, dict.fromkeys(sorted(closed), True))

    def _changed(self, _result: object) -> None:
        self._window.sidebar.chats.view.clearSelection()
        self.changed.emit()

    def _fail(self, error: Exception) -> None:
        self._window.banner.show_line("notice", BannerLine(str(error), "error"))
        self.changed.emit()
