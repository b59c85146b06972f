"""Passages made by hand, for tests of prompts and citations."""

from __future__ import annotations

from inglenook.storage.records import Hit, IndexedChunk, NewSource, Place, Source


def passage(text: str, *, page: int = 0, start: int = 100, document: int = 1, score: float = 1.0) -> Hit:
    """A chunk that is found, with an id made of its document and page."""
    return Hit(
        IndexedChunk(
            id=1000 * document + page,
            document_id=document,
            version_id=document,
            document_name=f"document{document}.pdf",
            num_pages=9,
            text=text,
            place=Place(page, str(page + 1), start, start + len(text)),
            heading_path=(),
            context="",
        ),
        score,
        0,
        None,
    )


def stored(source: NewSource, id_: int = 1, quote: str | None = None) -> Source:
    """The same source as the database gives it back."""
    return Source(
        id=id_,
        message_id=1,
        document_id=source.document_id,
        version_id=source.version_id,
        chunk_id=source.chunk_id,
        document_name=source.document_name,
        place=source.place,
        quote=source.quote if quote is None else quote,
        score=source.score,
        is_cited=source.is_cited,
        answer_range=source.answer_range,
    )
