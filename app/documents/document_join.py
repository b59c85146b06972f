"""Joins documents: the list and the source viewer with what reads, embeds and draws them. GUI thread only."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from PySide6.QtCore import QObject, Qt, Signal
from PySide6.QtGui import QImage
from PySide6.QtWidgets import QFileDialog, QInputDialog, QLineEdit

from inglenook.app.answers.citations import ShownCitation
from inglenook.app.application import Application
from inglenook.app.documents.document_list_model import DocumentEntry, DocumentState
from inglenook.app.documents.document_scope import DocumentScope
from inglenook.app.documents.dropped_files import Refusal
from inglenook.app.documents.source_panel import SourceView
from inglenook.app.tasks import Task
from inglenook.app.text.rich_text import label
from inglenook.app.translations.sentences import said
from inglenook.app.window.banner import BannerLine
from inglenook.app.window.confirmation import confirm
from inglenook.app.window.main_window import MainWindow
from inglenook.storage.parsing.document import PagePicture, ParsedPage
from inglenook.storage.records import FORGOTTEN, Document, Source, VersionStatus

_STATES: dict[VersionStatus, DocumentState] = {
    "waiting": "queued", "parsing": "reading", "ready": "ready", "failed": "failed", "locked": "locked",
    "superseded": "ready",
}  # fmt: skip


class DocumentJoin(QObject):
    """Shows documents and their pages. Signals: `forgotten()` after a document is gone for good."""

    forgotten = Signal()

    def __init__(self, window: MainWindow, application: Application) -> None:
        super().__init__(window)
        self._window, self._app = window, application
        self._scope = DocumentScope(window, application)
        self._scope.changed.connect(self._show)
        self._scope.retry_requested.connect(self._retry)
        # Of encrypted files, to draw their pages; for as long as the program runs.
        self._passwords: dict[int, str] = {}
        self._known: set[int] | None = None
        self._is_new_chat = True
        self._progress: dict[int, tuple[int, int]] = {}
        self._embedded: dict[int, tuple[int, int]] = {}
        self._refusals: list[Refusal] = []
        self._source: Source | None = None
        self._document: Document | None = None
        self._page_task: Task | None = None
        self._forgetting: int | None = None
        documents, indexing = window.sidebar.documents, application.indexing
        documents.add_requested.connect(self.choose_files)
        documents.open_requested.connect(self._open_document)
        documents.retry_requested.connect(self._retry)
        documents.remove_requested.connect(self._ask_forget)
        documents.cancel_requested.connect(indexing.cancel)
        documents.encoding_chosen.connect(indexing.choose_encoding)
        documents.embedder_chosen.connect(self._choose_embedder)
        indexing.swap.changed.connect(documents.set_embedder_change)
        indexing.swap.failed.connect(
            lambda words: window.banner.show_line("embedder", BannerLine(words, "error"))
        )
        application.embedder.changed.connect(self._show_embedders)
        application.models.changed.connect(self._show_embedders)
        window.chat.composer.attach_requested.connect(self.choose_files)
        window.source.page_requested.connect(self._draw)
        indexing.documents_changed.connect(self._take_documents)
        indexing.document_changed.connect(self._take_document)
        indexing.progress_changed.connect(self._take_progress)
        indexing.embedding_changed.connect(documents.set_embedding)
        indexing.document_embedding_changed.connect(self._take_embedding)
        indexing.refused.connect(self._take_refusal)
        indexing.repeated.connect(self._take_repeated)
        indexing.notice.connect(lambda sentence: window.banner.show_line("files", BannerLine(sentence)))

    def ticked(self) -> list[int]:
        """The documents that the next question is about, also those that cannot be searched, which is then said."""
        return self._scope.ids

    def set_ticked(self, document_ids: Iterable[int]) -> None:
        """Tick just these."""
        self._scope.set_ticked(document_ids)

    def take_shown(self, conversation_id: int | None) -> None:
        """Begin a new chat with all documents ticked, whatever was ticked before; other chats have ticks of their own."""
        self._is_new_chat = conversation_id is None
        if self._is_new_chat:
            self._tick_for_new_chat()

    def _tick_for_new_chat(self) -> None:
        is_wanted = self._app.settings.value("documents.ticked_when_added")
        self._scope.set_ticked(document.id for document in self._app.indexing.documents if is_wanted)

    def add(self, paths: Sequence[Path]) -> None:
        """Add files and what is in folders."""
        self._refusals.clear()
        self._window.banner.clear_line("files")
        self._app.indexing.add(paths)

    def choose_files(self) -> None:
        """Ask for files in a dialog."""
        dialog = QFileDialog(self._window, self.tr("Add documents"))
        dialog.setFileMode(QFileDialog.FileMode.ExistingFiles)
        dialog.setNameFilters(
            [
                self.tr(
                    "Documents (*.pdf *.docx *.html *.htm *.xhtml *.md *.markdown *.txt *.text *.csv *.tsv)"
                ),
                self.tr("All files (*)"),
            ]
        )
        dialog.filesSelected.connect(lambda files: self.add([Path(file) for file in files]))
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        dialog.open()

    def choose_folder(self) -> None:
        """Ask for a folder in a dialog."""
        dialog = QFileDialog(self._window, self.tr("Add a folder of documents"))
        dialog.setFileMode(QFileDialog.FileMode.Directory)
        dialog.filesSelected.connect(lambda files: self.add([Path(file) for file in files]))
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        dialog.open()

    def open_citation(self, citation: ShownCitation) -> None:
        """Show the page that a citation names, with its passage marked."""
        source = citation.source
        self._source = source
        self._document = self._find(source.document_id)
        place = source.place
        self._window.open_source()
        self._window.source.open(
            SourceView(
                source.document_id or 0,
                source.document_name,
                place.page_index,
                self._document.num_pages if self._document else 0,
                place.page_label,
                source.quote,
                tuple((r.left, r.top, r.right, r.bottom) for r in place.rectangles),
            )
        )

    def _open_document(self, document_id: int) -> None:
        self._source, self._document = None, self._find(document_id)
        if self._document is not None:
            self._window.open_source()
            self._window.source.open(
                SourceView(document_id, self._document.name, 0, self._document.num_pages)
            )

    def _draw(self, page_index: int, scale: float) -> None:
        """Have a page drawn or read for the viewer, in place of the one that was asked for before."""
        if self._page_task is not None:
            self._page_task.cancel()
            self._page_task = None
        panel, source, document = self._window.source, self._source, self._document
        if source is not None and source.quote == FORGOTTEN:
            panel.show_problem(page_index, self.tr("This document was forgotten, and its quotes with it."))
            return
        if document is None:
            panel.show_problem(page_index, self.tr("This document is no longer in Inglenook."))
            return
        version_id = source.version_id if source is not None and source.version_id else document.version_id
        is_passage = source is not None and page_index == source.place.page_index
        highlight = (
            (source.place.char_start, source.place.char_end) if source is not None and is_passage else None
        )

        def failed(error: Exception) -> None:
            panel.show_problem(page_index, said(str(error)))

        if document.kind == "pdf":
            self._page_task = self._app.pages.picture(
                document,
                page_index,
                scale=scale,
                highlight=highlight,
                version_id=version_id,
                password=self._passwords.get(document.id),
                on_done=self._take_picture,
                on_error=failed,
            )
            return

        def read(page: ParsedPage | None) -> None:
            if page is None:
                panel.show_problem(
                    page_index, self.tr("This document was read anew since. The quote is what it said then.")
                )
                return
            start, end = highlight or (0, 0)
            words = self.tr("lines {0}–{1}").format(page.first_line, page.last_line)
            place = words if page.first_line is not None else ""
            panel.show_text(
                page_index, page.text, start=start, end=end, place=place, num_pages=document.num_pages
            )

        self._page_task = self._app.pages.text(version_id, page_index, on_done=read, on_error=failed)

    def _take_picture(self, picture: PagePicture) -> None:
        # The image keeps the bytes alive only while `picture` does, so it takes a copy once.
        image = QImage(
            picture.pixels, picture.width, picture.height, picture.width * 4, QImage.Format.Format_RGBA8888
        ).copy()
        self._window.source.show_picture(
            picture.page_index,
            image,
            scale=picture.scale,
            page_label=picture.label,
            num_pages=picture.num_pages,
            rects=[(r.left, r.top, r.right, r.bottom) for r in picture.rects],
        )

    def _find(self, document_id: int | None) -> Document | None:
        return next((d for d in self._app.indexing.documents if d.id == document_id), None)

    def _take_documents(self, documents: list[Document]) -> None:
        ids = {document.id for document in documents}
        if self._known is None and self._is_new_chat:
            self._tick_for_new_chat()
        if self._known is not None and self._app.settings.value("documents.ticked_when_added"):
            self._scope.add(ids - self._known)
        if self._forgetting is not None and self._forgetting not in ids:
            self._forgetting = None
            self.forgotten.emit()
        self._known = ids
        self._show()

    def _take_repeated(self, document_ids: Sequence[int]) -> None:
        """Tick what was dropped again as if it were new."""
        if document_ids and self._app.settings.value("documents.ticked_when_added"):
            self._scope.add(document_ids)
            self._show()

    def _choose_embedder(self, name: str) -> None:
        model = self._app.models.state.get(name)
        if model is not None:
            self._app.use_embedder(model)
        else:
            self._app.stop_embedder_change()

    def _show_embedders(self, _state: object = None) -> None:
        names = [
            model.name
            for model in self._app.models.state.models
            if model.record.kind == "embedding" and not model.is_missing
        ]
        self._window.sidebar.documents.set_embedders(names, self._app.embedder.name)

    def _take_document(self, document: Document) -> None:
        if document.status == "locked":
            words = self.tr("{0}: {1}").format(label(document.name, 80), document.error)
            line = BannerLine(words, "notice", self.tr("Enter password…"), lambda: self._retry(document.id))
            self._window.banner.show_line("password", line)
        elif not any(each.status == "locked" for each in self._app.indexing.documents):
            self._window.banner.clear_line("password")
        self._show()

    def _take_progress(self, document_id: int, done: int, total: int) -> None:
        self._progress[document_id] = (done, total)
        self._show()

    def _take_embedding(self, document_id: int, done: int, total: int) -> None:
        self._embedded[document_id] = (done, total)
        self._show()

    def _take_refusal(self, refusal: Refusal) -> None:
        self._refusals.append(refusal)
        words = f"{label(self._refusals[0].name, 80)}: {self._refusals[0].sentence}"
        if len(self._refusals) > 1:
            words = self.tr("{0} {1} more files were not added.").format(words, len(self._refusals) - 1)
        self._window.banner.show_line("refused", BannerLine(words, "error"))

    def _show(self) -> None:
        entries = []
        for document in self._app.indexing.documents:
            known = self._embedded if document.status == "ready" else self._progress
            done, total = known.get(document.id, (0, 0))
            entries.append(
                DocumentEntry(
                    document.id,
                    document.name,
                    _STATES[document.status],
                    done,
                    total,
                    num_pages=document.num_pages if document.kind == "pdf" else 0,
                    problem=document.error or " ".join(document.notices),
                    is_missing=document.is_missing,
                    is_ticked=self._scope.is_ticked(document.id),
                    encoding=document.encoding,
                    is_encoding_guessed=document.is_encoding_guessed,
                    collections=self._scope.collections_of(document.id),
                )
            )
        self._window.sidebar.documents.set_entries(entries)
        names = {d.id: d.name for d in self._app.indexing.documents if d.num_chunks}
        self._window.chat.set_document_names([names[id_] for id_ in self.ticked() if id_ in names])
        self._scope.show_chips()

    def _retry(self, document_id: int) -> None:
        document = self._find(document_id)
        if document is None:
            return
        if document.status != "locked":
            self._app.indexing.retry(document_id)
            return

        def entered(password: str) -> None:
            self._passwords[document_id] = password
            self._app.indexing.retry(document_id, password=password)

        dialog = QInputDialog(self._window)
        dialog.setWindowTitle(self.tr("Password"))
        dialog.setLabelText(self.tr("Password of {0}; it is not stored.").format(label(document.name, 80)))
        dialog.setTextEchoMode(QLineEdit.EchoMode.Password)
        dialog.textValueSelected.connect(entered)
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        dialog.open()

    def _ask_forget(self, document_id: int) -> None:
        document = self._find(document_id)
        if document is None:
            return
        confirm(
            self._window,
            title=self.tr("Remove document"),
            question=self.tr("Remove “{0}” from Inglenook?").format(label(document.name, 80)),
            detail=self.tr(
                "Its text, its search index and the quotes under earlier answers are deleted for good. The file "
                "itself stays where it is."
            ),
            button=self.tr("Remove"),
            accepted=lambda: self._forget(document_id),
        )

    def _forget(self, document_id: int) -> None:
        self._forgetting = document_id
        if self._document is not None and self._document.id == document_id:
            self._window.source.clear()
            self._window.close_source()
        self._scope.discard(document_id)
        self._passwords.pop(document_id, None)
        self._app.indexing.forget(document_id)
