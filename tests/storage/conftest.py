"""Fixtures for storage: a database in memory, one in a file, and documents made by hand."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from inglenook.storage.database import Database
from inglenook.storage.documents import Documents
from inglenook.storage.parsing.document import Chunk, ParsedDocument, ParsedPage, Rect
from inglenook.storage.records import Document


@pytest.fixture
def db() -> Iterator[Database]:
    with Database.in_memory() as database:
        yield database


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "profile" / "history.db"


@pytest.fixture
def file_db(path: Path) -> Iterator[Database]:
    with Database.open(path) as database:
        yield database


def parsed(*texts: str, sha256: str = "0" * 64, title: str = "") -> ParsedDocument:
    """A document with one chunk a page, which is the page's whole text."""
    pages = tuple(ParsedPage(index=i, label=str(i + 1), text=text) for i, text in enumerate(texts))
    chunks = tuple(
        Chunk(
            page_index=page.index,
            page_label=page.label,
            start=0,
            end=len(page.text),
            text=page.text,
            context=title,
            rects=(Rect(1.0, 2.0, 3.5, 4.25),),
        )
        for page in pages
    )
    return ParsedDocument(kind="text", sha256=sha256, size_bytes=10, pages=pages, chunks=chunks)


class AddDocument:
    """Adds documents made by `parsed` to a database."""

    def __init__(self, database: Database) -> None:
        self._documents = Documents(database)

    def __call__(
        self, *texts: str, path: str = "/papers/a.pdf", sha256: str = "0" * 64, title: str = ""
    ) -> Document:
        document, _ = self._documents.add(
            path, name=Path(path).name, sha256=sha256, size_bytes=10, modified_at_ns=1
        )
        self._documents.store(document.version_id, parsed(*texts, sha256=sha256, title=title))
        return self._documents.get(document.id)


@pytest.fixture
def documents_of() -> type[AddDocument]:
    """Make what adds documents to a given database."""
    return AddDocument


@pytest.fixture
def add_document(db: Database) -> AddDocument:
    """Add a document of the given pages to the database in memory."""
    return AddDocument(db)


@pytest.fixture
def parsed_document() -> Callable[..., ParsedDocument]:
    return parsed
