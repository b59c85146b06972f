"""The conversations in the side bar: model over a Python list, filter, delegate and the view with its search field.

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
    QPersistentModelIndex,
    QPoint,
    QRect,
    QRectF,
    QSize,
    QSortFilterProxyModel,
    Qt,
    Signal,
)
from PySide6.QtGui import QColor, QKeyEvent, QPainter
from PySide6.QtWidgets import (
    QLineEdit,
    QListView,
    QMenu,
    QStackedLayout,
    QStyle,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QVBoxLayout,
    QWidget,
)

from inglenook.app.plain_label import PlainLabel, plain_tooltip
from inglenook.app.rich_text import label
from inglenook.app.theme import Theme

Index = QModelIndex | QPersistentModelIndex
ENTRY_ROLE = int(Qt.ItemDataRole.UserRole)
_NO_PARENT = QModelIndex()


@dataclass(frozen=True, slots=True)
class ConversationEntry:
    """A conversation as its row shows it; an empty title is one that has not been named yet."""

    id: int
    title: str
    is_busy: bool = False
    is_unread: bool = False


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
            return self.tr("{0}, new answer").format(title) if entry.is_unread else title
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
        title = str(self.sourceModel().index(row, 0, parent).data() or "").casefold()
        return all(word in title for word in self._words)


class ConversationList(QWidget):
    """The search field and the list.

    Signals: `activated(id)` of a conversation to show; `rename_requested(id, title)`; `delete_requested(id)`.
    """

    activated = Signal(int)
    rename_requested = Signal(int, str)
    delete_requested = Signal(int)

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.model = ConversationListModel(parent=self)
        self._filter = ConversationFilter(self)
        self._filter.setSourceModel(self.model)
        self._current = 0
        self.search = QLineEdit()
        self.search.setPlaceholderText(self.tr("Search chats"))
        self.search.setAccessibleName(self.tr("Search chats by title"))
        self.search.setClearButtonEnabled(True)
        self.search.textChanged.connect(self._search)
        self.view = _View()
        self.view.setModel(self._filter)
        self.view.setItemDelegate(_Delegate(theme, self.view))
        self.view.setAccessibleName(self.tr("Chats"))
        self.view.clicked.connect(self._activate)
        self.view.activated.connect(self._activate)
        self.view.delete_pressed.connect(self._ask_delete)
        self.view.customContextMenuRequested.connect(lambda point: self._menu(point))
        self._empty = PlainLabel(look="small")
        self._empty.setAlignment(Qt.AlignmentFlag.AlignTop | Qt.AlignmentFlag.AlignLeading)
        self._empty.setContentsMargins(theme.px(10), theme.px(6), theme.px(10), 0)
        self._stack = QStackedLayout()
        self._stack.addWidget(self.view)
        self._stack.addWidget(self._empty)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(theme.px(6))
        layout.addWidget(self.search)
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
        self._empty.setText(
            self.tr("No chat has “{0}” in its title.").format(label(searched, 40))
            if searched
            else self.tr("Your chats will be listed here.")
        )
        self._stack.setCurrentIndex(int(is_empty))
        self.search.setVisible(bool(self.model.entries))

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
        menu = QMenu(self)
        menu.addAction(self.tr("Open"), lambda: self._activate(index))
        menu.addAction(self.tr("Rename"), lambda: self.view.edit(index))
        menu.addSeparator()
        menu.addAction(self.tr("Delete…"), self._ask_delete)
        menu.exec(self.view.viewport().mapToGlobal(point))
        menu.deleteLater()


class _View(QListView):
    delete_pressed = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("list")
        self.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)
        self.setEditTriggers(QListView.EditTrigger.EditKeyPressed)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setVerticalScrollMode(QListView.ScrollMode.ScrollPerPixel)
        self.setUniformItemSizes(True)
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


class _Delegate(QStyledItemDelegate):
    """Paints a row: the title, and a dot while it is answered or has news."""

    def __init__(self, theme: Theme, parent: QObject) -> None:
        super().__init__(parent)
        self._theme = theme

    def sizeHint(self, option: QStyleOptionViewItem, index: Index) -> QSize:
        return QSize(self._theme.px(80), self._theme.px(34))

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        theme, px, entry = self._theme, self._theme.px, index.data(ENTRY_ROLE)
        if entry is None:
            return
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        paint_row_ground(painter, option, theme)
        has_dot = entry.is_busy or entry.is_unread
        area = option.rect.adjusted(px(12), 0, -px(26 if has_dot else 12), 0)
        is_selected = bool(option.state & QStyle.StateFlag.State_Selected)
        font = theme.font(0.97, bold=entry.is_unread)
        painter.setFont(font)
        painter.setPen(QColor(theme.colours.text if is_selected or entry.title else theme.colours.muted))
        painter.setPen(QColor(theme.colours.text))
        title = painter.fontMetrics().elidedText(str(index.data()), Qt.TextElideMode.ElideRight, area.width())
        painter.drawText(area, Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeading, title)
        if has_dot:
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(QColor(theme.colours.accent))
            size = px(7)
            centre = QRect(option.rect.right() - px(18), option.rect.center().y() - size // 2, size, size)
            painter.drawEllipse(centre)
        painter.restore()

    def updateEditorGeometry(self, editor: QWidget, option: QStyleOptionViewItem, index: Index) -> None:
        editor.setGeometry(option.rect.adjusted(2, 1, -2, -1))


def paint_row_ground(painter: QPainter, option: QStyleOptionViewItem, theme: Theme) -> None:
    """Paint the rounded ground of a row of the side bar: chosen, under the mouse, or ringed by the keyboard."""
    is_selected = bool(option.state & QStyle.StateFlag.State_Selected)
    is_hovered = bool(option.state & QStyle.StateFlag.State_MouseOver)
    has_focus = bool(option.state & QStyle.StateFlag.State_HasFocus)
    area = QRectF(option.rect).adjusted(1, 1, -1, -1)
    radius = theme.px(8)
    if is_selected or is_hovered:
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(QColor(theme.colours.hover))
        painter.drawRoundedRect(area, radius, radius)
    if has_focus:
        painter.setPen(QColor(theme.colours.accent))
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.drawRoundedRect(area, radius, radius)
