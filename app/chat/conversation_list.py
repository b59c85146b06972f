"""The conversations in the side bar: model over a Python list, filter and the view with its search field.

The list is in the order it is given, newest activity first. It changes nothing itself: renaming and deleting are
asked for by signals and shown when the new list arrives. GUI thread only.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from PySide6.QtCore import (
    QAbstractListModel,
    QItemSelectionModel,
    QModelIndex,
    QObject,
    QPoint,
    QSortFilterProxyModel,
    Qt,
    Signal,
)
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import (
    QHBoxLayout,
    QLineEdit,
    QListView,
    QMenu,
    QStackedLayout,
    QVBoxLayout,
    QWidget,
)

from inglenook.app.chat.conversation_row import ENTRY_ROLE, ConversationDelegate, Index
from inglenook.app.text.plain_label import PlainLabel, button, plain_tooltip
from inglenook.app.text.rich_text import label
from inglenook.app.window.theme import Theme

_NO_PARENT = QModelIndex()


@dataclass(frozen=True, slots=True)
class ConversationEntry:
    """A conversation as its row shows it; an empty title is one that has not been named yet.

    `is_hit`: a search found it, in the words of `snippet` or else by its title.
    """

    id: int
    title: str
    is_busy: bool = False
    is_unread: bool = False
    is_pinned: bool = False
    snippet: str = ""
    is_hit: bool = False


class ConversationListModel(QAbstractListModel):
    """Conversations in a given order. Signals: `rename_requested(id, title)` when an editor was left with a new title."""

    rename_requested = Signal(int, str)

    def __init__(self, entries: Iterable[ConversationEntry] = (), parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._entries = list(entries)

    @property
    def entries(self) -> Sequence[ConversationEntry]:
        """All conversations; not to be changed."""
        return self._entries

    def replace(self, entries: Iterable[ConversationEntry]) -> None:
        """Show other conversations; rows that stay where they are keep selection and editor."""
        new = list(entries)
        if [entry.id for entry in new] == [entry.id for entry in self._entries]:
            changed = [row for row, entry in enumerate(new) if entry != self._entries[row]]
            self._entries = new
            for row in changed:
                self.dataChanged.emit(self.index(row), self.index(row))
            return
        self.beginResetModel()
        self._entries = new
        self.endResetModel()

    def row_of(self, conversation_id: int) -> int:
        """Return the row of a conversation, -1 without one."""
        return next((row for row, entry in enumerate(self._entries) if entry.id == conversation_id), -1)

    def rowCount(self, parent: Index = _NO_PARENT) -> int:
        return 0 if parent.isValid() else len(self._entries)

    def flags(self, index: Index) -> Qt.ItemFlag:
        return super().flags(index) | (
            Qt.ItemFlag.ItemIsEditable if index.isValid() else Qt.ItemFlag.NoItemFlags
        )

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        if not index.isValid() or index.row() >= len(self._entries):
            return None
        entry = self._entries[index.row()]
        title = label(entry.title, 300) or self.tr("New chat")
        if role == ENTRY_ROLE:
            return entry
        if role == Qt.ItemDataRole.DisplayRole:
            return title
        if role == Qt.ItemDataRole.EditRole:
            return entry.title
        if role == Qt.ItemDataRole.ToolTipRole:
            return plain_tooltip(title)
        if role == Qt.ItemDataRole.AccessibleTextRole:
            if entry.is_busy:
                return self.tr("{0}, being answered").format(title)
            if entry.is_unread:
                return self.tr("{0}, new answer").format(title)
            if entry.snippet:
                return f"{title}: {label(entry.snippet, 200)}"
            return self.tr("{0}, pinned").format(title) if entry.is_pinned else title
        return None

    def setData(self, index: Index, value: Any, role: int = Qt.ItemDataRole.EditRole) -> bool:
        if role != Qt.ItemDataRole.EditRole or not index.isValid():
            return False
        entry, title = self._entries[index.row()], " ".join(str(value).split())
        if title and title != entry.title:
            self.rename_requested.emit(entry.id, title)
        return bool(title)


class ConversationFilter(QSortFilterProxyModel):
    """Keeps the conversations whose title holds every word of `set_words`, in any case."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._words: list[str] = []

    def set_words(self, text: str) -> None:
        """Search for other words."""
        self.beginFilterChange()
        self._words = text.casefold().split()
        self.endFilterChange()

    def filterAcceptsRow(self, row: int, parent: Index) -> bool:
        index = self.sourceModel().index(row, 0, parent)
        if index.data(ENTRY_ROLE).is_hit:
            return True
        title = str(index.data() or "").casefold()
        return all(word in title for word in self._words)


