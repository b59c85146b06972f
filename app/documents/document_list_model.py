"""The list of documents as a Qt model: each with its state in words and its tick. GUI thread only."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from PySide6.QtCore import QAbstractListModel, QModelIndex, QObject, Qt, Signal

from inglenook.app.chat.conversation_row import ENTRY_ROLE, Index
from inglenook.app.text.plain_label import plain_tooltip
from inglenook.app.text.rich_text import label
from inglenook.app.translations.figures import numbered
from inglenook.app.translations.sentences import said

DocumentState = Literal["queued", "reading", "ready", "failed", "locked"]
_NO_PARENT = QModelIndex()


@dataclass(frozen=True, slots=True)
class DocumentEntry:
    """A document as its row shows it.

    While reading, `done` of `total` are pages (0 of 0: not known yet); of a "ready" one they are passages that can be
    found by meaning. `problem` is the sentence of a failure, or what a searchable document lacks ("no text on 3 of 3
    pages"). One that is "locked" waits for its password. `encoding` is that of a text, "" of what is none.
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
    encoding: str = ""
    is_encoding_guessed: bool = False
    collections: tuple[str, ...] = ()

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
            return said(entry.problem) or self.tr("Could not be read")
        if entry.state == "locked":
            return self.tr("Waits for its password")
        if entry.is_missing:
            return self.tr("File moved or deleted; its text stays searchable")
        if entry.state == "queued":
            return self.tr("Waiting to be read")
        if entry.state == "reading":
            if not entry.total:
                return self.tr("Reading…")
            return self.tr("Reading page {0} of {1}").format(min(entry.done + 1, entry.total), entry.total)
        if entry.problem:
            return said(entry.problem)
        if entry.is_busy:
            return self.tr("{0} of {1} passages embedded").format(entry.done, entry.total)
        if entry.num_pages > 1:
            return numbered("{0} pages, searchable", entry.num_pages)
        if entry.encoding:
            words = (
                self.tr("Searchable, {0} (guessed)")
                if entry.is_encoding_guessed
                else self.tr("Searchable, {0}")
            )
            return words.format(entry.encoding)
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
