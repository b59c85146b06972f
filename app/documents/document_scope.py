"""Which documents the next question is about: ticks, set one by one or by collection, name and year. GUI thread only."""

from __future__ import annotations

import re
from collections.abc import Iterable

from PySide6.QtCore import QObject, Qt, Signal
from PySide6.QtWidgets import QBoxLayout, QInputDialog

from inglenook.app.application import Application
from inglenook.app.documents.document_chips import DocumentChip, DocumentChips
from inglenook.app.window.centred_column import in_column
from inglenook.app.window.main_window import MainWindow
from inglenook.storage.document_collections import Collection
from inglenook.storage.records import Document
from inglenook.storage.scope import Scope, documents_in

_YEAR = re.compile(r"\d{4}")


class DocumentScope(QObject):
    """The ticks. Signals: `changed()`; `retry_requested(id)` when the chip of one that is not used was pressed."""

    changed = Signal()
    retry_requested = Signal(int)

    def __init__(self, window: MainWindow, application: Application) -> None:
        super().__init__(window)
        self._window, self._app = window, application
        self._ticked: set[int] = set()
        self._collections: list[Collection] = []
        self.chips = DocumentChips(window.theme)
        column = window.chat.layout()
        assert isinstance(column, QBoxLayout)
        column.insertWidget(column.indexOf(window.chat.composer), in_column(self.chips, window.theme))
        documents = window.sidebar.documents
        documents.ticked.connect(self._tick)
        documents.scope_chosen.connect(self.set_ticked)
        documents.scope_requested.connect(self._ask_scope)
        documents.collection_requested.connect(self._ask_collection)
        documents.uncollect_requested.connect(
            lambda id_, name: application.indexing.take_out_of_collection(name, [id_])
        )
        application.indexing.collections_changed.connect(self._take_collections)
        self.chips.chosen.connect(self._take_chip)

    @property
    def ids(self) -> list[int]:
        """The ticked documents, in the order of the list."""
        return [document.id for document in self._app.indexing.documents if document.id in self._ticked]

    def is_ticked(self, document_id: int) -> bool:
        """Whether the next question is about this one."""
        return document_id in self._ticked

    def collections_of(self, document_id: int) -> tuple[str, ...]:
        """The names of the collections that a document is in."""
        return tuple(each.name for each in self._collections if document_id in each.document_ids)

    def set_ticked(self, document_ids: Iterable[int]) -> None:
        """Tick just these."""
        self._ticked = set(document_ids)
        self.changed.emit()

    def add(self, document_ids: Iterable[int]) -> None:
        """Tick these, too, without telling it."""
        self._ticked |= set(document_ids)

    def discard(self, document_id: int) -> None:
        """Take the tick of one away without telling it."""
        self._ticked.discard(document_id)

    def show_chips(self) -> None:
        """Show what is ticked, and why some of it is not used."""
        documents = [document for document in self._app.indexing.documents if document.id in self._ticked]
        self.chips.set_chips([DocumentChip(d.id, d.name, self._reason(d)) for d in documents])

    def _reason(self, document: Document) -> str:
        if document.status == "locked":
            return self.tr("Not used: it waits for its password")
        if document.status == "failed" and not document.num_chunks:
            return self.tr("Not used. {0}").format(document.error)
        if not document.num_chunks:
            return self.tr("Not read yet")
        return ""

    def _tick(self, document_id: int, is_ticked: bool) -> None:
        if is_ticked:
            self._ticked.add(document_id)
        else:
            self._ticked.discard(document_id)
        self.changed.emit()

    def _take_chip(self, document_id: int) -> None:
        document = next((d for d in self._app.indexing.documents if d.id == document_id), None)
        if document is not None and document.status in ("failed", "locked"):
            self.retry_requested.emit(document_id)
        else:
            self._tick(document_id, False)

    def _take_collections(self, collections: list[Collection]) -> None:
        self._collections = collections
        self.changed.emit()

    def _ask_collection(self, document_id: int) -> None:
        dialog = self._dialog(
            self.tr("Collection"), self.tr("Name of the collection, of a new one or of one there is:")
        )
        dialog.setComboBoxItems([each.name for each in self._collections])
        dialog.setComboBoxEditable(True)
        dialog.textValueSelected.connect(
            lambda name: self._app.indexing.put_into_collection(name, [document_id])
        )
        dialog.open()

    def _ask_scope(self) -> None:
        dialog = self._dialog(
            self.tr("Ask documents by name or year"),
            self.tr("Years and parts of names, as in “2023, report*”:"),
        )
        dialog.textValueSelected.connect(self.tick_by_text)
        dialog.open()

    def tick_by_text(self, text: str) -> None:
        """Tick the documents of the years and of the names that a person typed, parted by commas."""
        parts = [part.strip() for part in text.split(",") if part.strip()]
        if not parts:
            return
        years = tuple(int(part) for part in parts if _YEAR.fullmatch(part))
        names = tuple(part for part in parts if not _YEAR.fullmatch(part))
        self._app.tasks.read(lambda db: documents_in(db, Scope(names=names, years=years)), self.set_ticked)

    def _dialog(self, title: str, words: str) -> QInputDialog:
        dialog = QInputDialog(self._window)
        dialog.setWindowTitle(title)
        dialog.setLabelText(words)
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        return dialog
