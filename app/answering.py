"""One turn: save the question, find passages, build the prompt, submit, save the reply as it grows, attach sources.

The question and an empty reply are saved in one transaction before anything is generated; the reply's text is saved
every half second while it streams, so a crash loses no more. Stopping is acknowledged at once. Several conversations
may be answered at the same time, each by one turn. GUI thread only; nothing here waits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from PySide6.QtCore import QObject, Signal

from inglenook.storage.database import Database
from inglenook.storage.records import Conversation, Message, Source


@dataclass(frozen=True, slots=True)
class Turn:
    """A turn as it was saved at its start: `reply` is empty and "streaming"."""

    conversation: Conversation
    is_new_conversation: bool
    question: Message
    reply: Message


@dataclass(frozen=True, slots=True)
class Answer:
    """A reply as it was saved at its end, whole, stopped or failed, with its sources; `citations.shown_citations`
    numbers them. `notices` are sentences about the turn (earlier messages left out, say)."""

    reply: Message
    sources: tuple[Source, ...] = ()
    notices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class OpenedConversation:
    """A conversation to show: its shown messages, the sources of each reply by message id, and the ticked documents."""

    conversation: Conversation
    messages: tuple[Message, ...]
    sources: dict[int, list[Source]]
    document_ids: tuple[int, ...]


def open_conversation(db: Database, conversation_id: int) -> OpenedConversation:
    """Read a conversation; for `tasks.read`.

    Raises:
        NotFoundError: it was deleted.
    """
    raise NotImplementedError


class Answering(QObject):
    """Asks and answers. GUI thread only.

    Signals:
        turn_started(Turn): question and reply are saved; show both.
        stage_changed(int, str): reply id, what is being done before the first word ("Searching 2 documents"), or "".
        reply_text(int, str): reply id, the next piece of its text.
        reply_stopping(int): Stop was taken; no text of this reply comes any more, and `reply_ended` follows.
        reply_ended(Answer): the reply is saved with its sources. Its `reply.status` is "complete" (finish_reason
            "stop", "length" or "cancelled") or "failed" (`reply.error` is the sentence).
        turn_refused(str, str): nothing could be saved: the question's text, to be put back, and a sentence.
    """

    turn_started = Signal(object)
    stage_changed = Signal(int, str)
    reply_text = Signal(int, str)
    reply_stopping = Signal(int)
    reply_ended = Signal(object)
    turn_refused = Signal(str, str)

    def ask(self, text: str, *, conversation_id: int | None = None, document_ids: Sequence[int] = ()) -> None:
        """Ask at the end of a conversation, or in a new one; `document_ids` are the ticked documents."""
        raise NotImplementedError

    def edit(self, question_id: int, text: str, *, document_ids: Sequence[int] = ()) -> None:
        """Ask another question in place of one that was asked; the old branch stays."""
        raise NotImplementedError

    def regenerate(self, reply_id: int, *, document_ids: Sequence[int] = ()) -> None:
        """Answer the same question once more, as a sibling of a reply."""
        raise NotImplementedError

    def stop(self, reply_id: int) -> None:
        """End a reply early; fine if it has ended."""
        raise NotImplementedError

    def active_reply(self, conversation_id: int) -> int | None:
        """Return the reply being written in a conversation, for Stop; None when none is."""
        raise NotImplementedError
