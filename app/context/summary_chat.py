"""A fresh chat that begins with a summary of another one: what the model is asked, and the chat that comes of it.

The model is asked at the end of the whole conversation, which it has read already. When that is longer than its window,
the conversation is read in parts, and the summary is those of the parts; when these are many, they are summarised again.
The summary stands in the new chat as a question and its reply, so that it can be read, edited and deleted like any
other. GUI thread only, but for `begin_chat`.
"""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QObject, Signal

from inglenook.app.answers.token_estimate import TokenEstimate
from inglenook.app.bridge import CHAT, EngineBridge
from inglenook.app.context.summary_parts import parts_of, turns_of
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
ASKED_OF_PART = (
    "Below is one part of a conversation. Write down what matters in it for going on: what it is about, the facts, names "
    "and numbers, what was decided, and what is still open. Use at most {0} words and add nothing.\n\n{1}"
)
_MOST_TOKENS = 600
_LEAST_TOKENS = 60
_LEAST_ROOM = 200
_ROOM_AROUND = 200  # what is asked of a part, and the chat template
_MOST_TRIES = 5


class SummaryChat(QObject):
    """Writes the summary of one conversation at a time. GUI thread only.

    Signals: `moved(int, int)`: of a conversation that is read in parts, which one of how many is read now.
    """

    moved = Signal(int, int)

    def __init__(self, bridge: EngineBridge, tasks: Tasks, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._bridge, self._tasks = bridge, tasks
        self._request_id: int | None = None
        self._pieces: list[str] = []
        self._done: Callable[[int, int], object] = lambda _id, _left_out: None
        self._failed: Callable[[str], object] = lambda _sentence: None
        self._of, self._owner = 0, ""
        self._turns: list[str] = []
        self._texts: list[str] = []
        self._parts: list[str] = []
        self._summaries: list[str] = []
        self._num_parts = self._tries = 0
        self._estimate = TokenEstimate()
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

        `done` is given the id of the new one, and in how many parts the old one was read; `failed` the sentence why
        not, "" when it was cancelled.
        """
        if self._request_id is not None:
            return
        self._request_id, self._of, self._owner = 0, conversation_id, owner
        self._parts, self._summaries, self._num_parts, self._tries = [], [], 0, 0
        self._estimate = TokenEstimate()
        self._done, self._failed = done, failed
        self._tasks.read(
            lambda db: Messages(db).shown(conversation_id),
            self._ask,
            lambda error: self._fail(str(error)),
        )

    def cancel(self) -> None:
        """End it; nothing is kept."""
        if self._request_id:
            self._bridge.cancel(self._request_id)
        self._fail("")

    def _ask(self, messages: list[Message]) -> None:
        if self._request_id is None:
            return
        self._turns = turns_of(messages)
        past, replies = chat_of(messages)
        self._submit((*past, {"role": "user", "content": ASKED}), _MOST_TOKENS, replies)

    def _submit(
        self, messages: tuple[dict[str, str], ...], max_tokens: int, replies: dict[int, tuple[int, ...]]
    ) -> None:
        self._bridge.wake()
        self._pieces = []
        self._request_id = self._bridge.submit(
            Request(
                messages=messages,
                sampling=sampling_of(PRESETS["precise"], max_tokens=max_tokens),
                slot=CHAT,
                owner=self._owner,
                reply_token_ids=replies,
            )
        )

    def _read_in_parts(self, texts: list[str]) -> None:
        """Cut texts into parts that the window holds, and begin with the first."""
        facts = self._bridge.model_state(CHAT).facts
        window = facts.context_length if facts is not None else 0
        room = window - min(_MOST_TOKENS, window // 4) - _ROOM_AROUND
        if room < _LEAST_ROOM or self._tries == _MOST_TRIES:
            words = self.tr("The model's window of {0} tokens is too small for a summary. Take a larger one.")
            self._fail(words.format(f"{window:,}"))
            return
        self._tries += 1
        self._texts, self._summaries = texts, []
        self._parts = parts_of(texts, room, self._estimate.count)
        self._num_parts = self._num_parts or len(self._parts)
        self._ask_part()

    def _ask_part(self) -> None:
        place = len(self._summaries)
        self.moved.emit(place + 1, len(self._parts))
        most = self._tokens_of_a_part()
        asked = ASKED_OF_PART.format(most * 6 // 10, self._parts[place])
        self._submit(({"role": "user", "content": asked},), most, {})

    def _tokens_of_a_part(self) -> int:
        facts = self._bridge.model_state(CHAT).facts
        together = facts.context_length // 4 if facts is not None else _MOST_TOKENS
        return max(_LEAST_TOKENS, min(_MOST_TOKENS, together // len(self._parts)))

    def _take_part(self, summary: str) -> None:
        self._summaries.append(summary)
        if len(self._summaries) < len(self._parts):
            self._ask_part()
        elif len(self._parts) > 1 and self._tokens_of_a_part() == _LEAST_TOKENS:
            # So many that they are too long together.
            self._tries = 0
            self._read_in_parts(self._summaries)
        else:
            self._keep("\n\n".join(self._summaries))

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
        if self._parts:
            self._take_part(text)
        else:
            self._keep(text)

    def _keep(self, text: str) -> None:
        self._request_id = None
        of, num_parts = self._of, max(1, self._num_parts)
        self._tasks.write(
            lambda db: begin_chat(db, of, text),
            lambda conversation_id: self._done(conversation_id, num_parts),
            lambda error: self._failed(str(error)),
        )

    def _take_failed(self, request_id: int, event: Failed) -> None:
        if request_id != self._request_id:
            return
        if event.kind != "ContextLengthError":
            self._fail(event.message)
            return
        if self._parts:
            # The parts were longer than they had been taken for.
            self._estimate.lower()
            self._num_parts = 0 if self._texts is self._turns else self._num_parts
        self._read_in_parts(self._texts if self._parts else self._turns)

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
