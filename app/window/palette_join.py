"""What the command palette offers: the window's actions at once, chats and documents as soon as they are read.

GUI thread only.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from PySide6.QtCore import QObject

from inglenook.app.application import Application
from inglenook.app.text.rich_text import label
from inglenook.app.window.actions import ACTIONS
from inglenook.app.window.main_window import MainWindow
from inglenook.app.window.palette import Palette, PaletteEntry
from inglenook.storage.conversation_shelf import ConversationShelf
from inglenook.storage.database import Database
from inglenook.storage.records import Conversation

_NOT_OFFERED = ("palette", "stop")


class PaletteJoin(QObject):
    """Opens the palette. `open_chat(id)` and `open_document(id)` go to what was chosen."""

    def __init__(
        self,
        window: MainWindow,
        application: Application,
        open_chat: Callable[[int], object],
        open_document: Callable[[int], object],
    ) -> None:
        super().__init__(window)
        self._window, self._app = window, application
        self._open_chat, self._open_document = open_chat, open_document
        window.on_action("palette", self.open)

    def open(self) -> Palette:
        """Show the palette."""
        palette = Palette(self._window.theme, self._window, self._search)
        palette.offer(self._actions())
        palette.offer(self._documents())
        reading = self._app.tasks.read(_conversations, lambda found: palette.offer(self._chats(found)))
        palette.finished.connect(reading.cancel)
        palette.open()
        palette.field.setFocus()
        return palette

    def _actions(self) -> list[PaletteEntry]:
        window, entries = self._window, []
        for spec in ACTIONS:
            action = window.actions_by_name[spec.name]
            if action.isVisible() and spec.name not in _NOT_OFFERED:
                words = window.shortcuts.text(spec.name)
                entries.append(PaletteEntry(words, window.shortcuts.shown(spec.name), action.trigger))
        return entries

    def _documents(self) -> list[PaletteEntry]:
        kind = self.tr("Document")
        return [
            PaletteEntry(label(entry.name, 200), kind, partial(self._open_document, entry.id))
            for entry in self._window.sidebar.documents.model.entries
        ]

    def _chats(self, conversations: Sequence[Conversation]) -> list[PaletteEntry]:
        kinds = {False: self.tr("Chat"), True: self.tr("Archive")}
        return [
            PaletteEntry(
                label(one.title, 200) or self.tr("New chat"),
                kinds[one.archived_at_ms is not None],
                partial(self._open_chat, one.id),
            )
            for one in conversations
        ]

    def _search(self, typed: str) -> None:
        self._window.sidebar.chats.choose_shelf("chats")
        self._window.actions_by_name["search_chats"].trigger()
        self._window.sidebar.chats.search.setText(typed)


def _conversations(db: Database) -> list[Conversation]:
    shelf = ConversationShelf(db)
    return shelf.entries("chats") + shelf.entries("archive")
