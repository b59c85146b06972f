"""The messages of a conversation: a tree, of which one path is shown.

A message knows its parent; an edited question or a second try at a reply is another child of the same parent. Each
parent (and the conversation, for first messages) notes which child is shown, so a path is read in one query.

A reply is written as it comes: `begin_reply`, then `save_reply` every so often with all the text so far, then
`finish_reply` or `fail_reply`. What is left "streaming" when the program starts was cut off by a crash, and
`mark_interrupted` says so. Changes go through the writer's connection, from its thread.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from inglenook.storage.database import Database, now_ms
from inglenook.storage.driver import Row
from inglenook.storage.errors import InvalidValueError, NotFoundError
from inglenook.storage.packing import pack_token_ids, unpack_token_ids
from inglenook.storage.records import Message, MessageStatus, ReplyFigures, Role
from inglenook.storage.text import from_json, storable, to_json

_ROLES = ("system", "user", "assistant")

_COLUMNS = (
    "m.id, m.conversation_id, m.parent_id, m.role, m.text, m.status, m.finish_reason, m.error, m.model, m.sampling, "
    "m.token_ids, m.prompt_tokens, m.cached_tokens, m.ttft_s, m.tpot_s, m.seed, m.created_at_ms"
)
# First messages have no parent, so their siblings are looked for by conversation.
_SIBLINGS = "s.conversation_id = m.conversation_id AND s.parent_id IS m.parent_id"
_PLACE = (
    f"(SELECT count(*) FROM messages s WHERE {_SIBLINGS} AND s.id < m.id), "
    f"(SELECT count(*) FROM messages s WHERE {_SIBLINGS})"
)
_REASONING = "m.reasoning_s, m.reasoning_end"
# A child is always younger than its parent, so even a garbled tree cannot make the walk go round.
SHOWN_PATH = """
WITH RECURSIVE shown(id) AS (
    SELECT coalesce(active_root_id, (SELECT max(id) FROM messages WHERE conversation_id = c.id AND parent_id IS NULL))
        FROM conversations c WHERE c.id = ?
    UNION ALL
    SELECT child.id FROM shown JOIN messages parent ON parent.id = shown.id
        JOIN messages child ON child.id =
            coalesce(parent.active_child_id, (SELECT max(id) FROM messages WHERE parent_id = parent.id))
        WHERE child.id > parent.id
)
"""


class Messages:
    """Reads and writes messages through the given connection."""

    def __init__(self, database: Database) -> None:
        self._db = database

    def add(self, conversation_id: int, role: Role, text: str, *, parent_id: int | None) -> int:
        """Save a whole message under `parent_id` (None: as a first message), show it, and return its id.

        Raises:
            NotFoundError: there is no such conversation, or no such parent in it.
        """
        return self._insert(conversation_id, role, text, parent_id, "complete", "", {})

    def begin_reply(
        self, conversation_id: int, *, parent_id: int | None, model: str, sampling: Mapping[str, Any]
    ) -> int:
        """Save an empty reply that is about to be written, show it, and return its id.

        Raises:
            NotFoundError: there is no such conversation, or no such parent in it.
        """
        return self._insert(conversation_id, "assistant", "", parent_id, "streaming", model, sampling)

    def resume_reply(self, message_id: int) -> None:
        """Let a reply that was cut off be written on; its text stays.

        Raises:
            NotFoundError: there is none of that id.
            InvalidValueError: it is being written, or is no reply.
        """
        with self._db.atomic():
            message = self.get(message_id)
            if message.role != "assistant" or message.status == "streaming":
                raise InvalidValueError("Only a reply that has ended can be gone on with.")
            self._db.execute(
                "UPDATE messages SET status = 'streaming', finish_reason = NULL, error = '' WHERE id = ?",
                (message_id,),
            )

    def save_reply(self, message_id: int, text: str, token_ids: Sequence[int]) -> None:
        """Save all that a reply has so far; one that has ended is left as it is."""
        with self._db.atomic():
            self._db.execute(
                "UPDATE messages SET text = ?, token_ids = ? WHERE id = ? AND status = 'streaming'",
                (storable(text), pack_token_ids(token_ids), message_id),
            )

    def finish_reply(
        self,
        message_id: int,
        text: str,
        token_ids: Sequence[int],
        *,
        finish_reason: str,
        figures: ReplyFigures | None = None,
    ) -> None:
        """Save the whole reply and how it ended.

        Raises:
            NotFoundError: the message was deleted meanwhile.
        """
        self._end(message_id, text, token_ids, "complete", finish_reason, "", figures or ReplyFigures())

    def fail_reply(self, message_id: int, text: str, token_ids: Sequence[int], *, error: str) -> None:
        """Save what there is of a reply that the engine could not complete, and its sentence why.

        Raises:
            NotFoundError: the message was deleted meanwhile.
        """
        self._end(message_id, text, token_ids, "failed", "error", error, ReplyFigures())

    def set_reasoning(self, message_id: int, *, seconds: float | None, end_tag: str) -> None:
        """Note how long a reply was thought over, None not at all, and what ends a thought that its prompt began.

        Fine if the message is gone.
        """
        with self._db.atomic():
            self._db.execute(
                "UPDATE messages SET reasoning_s = ?, reasoning_end = ? WHERE id = ?",
                (seconds, storable(end_tag), message_id),
            )

    def mark_interrupted(self) -> int:
        """Mark the replies that a crash cut off; call once at start, before any reply begins. Return how many."""
        with self._db.atomic():
            cursor = self._db.execute("UPDATE messages SET status = 'interrupted' WHERE status = 'streaming'")
            return cursor.rowcount

    def get(self, message_id: int) -> Message:
        """Return one message.

        Raises:
            NotFoundError: there is none of that id.
        """
        row = self._db.row(
            f"SELECT {_COLUMNS}, {_PLACE}, {_REASONING} FROM messages m WHERE m.id = ?", (message_id,)
        )
        if row is None:
            raise _not_found(message_id)
        return _message(row)

    def shown(self, conversation_id: int) -> list[Message]:
        """Return the shown path from the first message to the last."""
        rows = self._db.rows(
            f"{SHOWN_PATH} SELECT {_COLUMNS}, {_PLACE}, {_REASONING} FROM messages m WHERE m.id IN (SELECT id FROM shown) ORDER BY m.id",
            (conversation_id,),
        )
        return [_message(row) for row in rows]

    def path_to(self, message_id: int) -> list[Message]:
        """Return the path from the first message to this one, shown or not."""
        rows = self._db.rows(
            "WITH RECURSIVE above(id) AS (SELECT ? UNION ALL SELECT child.parent_id FROM above "
            "JOIN messages child ON child.id = above.id WHERE child.parent_id < child.id) "
            f"SELECT {_COLUMNS}, {_PLACE}, {_REASONING} FROM messages m WHERE m.id IN (SELECT id FROM above) ORDER BY m.id",
            (message_id,),
        )
        return [_message(row) for row in rows]

    def branches(self, message_id: int) -> list[int]:
        """Return the ids of the alternatives to a message, itself among them, oldest first."""
        rows = self._db.rows(
            f"SELECT s.id FROM messages m JOIN messages s ON {_SIBLINGS} WHERE m.id = ? ORDER BY s.id",
            (message_id,),
        )
        return [row[0] for row in rows]

    def show(self, message_id: int) -> None:
        """Make this message part of the shown path, with what was last shown below it.

        Raises:
            NotFoundError: there is none of that id.
        """
        with self._db.atomic():
            path = self.path_to(message_id)
            if not path:
                raise _not_found(message_id)
            for message in path:
                self._make_active(message.conversation_id, message.parent_id, message.id)

    def delete(self, message_id: int) -> None:
        """Delete a message and all below it; its newest sibling is shown instead. Fine if it is gone."""
        with self._db.atomic():
            row = self._db.row("SELECT conversation_id, parent_id FROM messages WHERE id = ?", (message_id,))
            if row is None:
                return
            self._db.execute(
                "WITH RECURSIVE below(id) AS (SELECT ? UNION ALL SELECT m.id FROM below JOIN messages m "
                "ON m.parent_id = below.id) DELETE FROM messages WHERE id IN (SELECT id FROM below)",
                (message_id,),
            )
            # Deleting has set the pointer to NULL, which reads as "the newest".

    def _insert(
        self,
        conversation_id: int,
        role: Role,
        text: str,
        parent_id: int | None,
        status: MessageStatus,
        model: str,
        sampling: Mapping[str, Any],
    ) -> int:
        if role not in _ROLES:
            raise InvalidValueError(
                f"The role of a message must be one of {', '.join(_ROLES)}, got {role!r}."
            )
        with self._db.atomic():
            if self._db.row("SELECT 1 FROM conversations WHERE id = ?", (conversation_id,)) is None:
                raise NotFoundError(f"There is no conversation {conversation_id}; it may have been deleted.")
            if parent_id is not None:
                parent = self._db.row("SELECT conversation_id FROM messages WHERE id = ?", (parent_id,))
                if parent is None or parent[0] != conversation_id:
                    raise NotFoundError(f"There is no message {parent_id} in conversation {conversation_id}.")
            cursor = self._db.execute(
                "INSERT INTO messages(conversation_id, parent_id, role, text, status, model, sampling, created_at_ms) "
                "VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    conversation_id,
                    parent_id,
                    role,
                    storable(text),
                    status,
                    storable(model),
                    to_json(dict(sampling)),
                    now_ms(),
                ),
            )
            message_id = int(cursor.lastrowid or 0)
            self._make_active(conversation_id, parent_id, message_id)
            self._db.execute(
                "UPDATE conversations SET activity = ? WHERE id = ?", (message_id, conversation_id)
            )
            return message_id

    def _make_active(self, conversation_id: int, parent_id: int | None, message_id: int) -> None:
        if parent_id is None:
            self._db.execute(
                "UPDATE conversations SET active_root_id = ? WHERE id = ?", (message_id, conversation_id)
            )
        else:
            self._db.execute("UPDATE messages SET active_child_id = ? WHERE id = ?", (message_id, parent_id))

    def _end(
        self,
        message_id: int,
        text: str,
        token_ids: Sequence[int],
        status: MessageStatus,
        finish_reason: str,
        error: str,
        figures: ReplyFigures,
    ) -> None:
        with self._db.atomic():
            cursor = self._db.execute(
                "UPDATE messages SET text = ?, token_ids = ?, status = ?, finish_reason = ?, error = ?, "
                "prompt_tokens = ?, cached_tokens = ?, ttft_s = ?, tpot_s = ?, seed = ? WHERE id = ?",
                (
                    storable(text),
                    pack_token_ids(token_ids),
                    status,
                    finish_reason,
                    storable(error),
                    figures.prompt_tokens,
                    figures.cached_tokens,
                    figures.ttft_s,
                    figures.tpot_s,
                    figures.seed,
                    message_id,
                ),
            )
            if cursor.rowcount != 1:
                raise _not_found(message_id)


def _not_found(message_id: int) -> NotFoundError:
    return NotFoundError(f"There is no message {message_id}; it may have been deleted.")


def _message(row: Row) -> Message:
    values = [*row[:9], from_json(row[9], dict), unpack_token_ids(row[10]), *row[11:]]
    return Message(*values)
