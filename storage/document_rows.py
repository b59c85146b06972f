"""Documents, pages and chunks between the values that storage hands out and the rows of the file."""

from __future__ import annotations

import hashlib

from inglenook.storage.driver import Row
from inglenook.storage.languages import needs_trigrams
from inglenook.storage.packing import pack_rectangles
from inglenook.storage.parsing.document import Chunk, ParsedPage
from inglenook.storage.records import Document
from inglenook.storage.segmentation import segmented
from inglenook.storage.text import from_json, storable, to_json

# Of each document the newest version; counts are of the version that is searched.
SELECT_DOCUMENTS = """
SELECT d.id, d.path, d.name, v.id, v.sha256, v.size_bytes, v.modified_at_ns, v.kind, v.title, v.status, v.error, v.notices,
    v.num_pages, (SELECT count(*) FROM chunks c WHERE c.version_id = d.current_version_id),
    d.is_missing, d.added_at_ms, d.trashed_at_ms, v.encoding, v.is_encoding_guessed, v.chosen_encoding
FROM documents d JOIN document_versions v ON v.document_id = d.id AND v.sha256 = d.sha256
"""
PAGE_COLUMNS = "page_index, label, text, width, height, first_line, last_line"


def page_of(row: Row) -> ParsedPage:
    """Return a page from a row of `PAGE_COLUMNS`."""
    return ParsedPage(
        index=row[0],
        label=row[1],
        text=row[2],
        width=row[3],
        height=row[4],
        first_line=row[5],
        last_line=row[6],
    )


def chunk_row(version_id: int, chunk: Chunk) -> tuple[object, ...]:
    """Return a chunk as the columns that `Documents.add_pages` inserts."""
    text, context = storable(chunk.text), storable(chunk.context)
    search_text = segmented(text)
    return (
        version_id,
        chunk.page_index,
        storable_or_none(chunk.page_label),
        chunk.start,
        chunk.end,
        chunk.first_line,
        chunk.last_line,
        pack_rectangles(chunk.rects),
        to_json([*chunk.heading]),
        context,
        text,
        hashlib.sha256(f"{context}\n{text}".encode()).digest(),
        segmented(context),
        None if search_text == text else search_text,
        int(needs_trigrams(text)),
    )


def storable_or_none(text: str | None) -> str | None:
    """Return a text as the file can hold it, where there is one."""
    return None if text is None else storable(text)


def document_of(row: Row) -> Document:
    """Return a document from a row of `SELECT_DOCUMENTS`."""
    notices = tuple(map(str, from_json(row[11], list)))
    values = [*row[:11], notices, row[12], row[13], bool(row[14]), *row[15:18], bool(row[18]), row[19]]
    return Document(*values)
