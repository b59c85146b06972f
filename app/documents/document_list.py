"""The documents in the side bar: what is read, searchable or failed, and which of them the next question is about.

A row has a tick ("ask about it"), the name, one line that says the state in words and, while there is work, a thin
bar. The list changes nothing itself but the ticks; everything else is asked for by signals. GUI thread only.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial

from PySide6.QtCore import QItemSelectionModel, QPoint, QSize, Qt, Signal
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import (
    QFrame,
    QHBoxLayout,
    QListView,
    QMenu,
    QScrollArea,
    QStackedLayout,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from inglenook.app.chat.conversation_row import ENTRY_ROLE
from inglenook.app.documents.document_list_model import DocumentEntry, DocumentListModel
from inglenook.app.documents.document_row import DocumentRow
from inglenook.app.text.plain_label import PlainLabel, button
from inglenook.app.text.rich_text import label
from inglenook.app.window.icons import icon
from inglenook.app.window.theme import Theme


class DocumentList(QWidget):
    """The heading with its button, the list, and what stands there while there is none.

    Signals: `add_requested()`; `ticked(id, is_ticked)`; `open_requested(id)`; `retry_requested(id)`;
    `remove_requested(id)`; `cancel_requested(id)` for one that is being read; `encoding_chosen(id, name)`, "" to have it
    found again; `collection_requested(id)` to put it into one, `uncollect_requested(id, name)`; `scope_chosen(ids)` to
    tick just these, `scope_requested()` to tick by name or year; `embedder_chosen(name)`, "" to stay with the one in use.
    """

    add_requested = Signal()
    ticked = Signal(int, bool)
    open_requested = Signal(int)
    retry_requested = Signal(int)
    remove_requested = Signal(int)
    cancel_requested = Signal(int)
    encoding_chosen = Signal(int, str)
    collection_requested = Signal(int)
    uncollect_requested = Signal(int, str)
    scope_chosen = Signal(object)
    scope_requested = Signal()
    embedder_chosen = Signal(str)

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self.model = DocumentListModel(parent=self)
        self._heading = PlainLabel(self.tr("Documents"))
        self._heading.setObjectName("section")
        self.add_button = QToolButton()
        self.add_button.setObjectName("icon_button")
        self.add_button.setAccessibleName(self.tr("Add documents"))
        self.add_button.setToolTip(self.tr("Add documents (Ctrl+O), or drop them on the window"))
        self.add_button.setCursor(Qt.CursorShape.PointingHandCursor)
        self.add_button.clicked.connect(self.add_requested)
        self.scope_button = QToolButton()
        self.scope_button.setObjectName("icon_button")
        self.scope_button.setAccessibleName(self.tr("Choose which documents are asked"))
        self.scope_button.setToolTip(self.tr("Ask all, none, a collection, or documents of a name or year"))
        self.scope_button.setCursor(Qt.CursorShape.PointingHandCursor)
        self.scope_button.setPopupMode(QToolButton.ToolButtonPopupMode.InstantPopup)
        self.scope_menu = QMenu(self.scope_button)
        self.scope_menu.aboutToShow.connect(self._fill_scope_menu)
        self.scope_button.setMenu(self.scope_menu)
        self.view = _View()
        self.view.setModel(self.model)
        self.view.setItemDelegate(DocumentRow(theme, self.view))
        self.view.setAccessibleName(self.tr("Documents"))
        self.view.activated.connect(self._open)
        self.view.remove_pressed.connect(self._remove)
        self.view.customContextMenuRequested.connect(lambda point: self._menu(point))
        self.retry_button = button(self.tr("Try again"))
        self.retry_button.clicked.connect(self._retry)
        self.retry_button.hide()
        self._empty = PlainLabel(
            self.tr(
                "Drop PDF, Word, web pages, tables or text anywhere in this window. They stay on this computer."
            ),
            look="small",
        )
        self._empty.setAlignment(Qt.AlignmentFlag.AlignTop | Qt.AlignmentFlag.AlignLeading)
        self._embedders: tuple[str, ...] = ()
        self._embedder = self._next_embedder = ""
        self._embedding = PlainLabel(look="small")
        self._embedding.hide()
        self._stack = QStackedLayout()
        self._stack.addWidget(self.view)
        # Large text has more lines than the room has: they scroll.
        roll = QScrollArea()
        roll.setWidgetResizable(True)
        roll.setFrameShape(QFrame.Shape.NoFrame)
        roll.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        roll.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        roll.setWidget(self._empty)
        for ground in (roll.viewport(), self._empty):
            ground.setAutoFillBackground(False)
        self._stack.addWidget(roll)
        heading = QHBoxLayout()
        heading.addWidget(self._heading, 1)
        heading.addWidget(self.scope_button)
        heading.addWidget(self.add_button)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.addLayout(heading)
        layout.addLayout(self._stack, 1)
        layout.addWidget(self._embedding)
        layout.addWidget(self.retry_button)
        self.model.ticked.connect(self.ticked)
        self.view.selectionModel().currentChanged.connect(self._show_button)
        self.model.dataChanged.connect(self._show_button)
        self.model.modelReset.connect(self._show_button)
        theme.changed.connect(self._restyle)
        self._restyle()
        self.set_entries(())

    def set_entries(self, entries: Iterable[DocumentEntry]) -> None:
        """Show these documents."""
        current = self._current()
        self.model.replace(entries)
        ids = [entry.id for entry in self.model.entries]
        if current is not None and current.id in ids and not self.view.currentIndex().isValid():
            index = self.model.index(ids.index(current.id))
            self.view.selectionModel().setCurrentIndex(
                index, QItemSelectionModel.SelectionFlag.ClearAndSelect
            )
        self._stack.setCurrentIndex(0 if ids else 1)
        self.scope_button.setVisible(bool(ids))
        num_ticked = sum(entry.is_ticked for entry in self.model.entries)
        words = (
            self.tr("Documents")
            if not ids
            else self.tr("Documents · {0} of {1} used").format(num_ticked, len(ids))
        )
        self._heading.setText(words)

    def set_embedders(self, names: Sequence[str], used: str) -> None:
        """Offer these sentence encoders, one of which is in use."""
        self._embedders, self._embedder = tuple(names), used

    def set_embedder_change(self, name: str, done: int, total: int) -> None:
        """Say how far the change to another sentence encoder is; "" for none."""
        self._next_embedder = name
        self._embedding.setText(
            self.tr("Changing to {0}: {1} of {2} passages. Until then they are found as before.").format(
                label(name, 60), done, total
            )
        )
        self._embedding.setVisible(bool(name))

    def set_embedding(self, done: int, total: int) -> None:
        """Say how many passages can be found by meaning; nothing once all can."""
        if self._next_embedder:
            return
        self._embedding.setText(self.tr("Searchable; {0} of {1} passages embedded").format(done, total))
        self._embedding.setVisible(done < total)

    def _restyle(self) -> None:
        px = self._theme.px
        self._embedding.setContentsMargins(px(10), px(2), px(10), 0)
        self.add_button.setIcon(icon("plus", self._theme.colours.muted))
        self.add_button.setIconSize(QSize(px(16), px(16)))
        self.scope_button.setIcon(icon("more", self._theme.colours.muted))
        self.scope_button.setIconSize(QSize(px(16), px(16)))
        # Margins are not mirrored by Qt; the buttons' side needs none.
        self._heading.setContentsMargins(*((0, 0, px(10), 0) if self.isRightToLeft() else (px(10), 0, 0, 0)))
        self._empty.setContentsMargins(px(10), px(2), px(10), px(6))
        self.view.doItemsLayout()

    def _current(self) -> DocumentEntry | None:
        entry = self.view.currentIndex().data(ENTRY_ROLE)
        return entry if isinstance(entry, DocumentEntry) else None

    def _show_button(self) -> None:
        entry = self._current()
        self.retry_button.setVisible(entry is not None and entry.state in ("failed", "locked"))
        if entry is not None:
            is_locked = entry.state == "locked"
            self.retry_button.setText(self.tr("Enter password…") if is_locked else self.tr("Try again"))
            words = self.tr("Enter the password of {0}") if is_locked else self.tr("Try to read {0} again")
            self.retry_button.setAccessibleName(words.format(label(entry.name, 80)))

    def _open(self) -> None:
        entry = self._current()
        if entry is not None and entry.state == "locked":
            self.retry_requested.emit(entry.id)
        elif entry is not None and entry.state != "failed":
            self.open_requested.emit(entry.id)

    def _retry(self) -> None:
        entry = self._current()
        if entry is not None:
            self.retry_requested.emit(entry.id)

    def _remove(self) -> None:
        entry = self._current()
        if entry is not None:
            self.remove_requested.emit(entry.id)

    def _menu(self, point: QPoint) -> None:
        index = self.view.indexAt(point)
        entry = index.data(ENTRY_ROLE) if index.isValid() else None
        if not isinstance(entry, DocumentEntry):
            return
        self.view.selectionModel().setCurrentIndex(index, QItemSelectionModel.SelectionFlag.ClearAndSelect)
        menu = self.menu_of(entry)
        menu.exec(self.view.viewport().mapToGlobal(point))
        menu.deleteLater()

    def menu_of(self, entry: DocumentEntry) -> QMenu:
        """Return the menu of a document's row."""
        menu = QMenu(self)
        menu.addAction(self.tr("Show"), self._open).setEnabled(entry.state == "ready")
        if entry.state == "failed":
            menu.addAction(self.tr("Try again"), self._retry)
        if entry.state == "locked":
            menu.addAction(self.tr("Enter password…"), self._retry)
        if entry.state in ("queued", "reading"):
            menu.addAction(self.tr("Stop reading"), lambda: self.cancel_requested.emit(entry.id))
        if entry.encoding:
            self._add_encodings(menu, entry)
        menu.addAction(self.tr("Put into a collection…"), lambda: self.collection_requested.emit(entry.id))
        for name in entry.collections:
            menu.addAction(
                self.tr("Take out of “{0}”").format(_in_menu(name)),
                partial(self.uncollect_requested.emit, entry.id, name),
            )
        menu.addSeparator()
        menu.addAction(self.tr("Remove…"), self._remove)
        return menu

    def _add_encodings(self, menu: QMenu, entry: DocumentEntry) -> None:
        # Storage is not imported before the window is painted.
        from inglenook.storage.parsing.text_encoding import ENCODINGS

        words = self.tr("Encoding: {0} (guessed)") if entry.is_encoding_guessed else self.tr("Encoding: {0}")
        submenu = menu.addMenu(words.format(entry.encoding))
        submenu.addAction(self.tr("Find it again"), lambda: self.encoding_chosen.emit(entry.id, ""))
        submenu.addSeparator()
        for name in ENCODINGS:
            action = submenu.addAction(name, partial(self.encoding_chosen.emit, entry.id, name))
            action.setCheckable(True)
            action.setChecked(name == entry.encoding)

    def _fill_scope_menu(self) -> None:
        entries, menu = self.model.entries, self.scope_menu
        menu.clear()
        self._add_scope(self.tr("All"), entries)
        self._add_scope(self.tr("None"), ())
        names = sorted({name for entry in entries for name in entry.collections}, key=str.casefold)
        if names:
            menu.addSeparator()
        for name in names:
            self._add_scope(_in_menu(name), [entry for entry in entries if name in entry.collections])
        menu.addSeparator()
        menu.addAction(self.tr("By name or year…"), self.scope_requested.emit)
        if len(self._embedders) > 1:
            self._add_embedders(menu.addMenu(self.tr("Find by meaning with")))

    def _add_embedders(self, menu: QMenu) -> None:
        for name in self._embedders:
            action = menu.addAction(_in_menu(name), partial(self.embedder_chosen.emit, name))
            action.setCheckable(True)
            action.setChecked(name == self._embedder)
        if self._next_embedder:
            words = self.tr("Stop the change to {0}").format(_in_menu(self._next_embedder))
            menu.addAction(words, partial(self.embedder_chosen.emit, ""))

    def _add_scope(self, words: str, entries: Sequence[DocumentEntry]) -> None:
        ids = [entry.id for entry in entries]
        self.scope_menu.addAction(words, lambda: self.scope_chosen.emit(ids))


class _View(QListView):
    remove_pressed = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("list")
        self.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setVerticalScrollMode(QListView.ScrollMode.ScrollPerPixel)
        self.setMouseTracking(True)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        index = self.currentIndex()
        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter) and index.isValid():
            self.activated.emit(index)
        elif event.key() == Qt.Key.Key_Delete and index.isValid():
            self.remove_pressed.emit()
        else:
            super().keyPressEvent(event)


def _in_menu(name: str) -> str:
    """Write a name so that none of its letters becomes a mnemonic."""
    return label(name, 60).replace("&", "&&")
