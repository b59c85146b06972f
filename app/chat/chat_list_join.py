"""Joins the list of chats with the history: what is listed, found, renamed, pinned, put away, and deleted.

Folders are `folder_join.py`'s, files `export_join.py`'s. GUI thread only.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, QTimer

from inglenook.app.application import Application
from inglenook.app.chat.conversation_list_model import ConversationEntry
from inglenook.app.chat.export_join import ExportJoin
from inglenook.app.chat.folder_join import FolderJoin
from inglenook.app.chat.title_writer import TitleWriter
from inglenook.app.text.rich_text import label
from inglenook.app.window.banner import BannerLine
from inglenook.app.window.confirmation import confirm
from inglenook.app.window.main_window import MainWindow
from inglenook.storage.conversation_search import ConversationHit, SearchFilter, search_conversations
from inglenook.storage.conversation_shelf import TRASH_DAYS, ConversationShelf, Shelf
from inglenook.storage.conversations import Conversations
from inglenook.storage.database import Database
from inglenook.storage.forget import forget_conversations
from inglenook.storage.messages import Messages
from inglenook.storage.records import Conversation
from inglenook.storage.temporary import is_temporary

if TYPE_CHECKING:
    from inglenook.app.chat.chat_join import ChatJoin

_TYPING_MS = 150


class ChatListJoin(QObject):
    """Shows one shelf of conversations, or what a search found, and does what the list asks for."""

    def __init__(self, window: MainWindow, application: Application, chats: ChatJoin) -> None:
        super().__init__(chats)
        self._window, self._app, self._chats = window, application, chats
        self._conversations: list[Conversation] = []
        self._folders: list[str] = []
        self._hits: list[ConversationHit] | None = None
        self._shelf: Shelf = "chats"
        self._typing = QTimer(self, singleShot=True, interval=_TYPING_MS)
        self._typing.timeout.connect(self._search)
        view = window.sidebar.chats
        self._titles = TitleWriter(application, self)
        self._titles.titled.connect(self._take_title)
        view.activated.connect(self._open)
        view.rename_requested.connect(self._rename)
        view.delete_requested.connect(self.delete)
        view.pin_requested.connect(self._pin)
        view.archive_requested.connect(self._archive)
        view.restore_requested.connect(self._restore)
        self.exports = ExportJoin(window, application, self.title_of, self)
        self.folders = FolderJoin(window, application, self)
        self.folders.changed.connect(self.refresh)
        self.folders.shown.connect(self.show)
        view.export_requested.connect(self.exports.export)
        window.on_action("delete_chat", lambda: self._with_current(self.delete))
        window.on_action("export_chat", lambda: self._with_current(self.exports.export))
        window.on_action("export_all", self.export_all)
        view.shelf_chosen.connect(self._choose_shelf)
        view.search_changed.connect(self._typing.start)

    def title_of(self, conversation_id: int | None) -> str:
        """Return the title of a listed conversation; "" for none."""
        return next((c.title for c in self._conversations if c.id == conversation_id), "")

    def _take_title(self, conversation_id: int, title: str) -> None:
        if conversation_id == self._chats.conversation_id:
            self._window.set_title(title)
        self.refresh()

    def start(self) -> None:
        """Delete what has been in the trash for long, and list the conversations."""
        self._app.tasks.write(
            lambda db: ConversationShelf(db).empty_trash(older_than_days=TRASH_DAYS), None, lambda _: None
        )
        self.refresh()

    def refresh(self) -> None:
        """Read the list anew."""
        self._app.tasks.read(partial(_listed, self._shelf), self._take)
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
                    folder=c.folder if self._shelf == "chats" else "",
                )
                for c in self._conversations
            ]
        has_folders = self._shelf == "chats" and self._hits is None
        view.set_entries(entries, self._folders if has_folders else (), self.folders.closed)
        view.filter_button.set_folders(self._folders)
        view.set_current(self._chats.conversation_id or 0)

    def delete(self, conversation_ids: Sequence[int]) -> None:
        """Move conversations to the trash and offer to take them back; from the trash, delete them for good once meant."""
        ids = list(conversation_ids)
        if self._shelf == "trash" and self._hits is None:
            self._ask_delete(ids)
            return
        for conversation_id in ids:
            self._chats.stop_in(conversation_id)

        def trash(db: Database) -> None:
            with db.atomic():
                for conversation_id in ids:
                    Conversations(db).trash(conversation_id)

        words = self.tr("“{0}” was moved to the trash, where it stays for {1} days.")
        many = self.tr("{0} chats were moved to the trash, where they stay for {1} days.")
        sentence = self._sentence(ids, words, many, TRASH_DAYS)
        self._move(ids, trash, sentence, partial(self._restore, ids))

    def export_all(self) -> None:
        """Ask as what and where to, and write every conversation that is not in the trash."""

        def found(ids: list[int]) -> None:
            if ids:
                self.exports.export(ids)
            else:
                self._tell(self.tr("There is no chat to export yet."))

        self._app.tasks.read(_all_ids, found)

    def _take(self, listed: tuple[list[Conversation], list[str]]) -> None:
        self._conversations, self._folders = listed
        self.show()

    def _search(self) -> None:
        view = self._window.sidebar.chats
        text, chosen = view.search.text(), view.filter_button.chosen
        if not text.strip():
            self._hits = None
            self.show()
            return
        only = SearchFilter(chosen.where, chosen.author, chosen.kept, chosen.folder, chosen.since_ms)  # type: ignore[arg-type]  # the same words

        def found(hits: list[ConversationHit]) -> None:
            if view.search.text() == text and view.filter_button.chosen == chosen:
                self._hits = hits
                self.show()

        self._app.tasks.read(lambda db: search_conversations(db, text, only), found)

    def _choose_shelf(self, shelf: Shelf) -> None:
        self._shelf = shelf
        self.refresh()

    def _open(self, conversation_id: int) -> None:
        if self._shelf == "trash" and self._hits is None:
            words = self.tr("“{0}” is in the trash. Take it back to read it and go on.")
            line = BannerLine(
                words.format(self._name(conversation_id)),
                "notice",
                self.tr("Take back"),
                partial(self._restore, [conversation_id]),
            )
            self._window.banner.show_line("moved", line)
            return
        hit = next((h for h in self._hits or () if h.conversation_id == conversation_id), None)
        if hit is None or hit.message_id is None:
            self._chats.open(conversation_id)
            return
        # What was found may be a version that is not shown; from now on it is.
        found, words = hit.message_id, self._window.sidebar.chats.search.text()

        def shown(_result: object) -> None:
            self._chats.open(conversation_id, at=found)
            self._window.chat.find_bar.field.setText(words)

        self._app.tasks.write(lambda db: Messages(db).show(found), shown)

    def _rename(self, conversation_id: int, title: str) -> None:
        def renamed(_result: object) -> None:
            if conversation_id == self._chats.conversation_id:
                self._window.set_title(title)
            self.refresh()

        self._app.tasks.write(lambda db: Conversations(db).rename(conversation_id, title), renamed)

    def _pin(self, ids: list[int], is_pinned: bool) -> None:
        def pin(db: Database) -> None:
            with db.atomic():
                for conversation_id in ids:
                    ConversationShelf(db).pin(conversation_id, is_pinned=is_pinned)

        self._app.tasks.write(pin, lambda _: self.refresh())

    def _archive(self, ids: list[int], is_archived: bool) -> None:
        def archive(db: Database) -> None:
            with db.atomic():
                for conversation_id in ids:
                    ConversationShelf(db).archive(conversation_id, is_archived=is_archived)

        if is_archived:
            words = self.tr("“{0}” was put into the archive.")
            many = self.tr("{0} chats were put into the archive.")
        else:
            words = self.tr("“{0}” is in the list again.")
            many = self.tr("{0} chats are in the list again.")
        undo = partial(self._archive, ids, not is_archived)
        self._move(ids, archive, self._sentence(ids, words, many), undo, is_leaving=is_archived)

    def _move(
        self,
        ids: list[int],
        work: Callable[[Database], None],
        sentence: str,
        undo: Callable[[], object],
        *,
        is_leaving: bool = True,
    ) -> None:
        def moved(_result: object) -> None:
            self._window.sidebar.chats.view.clearSelection()
            if is_leaving and self._chats.conversation_id in ids:
                self._chats.new()
            self.refresh()
            self._window.banner.show_line("moved", BannerLine(sentence, "notice", self.tr("Undo"), undo))

        self._app.tasks.write(work, moved)

    def _restore(self, ids: list[int]) -> None:
        self._window.banner.clear_line("moved")

        def restore(db: Database) -> None:
            with db.atomic():
                for conversation_id in ids:
                    Conversations(db).restore(conversation_id)

        def restored(_result: object) -> None:
            self._window.sidebar.chats.view.clearSelection()
            self.refresh()
            if len(ids) == 1:
                self._chats.open(ids[0])

        self._app.tasks.write(restore, restored)

    def _ask_delete(self, ids: list[int]) -> None:
        def deleted(_result: object) -> None:
            self._window.banner.clear_line("moved")  # there is nothing left to undo
            for conversation_id in ids:
                self._app.answering.cached_text.forget_conversation(conversation_id)
            self.refresh()

        many = self.tr("Delete {0} chats for good?")
        confirm(
            self._window,
            title=self.tr("Delete chat") if len(ids) == 1 else self.tr("Delete chats"),
            question=self._sentence(ids, self.tr("Delete “{0}” for good?"), many),
            detail=self.tr("It cannot be taken back after this."),
            button=self.tr("Delete"),
            accepted=lambda: self._app.tasks.write(lambda db: forget_conversations(db, ids), deleted),
        )

    def _with_current(self, act: Callable[[list[int]], object]) -> None:
        """Do something with what is chosen in the list while that has the keyboard, or else with what is on screen."""
        view, shown = self._window.sidebar.chats, self._chats.conversation_id
        chosen = view.chosen if view.view.hasFocus() else []
        if not chosen and is_temporary(shown):
            self._leave_or_keep(act)
            return
        if chosen or shown is not None:
            act(chosen or [shown])  # type: ignore[list-item]  # one of the two is there

    def _leave_or_keep(self, act: Callable[[list[int]], object]) -> None:
        """A temporary chat is deleted by leaving it, and there is no file of it."""
        if act == self.delete:
            self._chats.new()
        else:
            self._chats.tell(
                self.tr(
                    "A temporary chat is saved nowhere, so it cannot be exported. Select its messages to copy them."
                )
            )

    def _name(self, conversation_id: int) -> str:
        return label(self.title_of(conversation_id), 60) or self.tr("New chat")

    def _sentence(self, ids: list[int], one: str, many: str, *more: object) -> str:
        """Return the sentence for one conversation by its title, or for many by their number."""
        return (one if len(ids) == 1 else many).format(
            self._name(ids[0]) if len(ids) == 1 else len(ids), *more
        )

    def _tell(self, sentence: str, *, is_error: bool = False) -> None:
        self._window.banner.show_line("notice", BannerLine(sentence, "error" if is_error else "notice"))


def _listed(shelf: Shelf, db: Database) -> tuple[list[Conversation], list[str]]:
    shelves = ConversationShelf(db)
    return shelves.entries(shelf), shelves.folders()


def _all_ids(db: Database) -> list[int]:
    shelves = ConversationShelf(db)
    return [one.id for shelf in ("chats", "archive") for one in shelves.entries(shelf, limit=1_000_000)]
