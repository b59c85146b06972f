"""Turns as rows: what is saved before a reply is generated, what at its end, and what a conversation shows.

Functions over a database, for the threads of tasks.py. A turn begins in one transaction: the conversation if it is new,
the question, and an empty reply. It ends in one: the whole reply, its figures and its sources.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from inglenook.app.answers.citations import with_checked_only
from inglenook.app.answers.prompts import PastMessage
from inglenook.app.text.reasoning import with_thought_closed
from inglenook.storage.conversations import Conversations
from inglenook.storage.database import Database
from inglenook.storage.errors import NotFoundError
from inglenook.storage.messages import Messages
from inglenook.storage.records import Conversation, Message, NewSource, ReplyFigures, Source
from inglenook.storage.sources import Sources

DOCUMENTS_OPTION = "document_ids"
HALF_CHARACTER = "\ufffd"

_TITLE_CHARACTERS = 60


@dataclass(frozen=True, slots=True)
class Turn:
    """A turn as it was saved at its start: `reply` is empty and "streaming". `history` is what came before it."""

    conversation: Conversation
    is_new_conversation: bool
    question: Message
    reply: Message
    history: tuple[PastMessage, ...] = ()


@dataclass(frozen=True, slots=True)
class Answer:
    """A reply as it was saved at its end, whole, stopped or failed, with its sources.

    `citations.shown_citations` numbers the sources. `notices` are sentences about the turn ("The earliest 3 turns
    were left out ...").
    """

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


@dataclass(frozen=True, slots=True)
class Ending:
    """How a reply ended: `error` is the sentence of one that failed, else `finish_reason` says why it ended."""

    text: str
    token_ids: tuple[int, ...]
    finish_reason: str = "stop"
    error: str = ""
    figures: ReplyFigures | None = None


def open_conversation(db: Database, conversation_id: int) -> OpenedConversation:
    """Read a conversation; for `tasks.read`.

    Raises:
        NotFoundError: it was deleted.
    """
    conversation = Conversations(db).get(conversation_id)
    ids = conversation.options.get(DOCUMENTS_OPTION)
    shown = tuple(Messages(db).shown(conversation_id))
    texts = {message.id: message.text for message in shown}
    sources = Sources(db).of_conversation(conversation_id)
    return OpenedConversation(
        conversation,
        shown,
        {id_: with_checked_only(texts.get(id_, ""), found) for id_, found in sources.items()},
        tuple(i for i in ids if type(i) is int) if isinstance(ids, list) else (),
    )


def begin_turn(
    db: Database,
    text: str,
    *,
    conversation_id: int | None,
    in_place_of: int | None = None,
    document_ids: Sequence[int],
    model: str,
    sampling: Mapping[str, Any],
) -> Turn:
    """Save a question and its empty reply, at the end of a conversation or of a new one.

    With `in_place_of`, a question that was asked, the new one becomes its sibling.

    Raises:
        NotFoundError: the conversation or the message was deleted.
    """
    with db.atomic():
        messages = Messages(db)
        is_new = conversation_id is None
        parent_id: int | None = None
        if in_place_of is not None:
            replaced = messages.get(in_place_of)
            conversation_id, parent_id, is_new = replaced.conversation_id, replaced.parent_id, False
        elif conversation_id is None:
            conversation_id = Conversations(db).create(title_of(text), model=model)
        else:
            shown = messages.shown(conversation_id)
            parent_id = shown[-1].id if shown else None
        question_id = messages.add(conversation_id, "user", text, parent_id=parent_id)
        return _begin_reply(db, messages.get(question_id), is_new, document_ids, model, sampling)


def begin_again(
    db: Database, reply_id: int, *, document_ids: Sequence[int], model: str, sampling: Mapping[str, Any]
) -> Turn:
    """Save an empty reply beside one that was given, to the same question.

    Raises:
        NotFoundError: the reply was deleted, or answers nothing.
    """
    with db.atomic():
        messages = Messages(db)
        parent_id = messages.get(reply_id).parent_id
        if parent_id is None:
            raise NotFoundError("This message answers no question, so it cannot be written again.")
        return _begin_reply(db, messages.get(parent_id), False, document_ids, model, sampling)


def resume_turn(db: Database, reply_id: int) -> Turn:
    """Let a reply that was cut off be gone on with: the same message grows.

    Raises:
        NotFoundError: the reply was deleted, or answers nothing.
        InvalidValueError: it is being written.
    """
    with db.atomic():
        messages = Messages(db)
        reply = messages.get(reply_id)
        if reply.parent_id is None:
            raise NotFoundError("This message answers no question, so it cannot be gone on with.")
        messages.resume_reply(reply_id)
        if reply.text.endswith(HALF_CHARACTER):
            # Cut between the tokens of one character: the model writes it anew.
            messages.save_reply(reply_id, reply.text.removesuffix(HALF_CHARACTER), ())
        question = messages.get(reply.parent_id)
        return Turn(
            Conversations(db).get(reply.conversation_id),
            False,
            question,
            messages.get(reply_id),
            _history(db, question),
        )


def end_turn(db: Database, reply_id: int, ending: Ending, sources: Sequence[NewSource]) -> Answer:
    """Save how a reply ended, with its sources.

    Raises:
        NotFoundError: the reply was deleted meanwhile.
    """
    with db.atomic():
        messages = Messages(db)
        if ending.error:
            messages.fail_reply(reply_id, ending.text, ending.token_ids, error=ending.error)
        else:
            messages.finish_reply(
                reply_id,
                ending.text,
                ending.token_ids,
                finish_reason=ending.finish_reason,
                figures=ending.figures,
            )
        Sources(db).replace(reply_id, sources)
        return Answer(messages.get(reply_id), tuple(Sources(db).of_message(reply_id)))


def title_of(question: str) -> str:
    """Return the beginning of a question as a title, cut between words."""
    words = " ".join(question.split())
    if len(words) <= _TITLE_CHARACTERS:
        return words
    cut = words[: _TITLE_CHARACTERS - 1]
    return (cut.rsplit(" ", 1)[0] if " " in cut[20:] else cut) + "…"


def _begin_reply(
    db: Database,
    question: Message,
    is_new: bool,
    document_ids: Sequence[int],
    model: str,
    sampling: Mapping[str, Any],
) -> Turn:
    messages, conversations = Messages(db), Conversations(db)
    conversation_id = question.conversation_id
    reply_id = messages.begin_reply(conversation_id, parent_id=question.id, model=model, sampling=sampling)
    options = conversations.get(conversation_id).options
    conversations.set_options(conversation_id, {**options, DOCUMENTS_OPTION: list(document_ids)})
    conversations.set_model(conversation_id, model)
    return Turn(
        conversations.get(conversation_id),
        is_new,
        question,
        messages.get(reply_id),
        _history(db, question),
    )


def _history(db: Database, question: Message) -> tuple[PastMessage, ...]:
    before = Messages(db).path_to(question.parent_id) if question.parent_id is not None else []
    return tuple(
        PastMessage(message.role, _past_text(message), message.token_ids)
        for message in before
        if message.role != "system"
    )


def _past_text(message: Message) -> str:
    if message.role != "assistant":
        return message.text
    return with_thought_closed(message.text, message.reasoning_end)
