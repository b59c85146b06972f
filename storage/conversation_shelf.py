"""Where conversations are kept: pinned on top, in folders, put away in the archive, or in the trash for thirty days.

Changes go through the writer's connection, from its thread; reading works on any connection.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

from inglenook.storage.conversations import Conversations
from inglenook.storage.database import Database, now_ms
from inglenook.storage.errors import InvalidValueError, NotFoundError
from inglenook.storage.forget import forget_conversations
from inglenook.storage.records import Conversation
from inglenook.storage.text import storable

Shelf = Literal["chats", "archive", "trash"]
TRASH_DAYS = 30
LONGEST_FOLDER = 80
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
        return Conversations(self._db).where(
            f"{_WHERE[shelf]} ORDER BY pinned_at_ms IS NULL, activity DESC, id DESC LIMIT ?", (limit,)
        )

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

    def make_folder(self, name: str) -> str:
        """Make a folder and return its name as it is kept.

        Raises:
            InvalidValueError: it has no name, or there is one of that name, letter case aside.
        """
        kept = _folder_name(name)
        with self._db.atomic():
            self._require_free(kept)
            self._db.execute("INSERT INTO folders(name) VALUES (?)", (kept,))
        return kept

    def rename_folder(self, name: str, new_name: str) -> str:
        """Give a folder another name, and return it as it is kept; what lies in it stays there.

        Raises:
            InvalidValueError: no name, or the one of another folder.
            NotFoundError: it was deleted.
        """
        kept = _folder_name(new_name)
        with self._db.atomic():
            if kept.casefold() != name.casefold():
                self._require_free(kept)
            self._delete_folder(name)
            self._db.execute("INSERT INTO folders(name) VALUES (?)", (kept,))
            self._db.execute("UPDATE conversations SET folder = ? WHERE folder = ?", (kept, name))
        return kept

    def delete_folder(self, name: str) -> list[int]:
        """Delete a folder; its conversations stay, outside of folders. Return their ids.

        Raises:
            NotFoundError: it was deleted.
        """
        with self._db.atomic():
            self._delete_folder(name)
            rows = self._db.rows("SELECT id FROM conversations WHERE folder = ?", (name,))
            self._db.execute("UPDATE conversations SET folder = '' WHERE folder = ?", (name,))
            return [row[0] for row in rows]

    def put_in_folder(self, conversation_ids: Iterable[int], folder: str) -> None:
        """Put conversations into a folder, which is made where there is none; "" takes them out. All or none.

        Raises:
            NotFoundError: one of them was deleted.
        """
        kept = " ".join(storable(folder).split())
        with self._db.atomic():
            if kept:
                same = self._db.row("SELECT name FROM folders WHERE name = ? COLLATE NOCASE", (kept,))
                kept = same[0] if same else kept
                self._db.execute("INSERT OR IGNORE INTO folders(name) VALUES (?)", (kept,))
            for conversation_id in conversation_ids:
                self._set(conversation_id, "folder", kept)

    def folders(self) -> list[str]:
        """Return the names of all folders, in the order of the alphabet."""
        return sorted((row[0] for row in self._db.rows("SELECT name FROM folders")), key=str.casefold)

    def name_by_itself(self, conversation_id: int, title: str) -> bool:
        """Give a title that the program found, unless the user gave one; say whether it was taken."""
        with self._db.atomic():
            cursor = self._db.execute(
                "UPDATE conversations SET title = ? WHERE id = ? AND is_titled = 0",
                (storable(title), conversation_id),
            )
            return cursor.rowcount == 1

    def empty_trash(self, *, older_than_days: int = 0, only: Sequence[int] | None = None) -> int:
        """Forget what has been in the trash for so many days, so that no byte of it stays; return how many."""
        rows = self._db.rows(
            "SELECT id FROM conversations WHERE trashed_at_ms <= ?",
            (now_ms() - older_than_days * _DAY_MS,),
        )
        ids = [row[0] for row in rows if only is None or row[0] in only]
        if ids:
            forget_conversations(self._db, ids)
        return len(ids)

    def _require_free(self, name: str) -> None:
        if self._db.row("SELECT 1 FROM folders WHERE name = ? COLLATE NOCASE", (name,)):
            raise InvalidValueError(f"There is a folder “{name}” already. Choose another name.")

    def _delete_folder(self, name: str) -> None:
        if self._db.execute("DELETE FROM folders WHERE name = ?", (name,)).rowcount != 1:
            raise NotFoundError(f"There is no folder “{name}”; it may have been deleted.")

    def _set(self, conversation_id: int, column: str, value: object) -> None:
        with self._db.atomic():
            cursor = self._db.execute(
                f"UPDATE conversations SET {column} = ? WHERE id = ?", (value, conversation_id)
            )
            if cursor.rowcount != 1:
                raise NotFoundError(f"There is no conversation {conversation_id}; it may have been deleted.")


def _folder_name(name: str) -> str:
    kept = " ".join(storable(name).split())[:LONGEST_FOLDER]
    if not kept:
        raise InvalidValueError("A folder needs a name. Type one.")
    return kept
