"""Changes to what was said: a message's own text, a turn taken out, a conversation forked at a message.

All work on the tree of `messages.py` and keep its rule that a child is younger than its parent. Changes go through
the writer's connection, from its thread.
"""

from __future__ import annotations

from inglenook.storage.conversations import Conversations
from inglenook.storage.database import Database
from inglenook.storage.errors import InvalidValueError, NotFoundError
from inglenook.storage.messages import Messages
from inglenook.storage.text import storable

_COPIED = (
    "role, text, status, finish_reason, error, model, sampling, token_ids, prompt_tokens, cached_tokens, ttft_s, "
    "tpot_s, seed, created_at_ms, reasoning_s, reasoning_end"
)
_COPIED_SOURCE = (
    "document_id, version_id, chunk_id, document_name, page_index, page_label, char_start, char_end, first_line, "
    "last_line, rectangles, quote, score, is_cited, answer_start, answer_end"
)


class MessageEdits:
    """Edits conversations through the given connection."""

    def __init__(self, database: Database) -> None:
        self._db = database
        self._messages = Messages(database)

    def set_text(self, message_id: int, text: str) -> None:
        """Give a message another text where it stands; what follows it stays.

        A reply loses its token ids, which were those of the old text, and the ranges of its citations.

        Raises:
            NotFoundError: there is none of that id.
            InvalidValueError: it is still being written.
        """
        with self._db.atomic():
            message = self._messages.get(message_id)
            if message.status == "streaming":
                raise InvalidValueError(
                    "This reply is still being written. Stop it first, then change its text."
                )
            self._db.execute(
                "UPDATE messages SET text = ?, token_ids = x'' WHERE id = ?", (storable(text), message_id)
            )
            self._db.execute(
                "UPDATE sources SET answer_start = NULL, answer_end = NULL WHERE message_id = ?",
                (message_id,),
            )

    def delete_turn(self, message_id: int) -> None:
        """Take a question and all replies to it out of the conversation; what follows moves up. Fine if it is gone.

        Any message of the turn names it. The turn that was shown next is shown in its place.
        """
        with self._db.atomic():
            row = self._db.row("SELECT role, parent_id FROM messages WHERE id = ?", (message_id,))
            if row is None:
                return
            if row[0] == "assistant" and row[1] is not None:
                message_id = row[1]
            question = self._messages.get(message_id)
            shown = [message.id for message in self._messages.shown(question.conversation_id)]
            place = shown.index(message_id) if message_id in shown else len(shown)
            following = shown[place + 2] if place + 2 < len(shown) else None
            self._db.execute(
                "UPDATE messages SET parent_id = ? WHERE parent_id IN (SELECT id FROM messages WHERE parent_id = ?)",
                (question.parent_id, message_id),
            )
            self._messages.delete(message_id)
            if following is not None:
                self._messages.show(following)

    def fork(self, message_id: int, title: str) -> int:
        """Copy the path down to a message, with its sources, into a new conversation; return its id.

        Raises:
            NotFoundError: there is no such message.
        """
        with self._db.atomic():
            path = self._messages.path_to(message_id)
            if not path:
                raise NotFoundError(f"There is no message {message_id}; it may have been deleted.")
            conversations = Conversations(self._db)
            origin = conversations.get(path[0].conversation_id)
            conversation_id = conversations.create(title, model=origin.model, options=origin.options)
            parent_id: int | None = None
            for message in path:
                if message.status == "streaming":
                    break
                copy_id = self._messages.add(conversation_id, message.role, message.text, parent_id=parent_id)
                self._db.execute(
                    f"UPDATE messages SET ({_COPIED}) = (SELECT {_COPIED} FROM messages WHERE id = ?) WHERE id = ?",
                    (message.id, copy_id),
                )
                self._db.execute(
                    f"INSERT INTO sources(message_id, {_COPIED_SOURCE}) "
                    f"SELECT ?, {_COPIED_SOURCE} FROM sources WHERE message_id = ? ORDER BY id",
                    (copy_id, message.id),
                )
                parent_id = copy_id
            return conversation_id
