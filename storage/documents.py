"""Documents, their versions, and the pages and chunks of the version that is searched.

A document is known by its bytes: the same bytes, wherever they lie, are the same document, and other bytes at a known
path are a new version of it. A version is stored in slices (`begin_version`, `add_pages`, `finish_version`), so that
a long document never holds the writer long and what is there can be searched at once. A new version replaces the
old one only when it is complete; until then the old one is searched. Changes go through the writer's connection.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence

from inglenook.storage.database import Database, now_ms
from inglenook.storage.document_collections import drop_empty_collections
from inglenook.storage.document_rows import (
    PAGE_COLUMNS,
    SELECT_DOCUMENTS,
    chunk_row,
    document_of,
    page_of,
    storable_or_none,
)
from inglenook.storage.errors import InvalidValueError, NotFoundError
from inglenook.storage.parsing.document import Chunk, ParsedDocument, ParsedPage
from inglenook.storage.records import Document
from inglenook.storage.text import storable, to_json
from inglenook.storage.vector_blocks import drop_vectors, keep_vectors

PAGES_PER_SLICE = 50


class Documents:
    """Reads and writes documents through the given connection."""

    def __init__(self, database: Database) -> None:
        self._db = database

    def add(
        self, path: str, *, name: str, sha256: str, size_bytes: int, modified_at_ns: int, kind: str = ""
    ) -> tuple[Document, bool]:
        """Note a file to be read; return its document, and whether there is something to read.

        The same bytes again, also at another path, give the same document with nothing to read, unless reading it
        failed before. A document in the trash is taken out of it. A new version keeps the encoding that was chosen for
        the one before.
        """
        path, name = storable(path), storable(name)
        with self._db.atomic():
            same = self._db.row("SELECT id, is_missing FROM documents WHERE sha256 = ?", (sha256,))
            if same is not None:
                document_id, is_missing = same
                if is_missing:
                    self._db.execute(
                        "UPDATE documents SET path = ?, name = ? WHERE id = ?", (path, name, document_id)
                    )
                self._db.execute(
                    "UPDATE documents SET is_missing = 0, trashed_at_ms = NULL WHERE id = ?", (document_id,)
                )
                self._db.execute(
                    "UPDATE document_versions SET status = 'waiting', error = '' "
                    "WHERE document_id = ? AND sha256 = ? AND status IN ('failed', 'locked')",
                    (document_id, sha256),
                )
                document = self.get(document_id)
                return document, document.status == "waiting"
            older = self._db.row("SELECT id FROM documents WHERE path = ? ORDER BY id DESC LIMIT 1", (path,))
            if older is not None:
                document_id = older[0]
                self._db.execute(
                    "UPDATE documents SET sha256 = ?, is_missing = 0, trashed_at_ms = NULL WHERE id = ?",
                    (sha256, document_id),
                )
                # A version that was still being read is overtaken.
                self._db.execute(
                    "UPDATE document_versions SET status = 'superseded' "
                    "WHERE document_id = ? AND status IN ('waiting', 'parsing', 'failed', 'locked')",
                    (document_id,),
                )
            else:
                document_id = self._db.execute(
                    "INSERT INTO documents(path, name, sha256, added_at_ms) VALUES (?, ?, ?, ?)",
                    (path, name, sha256, now_ms()),
                ).lastrowid
            # The same bytes as an earlier version of this document: that version is read anew.
            self._db.execute(
                "INSERT INTO document_versions(document_id, sha256, size_bytes, modified_at_ns, kind, status, "
                "added_at_ms, chosen_encoding) VALUES (?1, ?2, ?3, ?4, ?5, 'waiting', ?6, coalesce((SELECT chosen_encoding "
                "FROM document_versions WHERE document_id = ?1 ORDER BY id DESC LIMIT 1), '')) "
                "ON CONFLICT(document_id, sha256) DO UPDATE SET status = 'waiting', error = '', "
                "modified_at_ns = excluded.modified_at_ns",
                (document_id, sha256, size_bytes, modified_at_ns, kind, now_ms()),
            )
            self._db.execute(
                "UPDATE documents SET current_version_id = (SELECT id FROM document_versions WHERE document_id = ?1 "
                "AND sha256 = ?2) WHERE id = ?1 AND current_version_id IS NULL",
                (document_id, sha256),
            )
            return self.get(int(document_id or 0)), True

    def get(self, document_id: int) -> Document:
        """Return one document.

        Raises:
            NotFoundError: there is none of that id.
        """
        row = self._db.row(f"{SELECT_DOCUMENTS} WHERE d.id = ?", (document_id,))
        if row is None:
            raise _not_found(document_id)
        return document_of(row)

    def find(self, sha256: str) -> Document | None:
        """Return the document whose newest version has these bytes, or None."""
        row = self._db.row(f"{SELECT_DOCUMENTS} WHERE d.sha256 = ?", (sha256,))
        return document_of(row) if row else None

    def known_files(self) -> dict[str, tuple[int, int]]:
        """Return size and time of change of each file that was read, by path: a file that still has both is unchanged.

        Only a shortcut past reading its bytes; those decide where either differs.
        """
        rows = self._db.rows(
            "SELECT d.path, v.size_bytes, v.modified_at_ns FROM documents d JOIN document_versions v "
            "ON v.document_id = d.id AND v.sha256 = d.sha256 WHERE v.status = 'ready' AND d.trashed_at_ms IS NULL"
        )
        return {row[0]: (row[1], row[2]) for row in rows}

    def entries(self, *, trashed: bool = False) -> list[Document]:
        """Return all documents, or those in the trash, in the order in which they were added."""
        return [document_of(row) for row in self._db.rows(
            f"{SELECT_DOCUMENTS} WHERE (d.trashed_at_ms IS NOT NULL) = ? ORDER BY d.id", (trashed,)
        )]  # fmt: skip

    def waiting(self) -> list[Document]:
        """Return the documents to be read, oldest first."""
        return [document_of(row) for row in self._db.rows(
            f"{SELECT_DOCUMENTS} WHERE v.status = 'waiting' AND d.trashed_at_ms IS NULL ORDER BY v.id"
        )]  # fmt: skip

    def requeue_unfinished(self) -> int:
        """Let what a crash cut off while it was read wait again; call once at start. Return how many."""
        with self._db.atomic():
            cursor = self._db.execute(
                "UPDATE document_versions SET status = 'waiting' WHERE status = 'parsing'"
            )
            return cursor.rowcount

    def begin_version(self, version_id: int) -> None:
        """Start to read a version; what an earlier, unfinished reading left of it is dropped."""
        with self._db.atomic():
            self._drop_content([version_id])
            self._set_version(version_id, "status = 'parsing', error = '', notices = '[]', num_pages = 0", ())

    def add_pages(self, version_id: int, pages: Sequence[ParsedPage], chunks: Iterable[Chunk]) -> None:
        """Store some pages and the chunks on them; they can be searched at once."""
        with self._db.atomic():
            self._set_version(version_id, "num_pages = num_pages + ?", (len(pages),))
            self._db.executemany(
                "INSERT INTO pages(version_id, page_index, label, text, width, height, first_line, last_line) "
                "VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                [
                    (
                        version_id,
                        page.index,
                        storable_or_none(page.label),
                        storable(page.text),
                        page.width,
                        page.height,
                        page.first_line,
                        page.last_line,
                    )
                    for page in pages
                ],
            )
            self._db.executemany(
                "INSERT INTO chunks(version_id, page_index, page_label, char_start, char_end, first_line, last_line, "
                "rectangles, heading_path, context, text, content_hash, search_heading, search_text, has_trigrams) "
                "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                [chunk_row(version_id, chunk) for chunk in chunks],
            )

    def choose_encoding(self, document_id: int, encoding: str) -> Document:
        """Have a text read again in an encoding that the user chose, "" for the one that is found; it is kept.

        Until it is read again nothing of it is found. Raises `NotFoundError`.
        """
        with self._db.atomic():
            document = self.get(document_id)
            self._set_version(
                document.version_id,
                "chosen_encoding = ?, status = 'waiting', error = ''",
                (storable(encoding),),
            )
            return self.get(document_id)

    def finish_version(
        self,
        version_id: int,
        *,
        kind: str = "",
        title: str = "",
        notices: Sequence[str] = (),
        encoding: str = "",
        is_encoding_guessed: bool = False,
    ) -> None:
        """Search this version from now on, in place of the one before; unchanged chunks keep their vectors.

        Of the version before, the pages stay that answers cite, and are gone with the document.

        `title` is the document's own; `notices` are sentences for the user ("no text on 3 of 200 pages"); `encoding`
        is that of a text.
        """
        with self._db.atomic():
            self._set_version(
                version_id,
                "status = 'ready', kind = ?, title = ?, notices = ?, encoding = ?, is_encoding_guessed = ?",
                (kind, storable(title), to_json([*notices]), encoding, int(is_encoding_guessed)),
            )
            others = [
                row[0]
                for row in self._db.rows(
                    "SELECT o.id FROM document_versions v JOIN document_versions o "
                    "ON o.document_id = v.document_id AND o.id != v.id WHERE v.id = ?",
                    (version_id,),
                )
            ]
            keep_vectors(self._db, old_versions=others, new_version=version_id)
            self._db.execute(
                "UPDATE documents SET current_version_id = ?1 "
                "WHERE id = (SELECT document_id FROM document_versions WHERE id = ?1)",
                (version_id,),
            )
            for other in others:
                self._set_version(other, "status = 'superseded'", ())
            self._drop_content(others, but_cited_pages=True)

    def store(self, version_id: int, parsed: ParsedDocument) -> None:
        """Store all that was read of a version, in slices that are transactions of their own.

        Raises:
            InvalidValueError: the bytes that were read are not those of the version; add the file again.
        """
        row = self._db.row("SELECT sha256 FROM document_versions WHERE id = ?", (version_id,))
        if row is not None and row[0] != parsed.sha256:
            raise InvalidValueError("The file was changed while it was being read; it is read again.")
        self.begin_version(version_id)
        for pages, chunks in slices(parsed):
            self.add_pages(version_id, pages, chunks)
        self.finish_parsed(version_id, parsed)

    def finish_parsed(self, version_id: int, parsed: ParsedDocument) -> None:
        """Finish a version with what parsing says of it; its pages are stored."""
        self.finish_version(
            version_id,
            kind=parsed.kind,
            title=parsed.title or "",
            notices=parsed.notes,
            encoding=parsed.encoding or "",
            is_encoding_guessed=parsed.is_encoding_guessed,
        )

    def fail_version(self, version_id: int, error: str, *, needs_password: bool = False) -> None:
        """Note the sentence why a version could not be read; a version before it stays searched.

        One that `needs_password` is "locked": it waits for the user and not for another file. One that was read before,
        with another encoding say, keeps what it has.
        """
        status = "locked" if needs_password else "failed"
        with self._db.atomic():
            if self._db.row("SELECT 1 FROM pages WHERE version_id = ? LIMIT 1", (version_id,)):
                self._set_version(version_id, "status = ?, error = ?", ("ready", storable(error)))
                return
            self._set_version(version_id, "status = ?, num_pages = 0, error = ?", (status, storable(error)))

    def set_missing(self, document_id: int, is_missing: bool) -> None:
        """Note whether the file is still where it was; its text stays searchable."""
        with self._db.atomic():
            self._db.execute(
                "UPDATE documents SET is_missing = ? WHERE id = ?", (int(is_missing), document_id)
            )

    def pages(self, version_id: int) -> list[ParsedPage]:
        """Return the pages of a version, for a document that goes into the prompt whole."""
        rows = self._db.rows(
            f"SELECT {PAGE_COLUMNS} FROM pages WHERE version_id = ? ORDER BY page_index", (version_id,)
        )
        return [page_of(row) for row in rows]

    def page(self, version_id: int, page_index: int) -> ParsedPage | None:
        """Return one page, or None where the version is no longer kept or has no such page."""
        row = self._db.row(
            f"SELECT {PAGE_COLUMNS} FROM pages WHERE version_id = ? AND page_index = ?",
            (version_id, page_index),
        )
        return page_of(row) if row else None

    def trash(self, document_id: int) -> None:
        """Move it to the trash: no longer searched, found again by `restore` or by adding the file again."""
        self._set_trashed(document_id, now_ms())

    def restore(self, document_id: int) -> None:
        """Take it out of the trash."""
        self._set_trashed(document_id, None)

    def delete(self, document_id: int) -> None:
        """Delete it with all versions, text and vectors; sources of old answers keep their quotes. Fine if it is gone."""
        with self._db.atomic():
            versions = [row[0] for row in self._db.rows(
                "SELECT id FROM document_versions WHERE document_id = ?", (document_id,)
            )]  # fmt: skip
            self._drop_content(versions)
            self._db.execute("DELETE FROM documents WHERE id = ?", (document_id,))
            drop_empty_collections(self._db)

    def _drop_content(self, version_ids: Sequence[int], *, but_cited_pages: bool = False) -> None:
        which = "version_id IN (SELECT value FROM json_each(?))"
        ids = (json.dumps(list(version_ids)),)
        drop_vectors(self._db, [row[0] for row in self._db.rows(f"SELECT id FROM chunks WHERE {which}", ids)])
        self._db.execute(f"DELETE FROM chunks WHERE {which}", ids)
        # An old citation opens the text that it was made from.
        uncited = (
            " AND NOT EXISTS (SELECT 1 FROM sources s WHERE s.version_id = pages.version_id "
            "AND s.page_index = pages.page_index AND s.is_cited)"
            if but_cited_pages
            else ""
        )
        self._db.execute(f"DELETE FROM pages WHERE {which}{uncited}", ids)

    def _set_version(self, version_id: int, assignments: str, values: tuple[object, ...]) -> None:
        cursor = self._db.execute(
            f"UPDATE document_versions SET {assignments} WHERE id = ?", (*values, version_id)
        )
        if cursor.rowcount != 1:
            raise NotFoundError("The document was deleted while it was being read.")

    def _set_trashed(self, document_id: int, trashed_at_ms: int | None) -> None:
        with self._db.atomic():
            cursor = self._db.execute(
                "UPDATE documents SET trashed_at_ms = ? WHERE id = ?", (trashed_at_ms, document_id)
            )
            if cursor.rowcount != 1:
                raise _not_found(document_id)


def slices(
    parsed: ParsedDocument, pages_per_slice: int = PAGES_PER_SLICE
) -> Iterator[tuple[list[ParsedPage], list[Chunk]]]:
    """Cut a document into arguments of `add_pages`, so that other changes can come in between."""
    for start in range(0, len(parsed.pages), pages_per_slice):
        pages = [*parsed.pages[start : start + pages_per_slice]]
        indexes = {page.index for page in pages}
        yield pages, [chunk for chunk in parsed.chunks if chunk.page_index in indexes]


def _not_found(document_id: int) -> NotFoundError:
    return NotFoundError(f"There is no document {document_id}; it may have been deleted.")
