"""`TitleWriter`: names a new chat by what was asked and answered in it, when the model has nothing else to do.

The request goes on from the prompt of the first turn, so that the engine has read all but its last words; it waits
behind every question, and the next one cancels it. A title of the user's is never replaced, and a reply that is no
title leaves the first words of the question standing. GUI thread only.
"""

from __future__ import annotations

import re

from PySide6.QtCore import QObject, Signal

from inglenook.app.answers.answering import Answer, Answering
from inglenook.app.application import Application
from inglenook.app.bridge import CHAT
from inglenook.app.text.reasoning import part_reply, with_thought_closed
from inglenook.engine.request import Failed, Finished, Request, SamplingParams
from inglenook.storage.conversation_shelf import ConversationShelf
from inglenook.storage.database import Database
from inglenook.storage.messages import Messages
from inglenook.storage.records import Message

ASKED = (
    "Give this conversation a title of two to six words, in its own language. Answer with the title alone."
)
PRIORITY = 1
MAX_TOKENS = 24
MOST_CHARS = 60
MOST_WORDS = 10

_LEAD = re.compile(r"^(?:title|titel|titre|título)\s*[:：]\s*", re.IGNORECASE)
_MARKS = "\"'“”„«»‘’`*#_ \t-–—"


class TitleWriter(QObject):
    """Listens to the turns of the history; temporary chats have no title.

    Signals: `titled(conversation_id, title)` when a chat got another one.
    """

    titled = Signal(int, str)

    def __init__(self, application: Application, parent: QObject) -> None:
        super().__init__(parent)
        self._app = application
        self._request_id: int | None = None
        self._conversation_id = 0
        self._pieces: list[str] = []
        answering: Answering = application.answering
        answering.turn_started.connect(lambda _turn: self.cancel())
        answering.reply_ended.connect(self._take_reply)
        application.bridge.reply_text.connect(self._take_text)
        application.bridge.reply_finished.connect(self._take_finished)
        application.bridge.reply_failed.connect(self._take_failed)

    def cancel(self) -> None:
        """Give up the title that is being written."""
        if self._request_id is not None:
            request_id, self._request_id = self._request_id, None
            self._app.bridge.cancel(request_id)

    def _take_reply(self, answer: Answer) -> None:
        reply = answer.reply
        is_whole = reply.status == "complete" and reply.finish_reason in ("stop", "length")
        if is_whole and reply.text.strip() and self._app.settings.value("chat.titles"):
            self._app.tasks.read(lambda db: _first_turn(db, reply), self._ask, lambda _error: None)

    def _ask(self, turn: tuple[Message, Message] | None) -> None:
        bridge = self._app.bridge
        facts = bridge.model_state(CHAT).facts
        if turn is None or facts is None or bridge.is_replying:
            return
        question, reply = turn
        system = str(reply.sampling.get("system") or "")
        messages = [{"role": "system", "content": system}] if system else []
        messages += [
            {"role": "user", "content": question.text},
            {"role": "assistant", "content": with_thought_closed(reply.text, reply.reasoning_end)},
            {"role": "user", "content": ASKED},
        ]
        begin = ""
        if (tags := facts.reasoning) is not None:
            # A title needs no thought.
            begin = f"\n{tags.end}\n\n" if tags.is_open else f"{tags.begin}\n\n{tags.end}\n\n"
        self.cancel()
        self._conversation_id, self._pieces = reply.conversation_id, []
        self._request_id = bridge.submit(
            Request(
                messages=tuple(messages),
                sampling=SamplingParams(temperature=0.0, max_tokens=MAX_TOKENS),
                priority=PRIORITY,
                owner=self._app.answering.cached_text.owner(reply.conversation_id),
                reply_token_ids={len(messages) - 2: reply.token_ids} if reply.token_ids else {},
                reply_begin=begin,
            )
        )

    def _take_text(self, request_id: int, text: str, _token_ids: tuple[int, ...]) -> None:
        if request_id == self._request_id:
            self._pieces.append(text)

    def _take_failed(self, request_id: int, _event: Failed) -> None:
        if request_id == self._request_id:
            self._request_id = None

    def _take_finished(self, request_id: int, _event: Finished) -> None:
        if request_id != self._request_id:
            return
        self._request_id = None
        conversation_id, title = self._conversation_id, clean_title("".join(self._pieces))
        if title:
            self._app.tasks.write(
                lambda db: ConversationShelf(db).name_by_itself(conversation_id, title),
                lambda is_set: self.titled.emit(conversation_id, title) if is_set else None,
                lambda _error: None,
            )


def clean_title(reply: str) -> str:
    """Return a model's reply as a title; "" for one that is none."""
    lines = [line.strip() for line in part_reply(reply).answer.strip().splitlines() if line.strip()]
    if not lines:
        return ""
    title = " ".join(_LEAD.sub("", lines[0].strip(_MARKS)).strip(_MARKS).split()).rstrip(".,;:")
    is_echo = title.casefold() in ASKED.casefold()
    if not title or is_echo or len(title) > MOST_CHARS or len(title.split()) > MOST_WORDS:
        return ""
    return title if any(character.isalnum() for character in title) else ""


def _first_turn(db: Database, reply: Message) -> tuple[Message, Message] | None:
    """The question and the reply, where they are the first of a chat that the user has not named."""
    question = Messages(db).get(reply.parent_id) if reply.parent_id is not None else None
    if question is None or question.parent_id is not None or question.num_branches > 1:
        return None
    return (question, reply) if reply.num_branches == 1 else None
