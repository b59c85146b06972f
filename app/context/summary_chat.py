"""A fresh chat that begins with a summary of another one: what the model is asked, and the chat that comes of it.

The summary stands in the new chat as a question and its reply, so that it can be read, edited and deleted like any
other. GUI thread only, but for `begin_chat`.
"""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QObject

from inglenook.app.bridge import CHAT, EngineBridge
from inglenook.app.settings_presets import PRESETS, sampling_of
from inglenook.app.tasks import Tasks
from inglenook.app.text.reasoning import part_reply
from inglenook.engine.request import Failed, Finished, Request
from inglenook.storage.conversations import Conversations
from inglenook.storage.database import Database
from inglenook.storage.messages import Messages
from inglenook.storage.records import Message

ASKED = (
    "Summarise our conversation so far, so that we can go on in a new one: what it is about, the facts, names and "
    "numbers that matter, what was decided, and what is still open. Use at most 300 words."
)
_MOST_TOKENS = 600


class SummaryChat(QObject):
    """Writes the summary of one conversation at a time. GUI thread only."""

    def __init__(self, bridge: EngineBridge, tasks: Tasks, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._bridge, self._tasks = bridge, tasks
        self._request_id: int | None = None
        self._pieces: list[str] = []
        self._done: Callable[[int, int], object] = lambda _id, _left_out: None
        self._failed: Callable[[str], object] = lambda _sentence: None
        self._of = 0
        bridge.reply_text.connect(self._take_text)
        bridge.reply_finished.connect(self._take_finished)
        bridge.reply_failed.connect(self._take_failed)

    @property
    def is_writing(self) -> bool:
        """Whether a summary is being written."""
        return self._request_id is not None

    def begin(
        self,
        conversation_id: int,
        owner: str,
        done: Callable[[int, int], object],
        failed: Callable[[str], object],
    ) -> None:
        """Write the summary of a conversation.

        `done` is given the id of the new one, and how many questions were too old to be in the summary; `failed` the
        sentence why not, "" when it was cancelled.
        """
        if self._request_id is not None:
            return
        self._request_id, self._pieces, self._of = 0, [], conversation_id
        self._done, self._failed = done, failed
        self._tasks.read(
            lambda db: Messages(db).shown(conversation_id),
            lambda messages: self._ask(messages, owner),
            lambda error: self._fail(str(error)),
        )

    def cancel(self) -> None:
        """End it; nothing is kept."""
        if self._request_id:
            self._bridge.cancel(self._request_id)
        self._fail("")

    def _ask(self, messages: list[Message], owner: str) -> None:
        if self._request_id is None:
            return
        past, replies = chat_of(messages)
        self._bridge.wake()
        self._request_id = self._bridge.submit(
            Request(
                messages=(*past, {"role": "user", "content": ASKED}),
                sampling=sampling_of(PRESETS["precise"], max_tokens=_MOST_TOKENS),
                slot=CHAT,
                owner=owner,
                overflow="drop_oldest",
                reply_token_ids=replies,
            )
        )

    def _take_text(self, request_id: int, text: str, _token_ids: tuple[int, ...]) -> None:
        if request_id == self._request_id:
            self._pieces.append(text)

    def _take_finished(self, request_id: int, event: Finished) -> None:
        if request_id != self._request_id:
            return
        # What was thought before it is no part of a summary.
        text = part_reply("".join(self._pieces)).answer.strip()
        if event.finish_reason == "cancelled" or not text:
            self._fail("" if event.finish_reason == "cancelled" else self.tr("The model wrote no summary."))
            return
        self._request_id = None
        left_out, of = (len(event.left_out) + 1) // 2, self._of
        self._tasks.write(
            lambda db: begin_chat(db, of, text),
            lambda conversation_id: self._done(conversation_id, left_out),
            lambda error: self._failed(str(error)),
        )

    def _take_failed(self, request_id: int, event: Failed) -> None:
        if request_id == self._request_id:
            self._fail(event.message)

    def _fail(self, sentence: str) -> None:
        if self._request_id is not None:
            self._request_id = None
            self._failed(sentence)


def chat_of(messages: list[Message]) -> tuple[list[dict[str, str]], dict[int, tuple[int, ...]]]:
    """Return the whole turns of a shown path as messages for the engine, and the replies' token ids by their index."""
    chat: list[dict[str, str]] = []
    replies: dict[int, tuple[int, ...]] = {}
    question: str | None = None
    for message in messages:
        if message.role == "user":
            question = message.text
        elif message.role == "assistant" and question is not None and message.text.strip():
            chat.append({"role": "user", "content": question})
            if message.token_ids:
                replies[len(chat)] = message.token_ids
            chat.append({"role": "assistant", "content": message.text})
            question = None
    return chat, replies


def begin_chat(db: Database, conversation_id: int, summary: str) -> int:
    """Make the new conversation, with the persona and model of the old one, and return its id."""
    with db.atomic():
        conversations, messages = Conversations(db), Messages(db)
        old = conversations.get(conversation_id)
        title = f"{old.title} (continued)" if old.title else "Continued chat"
        new_id = conversations.create(title, model=old.model, options=old.options)
        question_id = messages.add(new_id, "user", "Summary of the chat before", parent_id=None)
        messages.add(new_id, "assistant", summary, parent_id=question_id)
        return new_id
