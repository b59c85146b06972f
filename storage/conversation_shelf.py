"""Where conversations are kept: pinned on top, in folders, put away in the archive, or in the trash for thirty days.

Changes go through the writer's connection, from its thread; reading works on any connection.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from inglenook.storage.conversations import Conversations
from inglenook.storage.database import Database, now_ms
from inglenook.storage.errors import NotFoundError
from inglenook.storage.records import Conversation
from inglenook.storage.text import storable

Shelf = Literal["chats", "archive", "trash"]
TRASH_DAYS = 30
_DAY_MS = 86_400_000
_WHERE = {
    "chats": "trashed_at_ms IS NULL AND archived_at_ms IS NULL",
    "archive": "trashed_at_ms IS NULL AND archived_at_ms IS NOT NULL",
    "trash": "trashed_at_ms IS NOT NULL",
}


class ConversationShelf:
    """Moves conversations through the given connection."""

    def __init__(self, database: Database) -> None:
        self._db = database

    def entries(self, shelf: Shelf = "chats", *, limit: int = 2_000) -> list[Conversation]:
        """Return what lies on a shelf: the pinned ones first, then by newest activity."""
        rows = self._db.rows(
            f"SELECT id FROM conversations WHERE {_WHERE[shelf]} "
            "ORDER BY pinned_at_ms IS NULL, activity DESC, id DESC LIMIT ?",
            (limit,),
        )
        conversations = Conversations(self._db)
        return [conversations.get(row[0]) for row in rows]

    def pin(self, conversation_id: int, *, is_pinned: bool) -> None:
        """Keep a conversation on top of the list, or no longer.

        Raises:
            NotFoundError: it was deleted.
        """
        self._set(conversation_id, "pinned_at_ms", now_ms() if is_pinned else None)

    def archive(self, conversation_id: int, *, is_archived: bool) -> None:
        """Put a conversation away, where searching still finds it, or take it back.

        Raises:
            NotFoundError: it was deleted.
        """
        self._set(conversation_id, "archived_at_ms", now_ms() if is_archived else None)

    def put_in_folder(self, conversation_id: int, folder: str) -> None:
        """Put a conversation into a folder; "" takes it out.

        Raises:
            NotFoundError: it was deleted.
        """
        self._set(conversation_id, "folder", storable(" ".join(folder.split())))

    def folders(self) -> list[str]:
        """Return the names of the folders that hold something, in the order of the alphabet."""
        rows = self._db.rows(
            "SELECT DISTINCT folder FROM conversations WHERE folder <> '' AND trashed_at_ms IS NULL"
        )
        return sorted((row[0] for row in rows), key=str.casefold)

    def name_by_itself(self, conversation_id: int, title: str) -> bool:
        """Give a title that the program found, unless the user gave one; say whether it was taken."""
        with self._db.atomic():
            cursor = self._db.execute(
                "UPDATE conversations SET title = ? WHERE id = ? AND is_titled = 0",
                (storable(title), conversation_id),
            )
            return cursor.rowcount == 1

    def empty_trash(self, *, older_than_days: int = 0, only: Sequence[int] | None = None) -> int:
        """Delete for good what has been in the trash for so many days; return how many."""
        with self._db.atomic():
            rows = self._db.rows(
                "SELECT id FROM conversations WHERE trashed_at_ms <= ?",
                (now_ms() - older_than_days * _DAY_MS,),
            )
            ids = [row[0] for row in rows if only is None or row[0] in only]
            conversations = Conversations(self._db)
            for conversation_id in ids:
                conversations.delete(conversation_id)
            return len(ids)

    def _set(self, conversation_id: int, column: str, value: object) -> None:
        with self._db.atomic():
            cursor = self._db.execute(
                f"UPDATE conversations SET {column} = ? WHERE id = ?", (value, conversation_id)
            )
            if cursor.rowcount != 1:
                raise NotFoundError(f"There is no conversation {conversation_id}; it may have been deleted.")
