"""The conversations in the side bar: the search field with its filter, folders, and the rows of one shelf.

The list is in the order it is given, newest activity first. It changes nothing itself: renaming, moving and deleting
are asked for by signals and shown when the new list arrives. Several rows can be chosen with Ctrl and Shift, and what
the menu does is then done to all of them. GUI thread only.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial

from PySide6.QtCore import QItemSelectionModel, QModelIndex, QPersistentModelIndex, QPoint, Qt, QTimer, Signal
from PySide6.QtGui import QContextMenuEvent, QKeyEvent
from PySide6.QtWidgets import (
    QApplication,
    QHBoxLayout,
    QLineEdit,
    QListView,
    QMenu,
    QStackedLayout,
    QVBoxLayout,
    QWidget,
)

from inglenook.app.chat.conversation_list_model import (
    ConversationEntry,
    ConversationFilter,
    ConversationListModel,
    FolderRow,
)
from inglenook.app.chat.conversation_row import ENTRY_ROLE, ConversationDelegate, Index
from inglenook.app.chat.search_filter_button import SearchFilterButton
from inglenook.app.text.plain_label import PlainLabel, button, plain_button_text
from inglenook.app.text.rich_text import label
from inglenook.app.window.theme import Theme

_TURN_MS = 50
_WITHOUT_OPENING = Qt.KeyboardModifier.ControlModifier | Qt.KeyboardModifier.ShiftModifier


class ConversationList(QWidget):
    """The search field and the list.

    Signals: `activated(id)` of a conversation to show; `rename_requested(id, title)`; `delete_requested(ids)`;
    `pin_requested(ids, is_pinned)`; `archive_requested(ids, is_archived)`; `restore_requested(ids)` from the trash;
    `export_requested(ids)`; `move_requested(ids, folder)`, "" out of folders; `folder_requested(ids)`: a new one, with
    these in it; `folder_rename_requested(name, new_name)`; `folder_delete_requested(name)`; `folder_toggled(name,
    is_open)`; `shelf_chosen(shelf)` "chats", "archive" or "trash"; `search_changed()`.
    """

    activated = Signal(int)
    rename_requested = Signal(int, str)
    delete_requested = Signal(list)
    pin_requested = Signal(list, bool)
    archive_requested = Signal(list, bool)
    restore_requested = Signal(list)
    export_requested = Signal(list)
    move_requested = Signal(list, str)
    folder_requested = Signal(list)
    folder_rename_requested = Signal(str, str)
    folder_delete_requested = Signal(str)
    folder_toggled = Signal(str, bool)
    shelf_chosen = Signal(str)
    search_changed = Signal()

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._shelf = "chats"
        self.model = ConversationListModel(parent=self)
        self._filter = ConversationFilter(self)
        self._filter.setSourceModel(self.model)
        self._current = 0
        self._folders: list[str] = []
        self._closed: set[str] = set()
        self._theme = theme
        self._turning = QTimer(self, interval=_TURN_MS)
        self._turning.timeout.connect(self._turn)
        theme.changed.connect(self._show_activity)
        self.search = QLineEdit()
        self.search.setPlaceholderText(self.tr("Search chats"))
        self.search.setAccessibleName(self.tr("Search chats by title and content"))
        self.search.setClearButtonEnabled(True)
        self.search.textChanged.connect(self._search)
        self.filter_button = SearchFilterButton(theme)
        self.filter_button.changed.connect(lambda: self._search(self.search.text()))
        self._search_line = QWidget()
        searching = QHBoxLayout(self._search_line)
        searching.setContentsMargins(0, 0, 0, 0)
        searching.setSpacing(theme.px(4))
        searching.addWidget(self.search, 1)
        searching.addWidget(self.filter_button)
        self._confined = PlainLabel(look="small")
        self._confined.setContentsMargins(theme.px(10), 0, theme.px(10), 0)
        self._confined.hide()
        self.view = _View()
        self.view.setModel(self._filter)
        self.view.setItemDelegate(ConversationDelegate(theme, self.view))
        self.view.setAccessibleName(self.tr("Chats"))
        self.view.clicked.connect(self._click)
        self.view.return_pressed.connect(self._activate)
        self.view.delete_pressed.connect(self._ask_delete)
        self.view.sideways_pressed.connect(self._open_or_close)
        self.view.menu_requested.connect(self._menu)
        self._empty = PlainLabel(look="small")
        self._empty.setAlignment(Qt.AlignmentFlag.AlignTop | Qt.AlignmentFlag.AlignLeading)
        self._empty.setContentsMargins(theme.px(10), theme.px(6), theme.px(10), 0)
        self._shelf_name = PlainLabel()
        self._shelf_name.setObjectName("section")
        self.back_button = button(self.tr("Back to chats"), "quiet_button")
        self.back_button.clicked.connect(lambda: self.choose_shelf("chats"))
        self._shelf_line = QWidget()
        line = QHBoxLayout(self._shelf_line)
        line.setContentsMargins(theme.px(10), 0, theme.px(10), 0)
        line.addWidget(self._shelf_name, 1)
        line.addWidget(self.back_button)
        self._shelf_line.hide()
        self._stack = QStackedLayout()
        self._stack.addWidget(self.view)
        self._stack.addWidget(self._empty)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(theme.px(6))
        layout.addWidget(self._search_line)
        layout.addWidget(self._confined)
        layout.addWidget(self._shelf_line)
        layout.addLayout(self._stack)
        self.model.rename_requested.connect(self.rename_requested)
        self.model.folder_rename_requested.connect(self.folder_rename_requested)
        self.model.move_requested.connect(self.move_requested)
        self._show_emptiness()

    def set_entries(
        self, entries: Iterable[ConversationEntry], folders: Sequence[str] = (), closed: Iterable[str] = ()
    ) -> None:
        """Show these conversations, in these folders; the current one stays current."""
        self._folders, self._closed = list(folders), set(closed)
        self._filter.set_closed(self._closed)
        self.model.replace(entries, self._folders, self._closed)
        self.filter_button.set_folders(self._folders)
        self._mark_current()
        self._show_emptiness()
        self._show_activity()

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

    def rename_folder(self, name: str) -> None:
        """Open the editor of a folder's row."""
        row = self.model.row_of_folder(name)
        if row >= 0:
            self.view.setCurrentIndex(self._filter.mapFromSource(self.model.index(row, 0)))
            self.rename_current()

    @property
    def chosen(self) -> list[int]:
        """The conversations that are chosen, in the order of the list."""
        rows = sorted(index.row() for index in self.view.selectionModel().selectedIndexes())
        entries = [self._filter.index(row, 0).data(ENTRY_ROLE) for row in rows]
        return [entry.id for entry in entries if isinstance(entry, ConversationEntry)]

    def folder_menu(self, conversation_ids: list[int], parent: QMenu | None = None) -> QMenu:
        """Make the menu of where conversations can be moved to."""
        menu = QMenu(self.tr("Move to folder"), parent or self)
        entries = [entry for entry in self.model.entries if entry.id in conversation_ids]
        for name in self._folders:
            action = menu.addAction(
                plain_button_text(label(name, 60)),
                partial(self.move_requested.emit, conversation_ids, name),
            )
            action.setEnabled(any(entry.folder != name for entry in entries))
        if self._folders:
            menu.addSeparator()
        menu.addAction(self.tr("New folder…"), lambda: self.folder_requested.emit(conversation_ids))
        if any(entry.folder for entry in entries):
            menu.addAction(
                self.tr("Out of the folder"), lambda: self.move_requested.emit(conversation_ids, "")
            )
        return menu

    def _search(self, text: str) -> None:
        self._filter.set_words(text)
        words = self.filter_button.words()
        self._confined.setText(self.tr("Only: {0}").format(words))
        self._confined.setVisible(bool(words and text.strip()))
        self._mark_current()
        self._show_emptiness()
        self.search_changed.emit()

    def _mark_current(self) -> None:
        if len(self.view.selectionModel().selectedIndexes()) > 1:
            return
        row = self.model.row_of(self._current)
        index = self._filter.mapFromSource(self.model.index(row, 0)) if row >= 0 else QModelIndex()
        flag = QItemSelectionModel.SelectionFlag.ClearAndSelect
        if index.isValid() or not self._is_on_folder():
            self.view.selectionModel().setCurrentIndex(index, flag)
        if not index.isValid():
            self.view.clearSelection()

    def _is_on_folder(self) -> bool:
        return isinstance(self.view.currentIndex().data(ENTRY_ROLE), FolderRow)

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
        self._search_line.setVisible(bool(self.model.entries or searched) or self._shelf != "chats")

    def _show_activity(self) -> None:
        """Let rings turn while there are any and motion is wanted."""
        if self._theme.has_motion and any(entry.is_busy for entry in self.model.entries):
            self._turning.start()
        else:
            self._turning.stop()
            self.view.viewport().update()

    def _turn(self) -> None:
        if not self.view.isVisible():
            return
        for row in range(self._filter.rowCount()):
            index = self._filter.index(row, 0)
            if index.data(ENTRY_ROLE).is_busy:
                self.view.update(index)

    def _click(self, index: QModelIndex) -> None:
        # Ctrl and Shift choose rows; they open nothing.
        if not QApplication.keyboardModifiers() & _WITHOUT_OPENING:
            self._activate(index)

    def _activate(self, index: QModelIndex) -> None:
        entry = index.data(ENTRY_ROLE)
        if isinstance(entry, FolderRow):
            self.folder_toggled.emit(entry.name, not entry.is_open)
        elif entry is not None:
            self.activated.emit(entry.id)

    def _open_or_close(self, is_open: bool) -> None:
        """Open or close the folder that the keyboard is on, or that the conversation there lies in."""
        entry = self.view.currentIndex().data(ENTRY_ROLE)
        name = entry.name if isinstance(entry, FolderRow) else getattr(entry, "folder", "")
        row = self.model.row_of_folder(name) if name else -1
        if row >= 0:
            if not is_open:
                self.view.setCurrentIndex(self._filter.mapFromSource(self.model.index(row, 0)))
            self.folder_toggled.emit(name, is_open)

    def _ask_delete(self) -> None:
        entry = self.view.currentIndex().data(ENTRY_ROLE)
        if isinstance(entry, FolderRow):
            self.folder_delete_requested.emit(entry.name)
        elif entry is not None:
            self.delete_requested.emit(self._meant(entry.id))

    def _meant(self, conversation_id: int) -> list[int]:
        """Return the chosen conversations if this one is among them, or else this one."""
        chosen = self.chosen
        return chosen if conversation_id in chosen else [conversation_id]

    def _menu(self, point: QPoint) -> None:
        index = self.view.indexAt(point)
        if not index.isValid():
            return
        selection, keep = self.view.selectionModel(), QItemSelectionModel.SelectionFlag.NoUpdate
        shown = QPersistentModelIndex(selection.currentIndex())
        selection.setCurrentIndex(index, keep)
        menu = self.menu(index)
        if menu.exec(self.view.viewport().mapToGlobal(point)) is None:
            selection.setCurrentIndex(shown, keep)  # the page still shows that chat
        menu.deleteLater()

    def menu(self, index: Index) -> QMenu:
        """Make the menu of a row, for the shelf that is listed, and for all that is chosen if the row is too."""
        menu, entry = QMenu(self), index.data(ENTRY_ROLE)
        if isinstance(entry, FolderRow):
            words = self.tr("Close") if entry.is_open else self.tr("Open")
            menu.addAction(words, lambda: self.folder_toggled.emit(entry.name, not entry.is_open))
            menu.addAction(self.tr("Rename"), lambda: self.rename_folder(entry.name))
            menu.addSeparator()
            menu.addAction(
                self.tr("Delete the folder, keep its chats"),
                lambda: self.folder_delete_requested.emit(entry.name),
            )
            return menu
        ids = self._meant(entry.id)
        is_one = len(ids) == 1
        if self._shelf == "trash" and not entry.is_hit:
            menu.addAction(self.tr("Take back"), lambda: self.restore_requested.emit(ids))
            menu.addAction(self.tr("Export…"), lambda: self.export_requested.emit(ids))
            menu.addSeparator()
            menu.addAction(self.tr("Delete for good…"), lambda: self.delete_requested.emit(ids))
            return menu
        is_archived = self._shelf == "archive"
        if is_one:
            menu.addAction(self.tr("Open"), lambda: self.activated.emit(entry.id))
            menu.addAction(self.tr("Rename"), self.rename_current)
        pin = self.tr("Unpin") if entry.is_pinned else self.tr("Pin on top")
        menu.addAction(pin, lambda: self.pin_requested.emit(ids, not entry.is_pinned))
        if not is_archived:
            menu.addMenu(self.folder_menu(ids, menu))
        away = self.tr("Back to the list") if is_archived else self.tr("Archive")
        menu.addAction(away, lambda: self.archive_requested.emit(ids, not is_archived))
        menu.addAction(self.tr("Export…"), lambda: self.export_requested.emit(ids))
        menu.addSeparator()
        menu.addAction(self.tr("Move to the trash"), lambda: self.delete_requested.emit(ids))
        return menu


