"""Pages for the source viewer: a PDF's picture, drawn in a parser process of its own, or a text as it was stored.

GUI thread only; each answer comes by callback.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from PySide6.QtCore import QObject

from inglenook.app.documents.reading_queue import MakeParser, make_parser
from inglenook.app.errors import AppError
from inglenook.app.tasks import Task, Tasks
from inglenook.storage.database import Database
from inglenook.storage.documents import Documents
from inglenook.storage.parsing.client import ParserClient
from inglenook.storage.parsing.document import PagePicture, ParsedPage
from inglenook.storage.records import Document

OnError = Callable[[Exception], object]


class PageViews(QObject):
    """Draws and reads pages of stored documents. GUI thread only; close it."""

    def __init__(
        self, tasks: Tasks, *, make_parser: MakeParser = make_parser, parent: QObject | None = None
    ) -> None:
        super().__init__(parent)
        self._tasks = tasks
        self._make_parser = make_parser
        self._parser: ParserClient | None = None

    def picture(
        self,
        document: Document,
        page_index: int,
        *,
        scale: float,
        on_done: Callable[[PagePicture], object],
        on_error: OnError,
        highlight: tuple[int, int] | None = None,
        version_id: int | None = None,
        password: str | None = None,
    ) -> Task | None:
        """Draw a page of a PDF at `scale` pixels per point, with the rectangles of a range of its text.

        With `version_id`, the version of a source, a document that was read anew since is refused; so is a file
        that has other bytes than those that were read. The task may be cancelled; None after a refusal.
        """
        if version_id is not None and version_id != document.version_id:
            on_error(
                AppError("This document was read anew since that answer. The quote is what it said then.")
            )
            return None
        if self._parser is None:
            self._parser = self._make_parser(None)
        parser = self._parser
        return self._tasks.work(
            "pictures",
            lambda task: parser.render_page(
                Path(document.path),
                page_index,
                scale=scale,
                highlight=highlight,
                password=password,
                sha256=document.sha256,
                cancelled=lambda: task.is_cancelled,
            ),
            on_done,
            on_error,
        )

    def text(
        self,
        version_id: int,
        page_index: int,
        *,
        on_done: Callable[[ParsedPage | None], object],
        on_error: OnError | None = None,
    ) -> Task:
        """Read a page's text as it was stored; None where that version is not kept any more."""

        def read(db: Database) -> ParsedPage | None:
            return Documents(db).page(version_id, page_index)

        return self._tasks.read(read, on_done, on_error)

    def close(self) -> None:
        """End the parser process."""
        if self._parser is not None:
            self._parser.close()
