"""From a drop to searchable documents: found, noted, parsed in the parser's process, stored, embedded.

Text is searchable by keyword as soon as a document is stored; vectors follow in the background, a batch at a time.
Whatever was cut off goes on at the next start. GUI thread only; disk, parser and database work on `Tasks`' threads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from PySide6.QtCore import QObject, Signal

from inglenook.app.tasks import Task
from inglenook.storage.parsing.document import PagePicture
from inglenook.storage.records import Document, Source


@dataclass(frozen=True, slots=True)
class Refusal:
    """A file that could not even be noted (empty, too large, gone): `sentence` says why and what to do."""

    path: str
    name: str
    sentence: str


class Indexing(QObject):
    """Adds documents and keeps them indexed. GUI thread only.

    Signals:
        documents_changed(list[Document]): the list, in the order added; after each addition and removal.
        document_changed(Document): one of the list has another status ("waiting", "parsing", "ready", "failed").
        progress_changed(int, int, int): document id, pages read, pages in all.
        embedding_changed(int, int): passages with a vector, passages in all, while vectors are being made.
        refused(Refusal): a file that is not in the list.
        notice(str): one sentence for the line below the list ("Left out: 2 link, not followed.").
    """

    documents_changed = Signal(object)
    document_changed = Signal(object)
    progress_changed = Signal(int, int, int)
    embedding_changed = Signal(int, int)
    refused = Signal(object)
    notice = Signal(str)

    @property
    def documents(self) -> list[Document]:
        """The documents, in the order in which they were added."""
        raise NotImplementedError

    def add(self, paths: Iterable[Path]) -> None:
        """Add files and the documents inside folders."""
        raise NotImplementedError

    def cancel(self, document_id: int) -> None:
        """End the reading of a document; it stays in the list as failed, and `retry` reads it."""
        raise NotImplementedError

    def retry(self, document_id: int, *, password: str | None = None) -> None:
        """Read a document again that failed; `password` opens an encrypted one, and is not kept."""
        raise NotImplementedError

    def remove(self, document_id: int) -> None:
        """Move a document to the trash; `restore` takes it back."""
        raise NotImplementedError

    def restore(self, document_id: int) -> None:
        """Take a document out of the trash."""
        raise NotImplementedError

    def render_page(
        self,
        source: Source,
        *,
        scale: float,
        on_done: Callable[[PagePicture], object],
        on_error: Callable[[Exception], object],
    ) -> Task:
        """Draw the page of a source with its rectangles; text documents have `page_text` instead."""
        raise NotImplementedError
