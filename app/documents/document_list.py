"""The documents in the side bar: what is read, searchable or failed, and which of them the next question is about.

A row has a tick ("ask about it"), the name, one line that says the state in words and, while there is work, a thin
bar. The list changes nothing itself but the ticks; everything else is asked for by signals. GUI thread only.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from PySide6.QtCore import (
    QAbstractListModel,
    QEvent,
    QItemSelectionModel,
    QModelIndex,
    QObject,
    QPoint,
    QPointF,
    QRectF,
    QSize,
    Qt,
    Signal,
)
from PySide6.QtGui import QColor, QKeyEvent, QMouseEvent, QPainter, QPen
from PySide6.QtWidgets import (
    QHBoxLayout,
    QListView,
    QMenu,
    QStackedLayout,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from inglenook.app.chat.conversation_row import ENTRY_ROLE, Index, paint_row_ground
from inglenook.app.text.plain_label import PlainLabel, button, plain_tooltip
from inglenook.app.text.rich_text import label
from inglenook.app.window.icons import icon
from inglenook.app.window.theme import Theme

DocumentState = Literal["queued", "reading", "ready", "failed"]
_NO_PARENT = QModelIndex()


@dataclass(frozen=True, slots=True)
class DocumentEntry:
    """A document as its row shows it.

    While reading, `done` of `total` are pages (0 of 0: not known yet); of a "ready" one they are passages that can be
    found by meaning. `problem` is the sentence of a failure, or what a searchable document lacks ("no text on 3 of 3
    pages").
    """

    id: int
    name: str
    state: DocumentState = "ready"
    done: int = 0
    total: int = 0
    num_pages: int = 0
    problem: str = ""
    is_missing: bool = False
    is_ticked: bool = True

    @property
    def is_busy(self) -> bool:
        """Whether there is work in sight for it."""
        return self.state in ("queued", "reading") or (self.state == "ready" and self.done < self.total)


class DocumentListModel(QAbstractListModel):
    """Documents in a given order. Signals: `ticked(id, is_ticked)` when the user changed a tick."""

    ticked = Signal(int, bool)

    def __init__(self, entries: Iterable[DocumentEntry] = (), parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._entries = list(entries)

    @property
    def entries(self) -> Sequence[DocumentEntry]:
        """All documents; not to be changed."""
        return self._entries

    def replace(self, entries: Iterable[DocumentEntry]) -> None:
        """Show other documents; where they are the same ones, only what changed is drawn again."""
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

    def status(self, entry: DocumentEntry) -> str:
        """Say a document's state in a few words."""
        if entry.state == "failed":
            return entry.problem or self.tr("Could not be read")
        if entry.is_missing:
            return self.tr("File moved or deleted; its text stays searchable")
        if entry.state == "queued":
            return self.tr("Waiting to be read")
        if entry.state == "reading":
            if not entry.total:
                return self.tr("Reading…")
            return self.tr("Reading page {0} of {1}").format(min(entry.done + 1, entry.total), entry.total)
        if entry.problem:
            return entry.problem
        if entry.is_busy:
            return self.tr("{0} of {1} passages embedded").format(entry.done, entry.total)
        if entry.num_pages > 1:
            return self.tr("{0} pages, searchable").format(entry.num_pages)
        return self.tr("Searchable")

    def rowCount(self, parent: Index = _NO_PARENT) -> int:
        return 0 if parent.isValid() else len(self._entries)

    def flags(self, index: Index) -> Qt.ItemFlag:
        return super().flags(index) | (
            Qt.ItemFlag.ItemIsUserCheckable if index.isValid() else Qt.ItemFlag.NoItemFlags
        )

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        if not index.isValid() or index.row() >= len(self._entries):
            return None
        entry = self._entries[index.row()]
        if role == ENTRY_ROLE:
            return entry
        if role == Qt.ItemDataRole.DisplayRole:
            return label(entry.name, 300)
        if role == Qt.ItemDataRole.CheckStateRole:
            return Qt.CheckState.Checked if entry.is_ticked else Qt.CheckState.Unchecked
        if role == Qt.ItemDataRole.ToolTipRole:
            return plain_tooltip(f"{label(entry.name, 300)} — {label(self.status(entry), 600)}")
        if role == Qt.ItemDataRole.AccessibleTextRole:
            return f"{label(entry.name, 300)}, {label(self.status(entry), 600)}"
        return None

    def setData(self, index: Index, value: Any, role: int = Qt.ItemDataRole.EditRole) -> bool:
        if role != Qt.ItemDataRole.CheckStateRole or not index.isValid():
            return False
        entry = self._entries[index.row()]
        self.ticked.emit(entry.id, Qt.CheckState(value) == Qt.CheckState.Checked)
        return True


class DocumentList(QWidget):
    """The heading with its button, the list, and what stands there while there is none.

    Signals: `add_requested()`; `ticked(id, is_ticked)`; `open_requested(id)`; `retry_requested(id)`;
    `remove_requested(id)`; `cancel_requested(id)` for one that is being read.
    """

    add_requested = Signal()
    ticked = Signal(int, bool)
    open_requested = Signal(int)
    retry_requested = Signal(int)
    remove_requested = Signal(int)
    cancel_requested = Signal(int)

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
        self.view = _View()
        self.view.setModel(self.model)
        self.view.setItemDelegate(_Delegate(theme, self.view))
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
        self._embedding = PlainLabel(look="small")
        self._embedding.hide()
        self._stack = QStackedLayout()
        self._stack.addWidget(self.view)
        self._stack.addWidget(self._empty)
        heading = QHBoxLayout()
        heading.addWidget(self._heading, 1)
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
        num_ticked = sum(entry.is_ticked for entry in self.model.entries)
        words = (
            self.tr("Documents")
            if not ids
            else self.tr("Documents · {0} of {1} used").format(num_ticked, len(ids))
        )
        self._heading.setText(words)

    def set_embedding(self, done: int, total: int) -> None:
        """Say how many passages can be found by meaning; nothing once all can."""
        self._embedding.setText(self.tr("Searchable; {0} of {1} passages embedded").format(done, total))
        self._embedding.setVisible(done < total)

    def _restyle(self) -> None:
        px = self._theme.px
        self._embedding.setContentsMargins(px(10), px(2), px(10), 0)
        self.add_button.setIcon(icon("plus", self._theme.colours.muted))
        self.add_button.setIconSize(QSize(px(16), px(16)))
        self._heading.setContentsMargins(px(10), 0, 0, 0)
        self._empty.setContentsMargins(px(10), px(2), px(10), px(6))
        self.view.doItemsLayout()

    def _current(self) -> DocumentEntry | None:
        entry = self.view.currentIndex().data(ENTRY_ROLE)
        return entry if isinstance(entry, DocumentEntry) else None

    def _show_button(self) -> None:
        entry = self._current()
        self.retry_button.setVisible(entry is not None and entry.state == "failed")
        if entry is not None:
            self.retry_button.setAccessibleName(
                self.tr("Try to read {0} again").format(label(entry.name, 80))
            )

    def _open(self) -> None:
        entry = self._current()
        if entry is not None and entry.state != "failed":
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
        menu = QMenu(self)
        menu.addAction(self.tr("Show"), self._open).setEnabled(entry.state == "ready")
        if entry.state == "failed":
            menu.addAction(self.tr("Try again"), self._retry)
        if entry.state in ("queued", "reading"):
            menu.addAction(self.tr("Stop reading"), lambda: self.cancel_requested.emit(entry.id))
        menu.addSeparator()
        menu.addAction(self.tr("Remove…"), self._remove)
        menu.exec(self.view.viewport().mapToGlobal(point))
        menu.deleteLater()


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


class _Delegate(QStyledItemDelegate):
    """Paints a row and toggles its tick by mouse or space bar."""

    def __init__(self, theme: Theme, parent: QObject) -> None:
        super().__init__(parent)
        self._theme = theme

    def sizeHint(self, option: QStyleOptionViewItem, index: Index) -> QSize:
        return QSize(self._theme.px(80), self._theme.px(48))

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        theme, px, entry = self._theme, self._theme.px, index.data(ENTRY_ROLE)
        model = index.model()
        if not isinstance(entry, DocumentEntry) or not isinstance(model, DocumentListModel):
            return
        colours = theme.colours
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        paint_row_ground(painter, option, theme)
        self._paint_tick(painter, self._tick_rect(option), is_ticked=entry.is_ticked)
        left, right = option.rect.left() + px(38), option.rect.right() - px(10)
        top = option.rect.top() + px(6)
        area = QRectF(left, top, right - left, px(19))
        side = Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeading
        painter.setFont(theme.font(0.97))
        painter.setPen(QColor(colours.text))
        elide = Qt.TextElideMode.ElideMiddle
        painter.drawText(
            area, side, painter.fontMetrics().elidedText(str(index.data()), elide, int(area.width()))
        )
        area.translate(0, px(18))
        painter.setFont(theme.font(0.82))
        painter.setPen(QColor(colours.error if entry.state == "failed" else colours.muted))
        status = painter.fontMetrics().elidedText(
            label(model.status(entry), 300), Qt.TextElideMode.ElideRight, int(area.width())
        )
        painter.drawText(area, side, status)
        if entry.is_busy and entry.total:
            self._paint_bar(painter, QRectF(left, option.rect.bottom() - px(4), right - left, px(2)), entry)
        painter.restore()

    def editorEvent(self, event: QEvent, model: Any, option: QStyleOptionViewItem, index: Index) -> bool:
        is_toggle = False
        if isinstance(event, QMouseEvent) and event.type() == QEvent.Type.MouseButtonRelease:
            reach = self._tick_rect(option).adjusted(-8, -8, 8, 8)
            is_toggle = event.button() == Qt.MouseButton.LeftButton and reach.contains(event.position())
        elif isinstance(event, QKeyEvent) and event.type() == QEvent.Type.KeyPress:
            is_toggle = event.key() == Qt.Key.Key_Space
        if not is_toggle:
            return False
        is_ticked = index.data(Qt.ItemDataRole.CheckStateRole) == Qt.CheckState.Checked
        other = Qt.CheckState.Unchecked if is_ticked else Qt.CheckState.Checked
        return bool(model.setData(index, other, Qt.ItemDataRole.CheckStateRole))

    def _tick_rect(self, option: QStyleOptionViewItem) -> QRectF:
        size = self._theme.px(16)
        return QRectF(
            option.rect.left() + self._theme.px(12), option.rect.center().y() - size / 2, size, size
        )

    def _paint_tick(self, painter: QPainter, box: QRectF, *, is_ticked: bool) -> None:
        colours, unit = self._theme.colours, box.width() / 16
        painter.setPen(QPen(QColor(colours.accent if is_ticked else colours.muted), 1.2))
        painter.setBrush(QColor(colours.accent if is_ticked else colours.window))
        painter.drawRoundedRect(box, 4 * unit, 4 * unit)
        if is_ticked:
            painter.setPen(
                QPen(QColor(colours.on_accent), 1.8 * unit, Qt.PenStyle.SolidLine, Qt.PenCapStyle.RoundCap)
            )
            points = [(4, 8.3), (7, 11.2), (12.2, 5)]
            painter.drawPolyline([QPointF(box.left() + x * unit, box.top() + y * unit) for x, y in points])

    def _paint_bar(self, painter: QPainter, area: QRectF, entry: DocumentEntry) -> None:
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(QColor(self._theme.colours.border))
        painter.drawRoundedRect(area, 1, 1)
        painter.setBrush(QColor(self._theme.colours.accent))
        done = QRectF(area)
        done.setWidth(area.width() * min(1.0, entry.done / entry.total))
        painter.drawRoundedRect(done, 1, 1)
