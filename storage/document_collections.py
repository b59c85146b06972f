"""Collections: documents gathered under a name, so that a question can be about them alone.

A document may be in several. A collection is there as long as it has a document; forgetting the last one takes the name
along. Names differ by more than letter case. Changes go through the writer's connection.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass

from inglenook.storage.database import Database
from inglenook.storage.errors import InvalidValueError, NotFoundError
from inglenook.storage.text import storable

MAX_NAME_CHARS = 100


@dataclass(frozen=True, slots=True)
class Collection:
    """A collection and its documents, those in the trash left out."""

    name: str
    document_ids: tuple[int, ...]


class DocumentCollections:
    """Reads and writes collections through the given connection."""

    def __init__(self, database: Database) -> None:
        self._db = database

    def entries(self) -> list[Collection]:
        """Return all collections that have a document, by name."""
        rows = self._db.rows(
            "SELECT c.name, d.id FROM collections c JOIN collection_documents cd ON cd.collection_id = c.id "
            "JOIN documents d ON d.id = cd.document_id WHERE d.trashed_at_ms IS NULL "
            "ORDER BY c.name COLLATE NOCASE, d.id"
        )
        found: dict[str, list[int]] = {}
        for name, document_id in rows:
            found.setdefault(name, []).append(document_id)
        return [Collection(name, tuple(ids)) for name, ids in found.items()]

    def put(self, name: str, document_ids: Iterable[int]) -> None:
        """Put documents into a collection, which is made if there is none of that name.

        Raises:
            InvalidValueError: the name is empty or too long.
        """
        name = " ".join(storable(name).split())
        if not 0 < len(name) <= MAX_NAME_CHARS:
            raise InvalidValueError(
                f"A collection's name has 1 to {MAX_NAME_CHARS} characters, got {len(name)}. Choose another name."
            )
        with self._db.atomic():
            self._db.execute("INSERT OR IGNORE INTO collections(name) VALUES (?)", (name,))
            self._db.execute(
                "INSERT OR IGNORE INTO collection_documents(collection_id, document_id) "
                "SELECT (SELECT id FROM collections WHERE name = ? COLLATE NOCASE), id FROM documents "
                "WHERE id IN (SELECT value FROM json_each(?))",
                (name, json.dumps(list(document_ids))),
            )
            self._drop_empty()

    def take_out(self, name: str, document_ids: Iterable[int]) -> None:
        """Take documents out of a collection; they stay in the list.

        Raises:
            NotFoundError: there is no such collection.
        """
        with self._db.atomic():
            row = self._db.row("SELECT id FROM collections WHERE name = ? COLLATE NOCASE", (name,))
            if row is None:
                raise NotFoundError(f"There is no collection “{name}”; it may have lost its last document.")
            self._db.execute(
                "DELETE FROM collection_documents WHERE collection_id = ? "
                "AND document_id IN (SELECT value FROM json_each(?))",
                (row[0], json.dumps(list(document_ids))),
            )
            self._drop_empty()

    def _drop_empty(self) -> None:
        drop_empty_collections(self._db)


def drop_empty_collections(db: Database) -> None:
    """Delete the collections that have no document left, so that no name outlives what it named."""
    db.execute("DELETE FROM collections WHERE id NOT IN (SELECT collection_id FROM collection_documents)")
