"""The command palette: one field, and below it every action, chat and document that holds the words typed.

It knows nothing of what it offers but the words, and what to call. Up and Down choose while the field keeps the
keyboard; Enter does it; Esc leaves. GUI thread only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from PySide6.QtCore import QAbstractListModel, QModelIndex, QObject, QRect, QSize, Qt
from PySide6.QtGui import QColor, QKeyEvent, QPainter
from PySide6.QtWidgets import (
    QDialog,
    QLineEdit,
    QListView,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QVBoxLayout,
    QWidget,
)

from inglenook.app.chat.conversation_row import ENTRY_ROLE, Index, paint_row_ground
from inglenook.app.text.plain_label import PlainLabel, draw_line
from inglenook.app.text.rich_text import label
from inglenook.app.window.theme import Theme

_NO_PARENT = QModelIndex()
_MOST_SHOWN = 200


@dataclass(frozen=True, slots=True)
class PaletteEntry:
    """One thing to go to: its words, at the end of its row what it is or its keys, and what happens."""

    text: str
    detail: str
    run: Callable[[], object]


def matching(entries: Iterable[PaletteEntry], typed: str) -> list[PaletteEntry]:
    """Return the entries that hold every word, those first that begin with what was typed, then those with words that do."""
    words = typed.casefold().split()
    found = []
    for place, entry in enumerate(entries):
        text = entry.text.casefold()
        said = f"{text} {entry.detail.casefold()}"
        if all(word in said for word in words):
            begins = not text.startswith(" ".join(words))
            has_beginnings = not all(f" {word}" in f" {said}" for word in words)
            found.append((begins, has_beginnings, place, entry))
    return [entry for *_, entry in sorted(found, key=lambda rank: rank[:3])[:_MOST_SHOWN]]


class PaletteModel(QAbstractListModel):
    """The entries shown."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.entries: Sequence[PaletteEntry] = ()

    def replace(self, entries: Sequence[PaletteEntry]) -> None:
        """Show other entries."""
        self.beginResetModel()
        self.entries = entries
        self.endResetModel()

    def rowCount(self, parent: Index = _NO_PARENT) -> int:
        return 0 if parent.isValid() else len(self.entries)

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        if not index.isValid() or index.row() >= len(self.entries):
            return None
        entry = self.entries[index.row()]
        if role == ENTRY_ROLE:
            return entry
        if role == Qt.ItemDataRole.DisplayRole:
            return label(entry.text, 200)
        if role == Qt.ItemDataRole.AccessibleTextRole:
            return f"{label(entry.text, 200)}, {entry.detail}"
        return None


class Palette(QDialog):
    """The palette over its window. `search(text)` is offered as the last row, for what no title holds."""

    def __init__(self, theme: Theme, parent: QWidget, search: Callable[[str], object]) -> None:
        super().__init__(parent, Qt.WindowType.FramelessWindowHint | Qt.WindowType.Dialog)
        self._theme, self._search = theme, search
        self._entries: list[PaletteEntry] = []
        self.setObjectName("palette")
        self.setWindowTitle(self.tr("Go to anything"))
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.field = QLineEdit()
        self.field.setPlaceholderText(self.tr("Go to an action, a chat or a document"))
        self.field.setAccessibleName(self.tr("Go to an action, a chat or a document"))
        self.model = PaletteModel(self)
        self.view = QListView()
        self.view.setObjectName("list")
        self.view.setAccessibleName(self.tr("Found"))
        self.view.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.view.setMouseTracking(True)
        self.view.setModel(self.model)
        self.view.setItemDelegate(_Delegate(theme, self.view))
        self.view.clicked.connect(self._run)
        self._hint = PlainLabel(self.tr("Up and Down choose, Enter opens, Esc leaves"), look="small")
        px = theme.px
        layout = QVBoxLayout(self)
        layout.setContentsMargins(px(14), px(14), px(14), px(10))
        layout.setSpacing(px(8))
        layout.addWidget(self.field)
        layout.addWidget(self.view, 1)
        layout.addWidget(self._hint)
        self.field.textChanged.connect(self._show)
        self.resize(min(px(620), parent.width() - px(40)), min(px(460), parent.height() - px(60)))
        corner = parent.mapToGlobal(parent.rect().topLeft())
        self.move(corner.x() + (parent.width() - self.width()) // 2, corner.y() + px(48))

    def offer(self, entries: Iterable[PaletteEntry]) -> None:
        """Offer these as well."""
        self._entries += entries
        self._show(self.field.text())

    def keyPressEvent(self, event: QKeyEvent) -> None:
        step = {
            Qt.Key.Key_Down: 1,
            Qt.Key.Key_Up: -1,
            Qt.Key.Key_PageDown: 8,
            Qt.Key.Key_PageUp: -8,
        }.get(Qt.Key(event.key()))
        if step is not None and self.model.entries:
            last = len(self.model.entries) - 1
            row = self.view.currentIndex().row() + step
            if abs(step) == 1:
                row %= last + 1
            self._choose(min(max(row, 0), last))
        elif event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            self._run(self.view.currentIndex())
        else:
            super().keyPressEvent(event)

    def _show(self, typed: str) -> None:
        shown = matching(self._entries, typed)
        if typed.strip():
            words = self.tr("Search all messages for “{0}”").format(label(typed, 60))
            shown.append(PaletteEntry(words, self.tr("Search"), lambda: self._search(typed)))
        self.model.replace(shown)
        self._choose(0)

    def _choose(self, row: int) -> None:
        index = self.model.index(row, 0)
        self.view.setCurrentIndex(index)
        # The field keeps the keyboard, so a screen reader is told what Enter would do.
        said = index.data(Qt.ItemDataRole.AccessibleTextRole)
        self.field.setAccessibleDescription(said or "")

    def _run(self, index: Index) -> None:
        entry = index.data(ENTRY_ROLE)
        if entry is not None:
            self.accept()
            entry.run()


class _Delegate(QStyledItemDelegate):
    def __init__(self, theme: Theme, parent: QObject) -> None:
        super().__init__(parent)
        self._theme = theme

    def sizeHint(self, option: QStyleOptionViewItem, index: Index) -> QSize:
        return QSize(self._theme.px(120), self._theme.px(34))

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        entry, theme, px = index.data(ENTRY_ROLE), self._theme, self._theme.px
        if entry is None:
            return
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        paint_row_ground(painter, option, theme)
        area = option.rect.adjusted(px(12), 0, -px(12), 0)
        painter.setFont(theme.font(0.88))
        painter.setPen(QColor(theme.colours.muted))
        width = min(painter.fontMetrics().horizontalAdvance(entry.detail) + px(4), area.width() // 2)
        middle = Qt.AlignmentFlag.AlignVCenter
        is_mirrored = option.direction == Qt.LayoutDirection.RightToLeft
        end = QRect(area)
        start = QRect(area)
        if is_mirrored:
            end.setRight(area.left() + width)
            start.setLeft(end.right() + px(12))
        else:
            end.setLeft(area.right() - width)
            start.setRight(end.left() - px(12))
        painter.drawText(end, middle | Qt.AlignmentFlag.AlignTrailing, entry.detail)
        painter.setFont(theme.font(0.97))
        painter.setPen(QColor(theme.colours.text))
        text = str(index.data())
        text = painter.fontMetrics().elidedText(text, Qt.TextElideMode.ElideRight, start.width())
        draw_line(painter, start, text, option.direction)
        painter.restore()
