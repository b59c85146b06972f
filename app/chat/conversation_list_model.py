"""The conversations of the side bar as rows: folders with what lies in them, then the rest; and what a search leaves.

A list that is dragged from is also dropped on: a conversation on a folder, on one in a folder, or outside of folders.
Nothing is changed here; what is meant is asked for by signals and shown when the new list arrives. GUI thread only.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from PySide6.QtCore import (
    QAbstractListModel,
    QMimeData,
    QModelIndex,
    QObject,
    QPersistentModelIndex,
    QSortFilterProxyModel,
    Qt,
    Signal,
)

from inglenook.app.chat.conversation_row import ENTRY_ROLE, Index
from inglenook.app.text.plain_label import plain_tooltip
from inglenook.app.text.rich_text import label

MIME_TYPE = "application/x-inglenook-chats"
_NO_PARENT = QModelIndex()
_MOST_DRAGGED_BYTES = 100_000


@dataclass(frozen=True, slots=True)
class ConversationEntry:
    """A conversation as its row shows it; an empty title is one that has not been named yet.

    `is_hit`: a search found it, in the words of `snippet` or else by its title. `folder` "" is outside of folders.
    """

    id: int
    title: str
    is_busy: bool = False
    is_unread: bool = False
    is_pinned: bool = False
    snippet: str = ""
    is_hit: bool = False
    folder: str = ""


@dataclass(frozen=True, slots=True)
class FolderRow:
    """A folder as its row shows it: how many conversations lie in it, whether they are listed, and what goes on there."""

    name: str
    num_chats: int
    is_open: bool
    is_busy: bool = False
    is_unread: bool = False


Row = ConversationEntry | FolderRow


class ConversationListModel(QAbstractListModel):
    """Conversations in a given order, below their folders.

    Signals: `rename_requested(id, title)` and `folder_rename_requested(name, new_name)` when an editor was left with
    other words; `move_requested(ids, folder)` when conversations were dropped.
    """

    rename_requested = Signal(int, str)
    folder_rename_requested = Signal(str, str)
    move_requested = Signal(list, str)

    def __init__(self, entries: Iterable[ConversationEntry] = (), parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._entries = list(entries)
        self._rows: list[Row] = list(self._entries)

    @property
    def entries(self) -> Sequence[ConversationEntry]:
        """All conversations; not to be changed."""
        return self._entries

    def replace(
        self,
        entries: Iterable[ConversationEntry],
        folders: Iterable[str] = (),
        closed: Collection[str] = (),
    ) -> None:
        """Show other conversations, in `folders` of which those in `closed` do not list theirs.

        Rows that stay where they are keep selection and editor.
        """
        self._entries = list(entries)
        new = _rows(self._entries, list(folders), closed)
        if [_key(row) for row in new] == [_key(row) for row in self._rows]:
            changed = [place for place, row in enumerate(new) if row != self._rows[place]]
            self._rows = new
            for place in changed:
                self.dataChanged.emit(self.index(place), self.index(place))
            return
        self.beginResetModel()
        self._rows = new
        self.endResetModel()

    def row_of(self, conversation_id: int) -> int:
        """Return the row of a conversation, -1 without one."""
        return self._place(("chat", conversation_id))

    def row_of_folder(self, name: str) -> int:
        """Return the row of a folder, -1 without one."""
        return self._place(("folder", name))

    def rowCount(self, parent: Index = _NO_PARENT) -> int:
        return 0 if parent.isValid() else len(self._rows)

    def flags(self, index: Index) -> Qt.ItemFlag:
        flags = super().flags(index) | Qt.ItemFlag.ItemIsDropEnabled
        if not index.isValid():
            return Qt.ItemFlag.ItemIsDropEnabled
        flags |= Qt.ItemFlag.ItemIsEditable
        if isinstance(self._rows[index.row()], ConversationEntry):
            flags |= Qt.ItemFlag.ItemIsDragEnabled
        return flags

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        if not index.isValid() or index.row() >= len(self._rows):
            return None
        row = self._rows[index.row()]
        if role == ENTRY_ROLE:
            return row
        if isinstance(row, FolderRow):
            return self._folder_data(row, role)
        title = label(row.title, 300) or self.tr("New chat")
        if role == Qt.ItemDataRole.DisplayRole:
            return title
        if role == Qt.ItemDataRole.EditRole:
            return row.title
        if role == Qt.ItemDataRole.ToolTipRole:
            return plain_tooltip(title)
        if role == Qt.ItemDataRole.AccessibleTextRole:
            return self._said(row, title)
        return None

    def setData(self, index: Index, value: Any, role: int = Qt.ItemDataRole.EditRole) -> bool:
        if role != Qt.ItemDataRole.EditRole or not index.isValid():
            return False
        row, words = self._rows[index.row()], " ".join(str(value).split())
        if isinstance(row, FolderRow):
            if words and words != row.name:
                self.folder_rename_requested.emit(row.name, words)
        elif words and words != row.title:
            self.rename_requested.emit(row.id, words)
        return bool(words)

    # Dragging.

    def supportedDropActions(self) -> Qt.DropAction:
        return Qt.DropAction.MoveAction

    def mimeTypes(self) -> list[str]:
        return [MIME_TYPE]

    def mimeData(self, indexes: Sequence[QModelIndex]) -> QMimeData:
        rows = [self._rows[index.row()] for index in indexes]
        data = QMimeData()
        ids = [row.id for row in rows if isinstance(row, ConversationEntry)]
        data.setData(MIME_TYPE, json.dumps(ids).encode())
        return data

    def dropMimeData(
        self, data: QMimeData, action: Qt.DropAction, row: int, column: int, parent: Index
    ) -> bool:
        ids = self._dragged(data)
        folder = ""
        if parent.isValid():
            target = self._rows[parent.row()]
            folder = target.name if isinstance(target, FolderRow) else target.folder
        ids = [one for one in ids if self._entry(one).folder != folder]
        if ids:
            self.move_requested.emit(ids, folder)
        # False, so that the view does not take the rows away itself.
        return False

    def _dragged(self, data: QMimeData) -> list[int]:
        """Return the conversations that are dragged; the data may come from any program."""
        raw = bytes(data.data(MIME_TYPE).data())[:_MOST_DRAGGED_BYTES]
        try:
            ids = json.loads(raw)
        except ValueError:
            return []
        known = {entry.id for entry in self._entries}
        if not isinstance(ids, list):
            return []
        return [one for one in ids if type(one) is int and one in known]

    def _entry(self, conversation_id: int) -> ConversationEntry:
        return next(entry for entry in self._entries if entry.id == conversation_id)

    def _place(self, key: tuple[str, int | str]) -> int:
        return next((place for place, row in enumerate(self._rows) if _key(row) == key), -1)

    def _folder_data(self, row: FolderRow, role: int) -> Any:
        name = label(row.name, 120)
        if role in (Qt.ItemDataRole.DisplayRole, Qt.ItemDataRole.EditRole):
            return row.name if role == Qt.ItemDataRole.EditRole else name
        if role == Qt.ItemDataRole.ToolTipRole:
            return plain_tooltip(name)
        if role == Qt.ItemDataRole.AccessibleTextRole:
            words = (
                self.tr("Folder {0}, {1} chats, open") if row.is_open else self.tr("Folder {0}, {1} chats")
            )
            return words.format(name, row.num_chats)
        return None

    def _said(self, entry: ConversationEntry, title: str) -> str:
        if entry.is_busy:
            return self.tr("{0}, being answered").format(title)
        if entry.is_unread:
            return self.tr("{0}, new answer").format(title)
        if entry.snippet:
            return f"{title}: {label(entry.snippet, 200)}"
        return self.tr("{0}, pinned").format(title) if entry.is_pinned else title


class ConversationFilter(QSortFilterProxyModel):
    """Keeps the conversations whose title holds every word of `set_words`, in any case; without words, what is not in
    a closed folder."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._words: list[str] = []
        self._closed: frozenset[str] = frozenset()

    @property
    def is_searching(self) -> bool:
        """Whether there are words."""
        return bool(self._words)

    def set_words(self, text: str) -> None:
        """Search for other words."""
        self.beginFilterChange()
        self._words = text.casefold().split()
        self.endFilterChange()

    def set_closed(self, names: Iterable[str]) -> None:
        """Do not list what lies in these folders."""
        closed = frozenset(names)
        if closed != self._closed:
            self.beginFilterChange()
            self._closed = closed
            self.endFilterChange()

    def filterAcceptsRow(self, row: int, parent: QModelIndex | QPersistentModelIndex) -> bool:
        entry = self.sourceModel().index(row, 0, parent).data(ENTRY_ROLE)
        if isinstance(entry, FolderRow):
            return not self._words
        if entry.is_hit:
            return True
        if not self._words:
            return entry.folder not in self._closed
        title = str(self.sourceModel().index(row, 0, parent).data() or "").casefold()
        return all(word in title for word in self._words)


def _rows(entries: list[ConversationEntry], folders: list[str], closed: Collection[str]) -> list[Row]:
    """Return pinned conversations, then each folder with its own, then the rest; without folders, all as they come."""
    if not folders:
        return list(entries)
    known = set(folders)
    outside = [entry for entry in entries if entry.folder not in known]
    rows: list[Row] = [entry for entry in outside if entry.is_pinned]
    for name in folders:
        inside = [entry for entry in entries if entry.folder == name]
        is_open = name not in closed
        busy, unread = any(e.is_busy for e in inside), any(e.is_unread for e in inside)
        rows.append(FolderRow(name, len(inside), is_open, busy, unread))
        rows += inside
    return rows + [entry for entry in outside if not entry.is_pinned]


def _key(row: Row) -> tuple[str, int | str]:
    return ("folder", row.name) if isinstance(row, FolderRow) else ("chat", row.id)