class ConversationList(QWidget):
    """The search field and the list.

    Signals: `activated(id)` of a conversation to show; `rename_requested(id, title)`; `delete_requested(id)`;
    `pin_requested(id, is_pinned)`; `archive_requested(id, is_archived)`; `restore_requested(id)` from the trash;
    `export_requested(id)`; `shelf_chosen(shelf)` "chats", "archive" or "trash"; `search_changed()`.
    """

    activated = Signal(int)
    rename_requested = Signal(int, str)
    delete_requested = Signal(int)
    pin_requested = Signal(int, bool)
    archive_requested = Signal(int, bool)
    restore_requested = Signal(int)
    export_requested = Signal(int)
    shelf_chosen = Signal(str)
    search_changed = Signal()

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._shelf = "chats"
        self.model = ConversationListModel(parent=self)
        self._filter = ConversationFilter(self)
        self._filter.setSourceModel(self.model)
        self._current = 0
        self.search = QLineEdit()
        self.search.setPlaceholderText(self.tr("Search chats"))
        self.search.setAccessibleName(self.tr("Search chats by title and content"))
        self.search.setClearButtonEnabled(True)
        self.search.textChanged.connect(self._search)
        self.view = _View()
        self.view.setModel(self._filter)
        self.view.setItemDelegate(ConversationDelegate(theme, self.view))
        self.view.setAccessibleName(self.tr("Chats"))
        self.view.clicked.connect(self._activate)
        self.view.activated.connect(self._activate)
        self.view.delete_pressed.connect(self._ask_delete)
        self.view.customContextMenuRequested.connect(lambda point: self._menu(point))
        self._empty = PlainLabel(look="small")
        self._empty.setAlignment(Qt.AlignmentFlag.AlignTop | Qt.AlignmentFlag.AlignLeading)
        self._empty.setContentsMargins(theme.px(10), theme.px(6), theme.px(10), 0)
        self._shelf_name = PlainLabel()
        self._shelf_name.setObjectName("section")
        self.back_button = button(self.tr("Back to chats"), "quiet_button")
        self.back_button.clicked.connect(lambda: self.choose_shelf("chats"))
        self._shelf_line = QWidget()
        line = QHBoxLayout(self._shelf_line)
        line.setContentsMargins(theme.px(10), 0, 0, 0)
        line.addWidget(self._shelf_name, 1)
        line.addWidget(self.back_button)
        self._shelf_line.hide()
        self._stack = QStackedLayout()
        self._stack.addWidget(self.view)
        self._stack.addWidget(self._empty)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(theme.px(6))
        layout.addWidget(self.search)
        layout.addWidget(self._shelf_line)
        layout.addLayout(self._stack)
        self.model.rename_requested.connect(self.rename_requested)
        self._show_emptiness()

    def set_entries(self, entries: Iterable[ConversationEntry]) -> None:
        """Show these conversations; the current one stays current."""
        self.model.replace(entries)
        self._mark_current()
        self._show_emptiness()

    def set_current(self, conversation_id: int) -> None:
        """Mark the conversation that is on screen; 0 for none."""
        self._current = conversation_id
        self._mark_current()

    def choose_shelf(self, shelf: str) -> None:
        """List the chats, what was put away, or the trash."""
        self._shelf = shelf
        names = {"archive": self.tr("Archive"), "trash": self.tr("Trash, kept for 30 days")}
        self._shelf_name.setText(names.get(shelf, ""))
        self._shelf_line.setVisible(shelf in names)
        self.search.clear()
        self.shelf_chosen.emit(shelf)
        self._show_emptiness()

    def rename_current(self) -> None:
        """Open the editor of the current row."""
        index = self.view.currentIndex()
        if index.isValid():
            self.view.setFocus()
            self.view.edit(index)

    def _search(self, text: str) -> None:
        self._filter.set_words(text)
        self._mark_current()
        self._show_emptiness()
        self.search_changed.emit()

    def _mark_current(self) -> None:
        row = self.model.row_of(self._current)
        index = self._filter.mapFromSource(self.model.index(row, 0)) if row >= 0 else QModelIndex()
        flag = QItemSelectionModel.SelectionFlag.ClearAndSelect
        self.view.selectionModel().setCurrentIndex(index, flag)
        if not index.isValid():
            self.view.clearSelection()

    def _show_emptiness(self) -> None:
        is_empty = self._filter.rowCount() == 0
        searched = self.search.text().strip()
        nothing = {
            "archive": self.tr("Nothing was put away. Chats get here by “Archive” in their menu."),
            "trash": self.tr("The trash is empty."),
        }
        self._empty.setText(
            self.tr("Nothing in titles or messages: “{0}”").format(label(searched, 40))
            if searched
            else nothing.get(self._shelf, self.tr("Your chats will be listed here."))
        )
        self._stack.setCurrentIndex(int(is_empty))
        self.search.setVisible(bool(self.model.entries or searched) or self._shelf != "chats")

    def _activate(self, index: QModelIndex) -> None:
        entry = index.data(ENTRY_ROLE)
        if entry is not None:
            self.activated.emit(entry.id)

    def _ask_delete(self) -> None:
        entry = self.view.currentIndex().data(ENTRY_ROLE)
        if entry is not None:
            self.delete_requested.emit(entry.id)

    def _menu(self, point: QPoint) -> None:
        index = self.view.indexAt(point)
        if not index.isValid():
            return
        self.view.selectionModel().setCurrentIndex(index, QItemSelectionModel.SelectionFlag.NoUpdate)
        menu = self.menu(index)
        menu.exec(self.view.viewport().mapToGlobal(point))
        menu.deleteLater()

    def menu(self, index: QModelIndex) -> QMenu:
        """Make the menu of a row, for the shelf that is listed."""
        menu, entry = QMenu(self), index.data(ENTRY_ROLE)
        if self._shelf == "trash" and not entry.is_hit:
            menu.addAction(self.tr("Take back"), lambda: self.restore_requested.emit(entry.id))
            menu.addAction(self.tr("Export…"), lambda: self.export_requested.emit(entry.id))
            menu.addSeparator()
            menu.addAction(self.tr("Delete for good…"), lambda: self.delete_requested.emit(entry.id))
            return menu
        is_archived = self._shelf == "archive"
        menu.addAction(self.tr("Open"), lambda: self.activated.emit(entry.id))
        menu.addAction(self.tr("Rename"), lambda: self.view.edit(index))
        pin = self.tr("Unpin") if entry.is_pinned else self.tr("Pin on top")
        menu.addAction(pin, lambda: self.pin_requested.emit(entry.id, not entry.is_pinned))
        away = self.tr("Back to the list") if is_archived else self.tr("Archive")
        menu.addAction(away, lambda: self.archive_requested.emit(entry.id, not is_archived))
        menu.addAction(self.tr("Export…"), lambda: self.export_requested.emit(entry.id))
        menu.addSeparator()
        menu.addAction(self.tr("Move to the trash"), lambda: self.delete_requested.emit(entry.id))
        return menu


class _View(QListView):
    delete_pressed = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("list")
        self.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)
        self.setEditTriggers(QListView.EditTrigger.EditKeyPressed)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setVerticalScrollMode(QListView.ScrollMode.ScrollPerPixel)
        self.setMouseTracking(True)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if (
            event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter)
            and self.state() != QListView.State.EditingState
        ):
            self.activated.emit(self.currentIndex())
        elif event.key() == Qt.Key.Key_Delete and self.currentIndex().isValid():
            self.delete_pressed.emit()
        else:
            super().keyPressEvent(event)
