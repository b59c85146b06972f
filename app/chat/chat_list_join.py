"""Joins the list of chats with the history: what is listed, found, renamed, pinned, put away, deleted, exported.

GUI thread only.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, QTimer
from PySide6.QtWidgets import QFileDialog, QMessageBox

from inglenook.app.application import Application
from inglenook.app.chat.conversation_list import ConversationEntry
from inglenook.app.chat.export import FORMATS, file_name, read_conversation, write_export
from inglenook.app.text.rich_text import label
from inglenook.app.window.banner import BannerLine
from inglenook.app.window.main_window import MainWindow
from inglenook.storage.conversation_search import ConversationHit, search_conversations
from inglenook.storage.conversation_shelf import TRASH_DAYS, ConversationShelf, Shelf
from inglenook.storage.conversations import Conversations
from inglenook.storage.database import Database
from inglenook.storage.records import Conversation

if TYPE_CHECKING:
    from inglenook.app.chat.chat_join import ChatJoin

_TYPING_MS = 150


class ChatListJoin(QObject):
    """Shows one shelf of conversations, or what a search found, and does what the list asks for."""

    def __init__(self, window: MainWindow, application: Application, chats: ChatJoin) -> None:
        super().__init__(chats)
        self._window, self._app, self._chats = window, application, chats
        self._conversations: list[Conversation] = []
        self._hits: list[ConversationHit] | None = None
        self._shelf: Shelf = "chats"
        self._typing = QTimer(self, singleShot=True, interval=_TYPING_MS)
        self._typing.timeout.connect(self._search)
        view = window.sidebar.chats
        view.activated.connect(self._open)
        view.rename_requested.connect(self._rename)
        view.delete_requested.connect(self.delete)
        view.pin_requested.connect(self._pin)
        view.archive_requested.connect(self._archive)
        view.restore_requested.connect(self._restore)
        view.export_requested.connect(self.export)
        view.shelf_chosen.connect(self._choose_shelf)
        view.search_changed.connect(self._typing.start)

    def title_of(self, conversation_id: int | None) -> str:
        """Return the title of a listed conversation; "" for none."""
        return next((c.title for c in self._conversations if c.id == conversation_id), "")

    def start(self) -> None:
        """Delete what has been in the trash for long, and list the conversations."""
        self._app.tasks.write(
            lambda db: ConversationShelf(db).empty_trash(older_than_days=TRASH_DAYS), None, lambda _: None
        )
        self.refresh()

    def refresh(self) -> None:
        """Read the list anew."""
        shelf = self._shelf
        self._app.tasks.read(lambda db: ConversationShelf(db).entries(shelf), self._take)
        if self._hits is not None:
            self._search()

    def show(self) -> None:
        """Show the list as it was read, with what goes on and what is new."""
        view, busy, unread = self._window.sidebar.chats, self._chats.busy, self._chats.unread
        if self._hits is not None:
            entries = [
                ConversationEntry(
                    hit.conversation_id,
                    hit.title,
                    is_busy=hit.conversation_id in busy,
                    is_unread=hit.conversation_id in unread,
                    snippet=hit.snippet or (self.tr("in the archive") if hit.is_archived else ""),
                    is_hit=True,
                )
                for hit in self._hits
            ]
        else:
            entries = [
                ConversationEntry(
                    c.id,
                    c.title,
                    is_busy=c.id in busy,
                    is_unread=c.id in unread,
                    is_pinned=c.pinned_at_ms is not None,
                )
                for c in self._conversations
            ]
        view.set_entries(entries)
        view.set_current(self._chats.conversation_id or 0)

    def delete(self, conversation_id: int) -> None:
        """Move a conversation to the trash and offer to take it back; from the trash, delete it for good once meant."""
        if self._shelf == "trash" and self._hits is None:
            self._ask_delete(conversation_id)
            return
        self._chats.stop_in(conversation_id)
        title = label(self.title_of(conversation_id), 60) or self.tr("New chat")
        self._move(
            conversation_id,
            lambda db: Conversations(db).trash(conversation_id),
            self.tr("“{0}” was moved to the trash, where it stays for {1} days.").format(title, TRASH_DAYS),
            lambda: self._restore(conversation_id),
        )

    def export(self, conversation_id: int) -> None:
        """Ask where to, and write a conversation as the kind of file that was chosen."""
        filters = [f"{words} (*.{suffix})" for suffix, words in FORMATS.items()]
        dialog = QFileDialog(self._window, self.tr("Export chat"))
        dialog.setAcceptMode(QFileDialog.AcceptMode.AcceptSave)
        dialog.setNameFilters(filters)
        dialog.setDefaultSuffix("md")
        suffixes = dict(zip(filters, FORMATS, strict=True))
        dialog.filterSelected.connect(lambda name: dialog.setDefaultSuffix(suffixes.get(name, "md")))
        dialog.selectFile(file_name(self.title_of(conversation_id)))
        dialog.fileSelected.connect(lambda path: self.write_export(conversation_id, Path(path)))
        dialog.open()

    def write_export(self, conversation_id: int, path: Path) -> None:
        """Write a conversation to a file, whose ending says which kind."""

        def failed(error: Exception) -> None:
            self._tell(str(error), is_error=True)

        self._app.tasks.read(
            lambda db: read_conversation(db, conversation_id),
            lambda exported: self._app.tasks.work(
                "export",
                lambda _task: write_export(exported, path),
                lambda _: self._tell(self.tr("Exported to {0}.").format(label(path.name, 80))),
                failed,
            ),
            failed,
        )

    def _take(self, conversations: list[Conversation]) -> None:
        self._conversations = conversations
        self.show()

    def _search(self) -> None:
        text = self._window.sidebar.chats.search.text()
        if not text.strip():
            self._hits = None
            self.show()
            return

        def found(hits: list[ConversationHit]) -> None:
            if self._window.sidebar.chats.search.text() == text:
                self._hits = hits
                self.show()

        self._app.tasks.read(lambda db: search_conversations(db, text), found)

    def _choose_shelf(self, shelf: Shelf) -> None:
        self._shelf = shelf
        self.refresh()

    def _open(self, conversation_id: int) -> None:
        if self._shelf == "trash" and self._hits is None:
            words = self.tr("“{0}” is in the trash. Take it back to read it and go on.")
            title = label(self.title_of(conversation_id), 60) or self.tr("New chat")
            line = BannerLine(
                words.format(title), "notice", self.tr("Take back"), partial(self._restore, conversation_id)
            )
            self._window.banner.show_line("moved", line)
            return
        hit = next((h for h in self._hits or () if h.conversation_id == conversation_id), None)
        self._chats.open(conversation_id, at=hit.message_id if hit is not None else None)

    def _rename(self, conversation_id: int, title: str) -> None:
        def renamed(_result: object) -> None:
            if conversation_id == self._chats.conversation_id:
                self._window.set_title(title)
            self.refresh()

        self._app.tasks.write(lambda db: Conversations(db).rename(conversation_id, title), renamed)

    def _pin(self, conversation_id: int, is_pinned: bool) -> None:
        self._app.tasks.write(
            lambda db: ConversationShelf(db).pin(conversation_id, is_pinned=is_pinned),
            lambda _: self.refresh(),
        )

    def _archive(self, conversation_id: int, is_archived: bool) -> None:
        title = label(self.title_of(conversation_id), 60) or self.tr("New chat")
        words = (
            self.tr("“{0}” was put into the archive.")
            if is_archived
            else self.tr("“{0}” is in the list again.")
        )
        self._move(
            conversation_id,
            lambda db: ConversationShelf(db).archive(conversation_id, is_archived=is_archived),
            words.format(title),
            partial(self._archive, conversation_id, not is_archived),
            is_leaving=is_archived,
        )

    def _move(
        self,
        conversation_id: int,
        work: Callable[[Database], None],
        sentence: str,
        undo: Callable[[], object],
        *,
        is_leaving: bool = True,
    ) -> None:
        def moved(_result: object) -> None:
            if is_leaving and conversation_id == self._chats.conversation_id:
                self._chats.new()
            self.refresh()
            self._window.banner.show_line("moved", BannerLine(sentence, "notice", self.tr("Undo"), undo))

        self._app.tasks.write(work, moved)

    def _restore(self, conversation_id: int) -> None:
        self._window.banner.clear_line("moved")

        def restored(_result: object) -> None:
            self.refresh()
            self._chats.open(conversation_id)

        self._app.tasks.write(lambda db: Conversations(db).restore(conversation_id), restored)

    def _ask_delete(self, conversation_id: int) -> None:
        box = QMessageBox(self._window)
        box.setWindowTitle(self.tr("Delete chat"))
        title = label(self.title_of(conversation_id), 60)
        box.setText(self.tr("Delete “{0}” for good?").format(title))
        box.setInformativeText(self.tr("It cannot be taken back after this."))
        delete = box.addButton(self.tr("Delete"), QMessageBox.ButtonRole.DestructiveRole)
        box.setDefaultButton(box.addButton(QMessageBox.StandardButton.Cancel))
        for made in box.buttons():
            made.setObjectName("plain_button")

        def deleted(_result: object) -> None:
            self._app.answering.cached_text.forget_conversation(conversation_id)
            self.refresh()

        def answered(pressed: object) -> None:
            if pressed is delete:
                self._app.tasks.write(
                    lambda db: ConversationShelf(db).empty_trash(only=[conversation_id]), deleted
                )

        box.buttonClicked.connect(answered)
        box.open()

    def _tell(self, sentence: str, *, is_error: bool = False) -> None:
        self._window.banner.show_line("notice", BannerLine(sentence, "error" if is_error else "notice"))