class _View(QListView):
    """The rows. Signals: `return_pressed(index)`, `delete_pressed()`, `sideways_pressed(is_open)`: with the arrow that
    points away from the beginning of the line; `menu_requested(point)`."""

    return_pressed = Signal(QModelIndex)
    delete_pressed = Signal()
    sideways_pressed = Signal(bool)
    menu_requested = Signal(QPoint)

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("list")
        self.setEditTriggers(QListView.EditTrigger.EditKeyPressed)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setVerticalScrollMode(QListView.ScrollMode.ScrollPerPixel)
        self.setSelectionMode(QListView.SelectionMode.ExtendedSelection)
        self.setDragDropMode(QListView.DragDropMode.DragDrop)
        self.setDefaultDropAction(Qt.DropAction.MoveAction)
        # Dropped on rows, never between them: the order is that of activity.
        self.setDragDropOverwriteMode(True)
        self.setMouseTracking(True)

    def contextMenuEvent(self, event: QContextMenuEvent) -> None:
        is_by_key = event.reason() == QContextMenuEvent.Reason.Keyboard
        self.menu_requested.emit(self.visualRect(self.currentIndex()).center() if is_by_key else event.pos())

    def keyPressEvent(self, event: QKeyEvent) -> None:
        key, is_editing = event.key(), self.state() == QListView.State.EditingState
        away = Qt.Key.Key_Left if self.isRightToLeft() else Qt.Key.Key_Right
        if key in (Qt.Key.Key_Return, Qt.Key.Key_Enter) and not is_editing:
            self.return_pressed.emit(self.currentIndex())
        elif key in (Qt.Key.Key_Left, Qt.Key.Key_Right) and not is_editing:
            self.sideways_pressed.emit(key == away)
        elif key == Qt.Key.Key_Delete and self.currentIndex().isValid():
            self.delete_pressed.emit()
        else:
            super().keyPressEvent(event)
