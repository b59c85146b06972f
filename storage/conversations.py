"""The list of conversations. Newest activity first, by sequence and never by clock.

Deleting is in two steps: `trash`, which can be undone, and `delete`, which cannot; forget.py makes sure of the
latter's bytes. Changes go through the writer's connection, from its thread; reading works on any connection.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from inglenook.storage.database import Database, now_ms
from inglenook.storage.driver import Parameters, Row
from inglenook.storage.errors import NotFoundError
from inglenook.storage.records import Conversation
from inglenook.storage.text import from_json, storable, to_json

_COLUMNS = (
    "id, title, model, options, created_at_ms, trashed_at_ms, pinned_at_ms, archived_at_ms, folder, is_titled"
)


class Conversations:
    """Reads and writes conversations through the given connection."""

    def __init__(self, database: Database) -> None:
        self._db = database

    def create(self, title: str = "", *, model: str = "", options: Mapping[str, Any] | None = None) -> int:
        """Make a conversation, first in the list, and return its id."""
        with self._db.atomic():
            cursor = self._db.execute(
                "INSERT INTO conversations(title, model, options, activity, created_at_ms) "
                "VALUES (?, ?, ?, coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'messages'), 0), ?)",
                (storable(title), storable(model), to_json(dict(options or {})), now_ms()),
            )
            return int(cursor.lastrowid or 0)

    def get(self, conversation_id: int) -> Conversation:
        """Return one conversation.

        Raises:
            NotFoundError: there is none of that id.
        """
        row = self._db.row(f"SELECT {_COLUMNS} FROM conversations WHERE id = ?", (conversation_id,))
        if row is None:
            raise NotFoundError(f"There is no conversation {conversation_id}; it may have been deleted.")
        return _conversation(row)

    def where(self, condition: str, parameters: Parameters) -> list[Conversation]:
        """Return the conversations that an SQL condition of our own (never a user's words) selects and orders."""
        rows = self._db.rows(f"SELECT {_COLUMNS} FROM conversations WHERE {condition}", parameters)
        return [_conversation(row) for row in rows]

    def entries(self, *, limit: int = 200, offset: int = 0, trashed: bool = False) -> list[Conversation]:
        """Return a stretch of the list, or of the trash."""
        rows = self._db.rows(
            f"SELECT {_COLUMNS} FROM conversations WHERE (trashed_at_ms IS NOT NULL) = ? "
            "ORDER BY activity DESC, id DESC LIMIT ? OFFSET ?",
            (trashed, limit, offset),
        )
        return [_conversation(row) for row in rows]

    def count(self, *, trashed: bool = False) -> int:
        """Return how many there are in the list, or in the trash."""
        row = self._db.row(
            "SELECT count(*) FROM conversations WHERE (trashed_at_ms IS NOT NULL) = ?", (trashed,)
        )
        return int(row[0]) if row else 0

    def rename(self, conversation_id: int, title: str) -> None:
        """Give it another title."""
        self._set(conversation_id, "title = ?, is_titled = 1", storable(title))

    def set_model(self, conversation_id: int, model: str) -> None:
        """Note the model last used."""
        self._set(conversation_id, "model = ?", storable(model))

    def set_options(self, conversation_id: int, options: Mapping[str, Any]) -> None:
        """Replace what is set for this conversation alone."""
        self._set(conversation_id, "options = ?", to_json(dict(options)))

    def trash(self, conversation_id: int) -> None:
        """Move it to the trash, where `restore` finds it."""
        self._set(conversation_id, "trashed_at_ms = ?", now_ms())

    def restore(self, conversation_id: int) -> None:
        """Take it out of the trash."""
        self._set(conversation_id, "trashed_at_ms = ?", None)

    def delete(self, conversation_id: int) -> None:
        """Delete it with all messages and their sources; fine if it is gone."""
        with self._db.atomic():
            self._db.execute("DELETE FROM messages WHERE conversation_id = ?", (conversation_id,))
            self._db.execute("DELETE FROM conversations WHERE id = ?", (conversation_id,))

    def _set(self, conversation_id: int, assignment: str, value: object) -> None:
        with self._db.atomic():
            cursor = self._db.execute(
                f"UPDATE conversations SET {assignment} WHERE id = ?", (value, conversation_id)
            )
            if cursor.rowcount != 1:
                raise NotFoundError(f"There is no conversation {conversation_id}; it may have been deleted.")


def _conversation(row: Row) -> Conversation:
    return Conversation(
        row[0], row[1], row[2], from_json(row[3], dict), row[4], row[5], row[6], row[7], row[8], bool(row[9])
    )
