"""The sources of every answer: which passages it was given, and which its sentences rest on.

A source keeps its own copy of place and quote, so that a citation still opens after the document was parsed anew or
deleted. Only forgetting takes the quote away (forget.py). Changes go through the writer's connection.
"""

from __future__ import annotations

from collections.abc import Sequence

from inglenook.storage.database import Database
from inglenook.storage.driver import Row
from inglenook.storage.packing import pack_rectangles, unpack_rectangles
from inglenook.storage.records import FORGOTTEN, NewSource, Place, Source
from inglenook.storage.text import storable

_COLUMNS = (
    "s.id, s.message_id, s.document_id, s.version_id, s.chunk_id, s.document_name, s.page_index, s.page_label, "
    "s.char_start, s.char_end, s.first_line, s.last_line, s.rectangles, s.quote, s.score, s.is_cited, s.answer_start, "
    "s.answer_end, s.heading"
)


class Sources:
    """Reads and writes the sources of answers through the given connection."""

    def __init__(self, database: Database) -> None:
        self._db = database

    def replace(self, message_id: int, sources: Sequence[NewSource]) -> None:
        """Save the sources of an answer, in place of those it had.

        What was deleted since it was retrieved is stored without its id; a document that is gone also without its
        quote, since it may have been forgotten meanwhile.
        """
        with self._db.atomic():
            self._db.execute("DELETE FROM sources WHERE message_id = ?", (message_id,))
            for source in sources:
                is_there = (
                    self._db.row("SELECT 1 FROM documents WHERE id = ?", (source.document_id,)) is not None
                )
                place = source.place
                start, end = source.answer_range or (None, None)
                self._db.execute(
                    "INSERT INTO sources(message_id, document_id, version_id, chunk_id, document_name, page_index, "
                    "page_label, char_start, char_end, first_line, last_line, rectangles, quote, score, is_cited, "
                    "answer_start, answer_end, heading) "
                    "SELECT ?, (SELECT id FROM documents WHERE id = ?), (SELECT id FROM document_versions WHERE id = ?), "
                    "(SELECT id FROM chunks WHERE id = ?), ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ? "
                    "WHERE EXISTS (SELECT 1 FROM messages WHERE id = ?)",
                    (
                        message_id,
                        source.document_id,
                        source.version_id,
                        source.chunk_id,
                        storable(source.document_name) if is_there else FORGOTTEN,
                        place.page_index,
                        None if place.page_label is None else storable(place.page_label),
                        place.char_start,
                        place.char_end,
                        place.first_line,
                        place.last_line,
                        pack_rectangles(place.rectangles),
                        storable(source.quote) if is_there else FORGOTTEN,
                        source.score,
                        int(source.is_cited),
                        start,
                        end,
                        storable(source.heading) if is_there else "",
                        message_id,
                    ),
                )

    def of_message(self, message_id: int) -> list[Source]:
        """Return the sources of one answer in their order."""
        rows = self._db.rows(
            f"SELECT {_COLUMNS} FROM sources s WHERE s.message_id = ? ORDER BY s.id", (message_id,)
        )
        return [_source(row) for row in rows]

    def of_conversation(self, conversation_id: int) -> dict[int, list[Source]]:
        """Return the sources of all answers of a conversation, by message id."""
        result: dict[int, list[Source]] = {}
        for row in self._db.rows(
            f"SELECT {_COLUMNS} FROM sources s JOIN messages m ON m.id = s.message_id "
            "WHERE m.conversation_id = ? ORDER BY s.id",
            (conversation_id,),
        ):
            result.setdefault(row[1], []).append(_source(row))
        return result


def _source(row: Row) -> Source:
    place = Place(row[6], row[7], row[8], row[9], row[10], row[11], unpack_rectangles(row[12]))
    answer_range = None if row[16] is None or row[17] is None else (row[16], row[17])
    values = [*row[:6], place, row[13], row[14], bool(row[15]), answer_range, row[18]]
    return Source(*values)
