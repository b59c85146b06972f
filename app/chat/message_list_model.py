"""The messages of the conversation on screen, as a list model over a plain Python list.

Values are frozen; a change replaces one. Text of a streaming reply arrives through `update_text`. Knows neither
storage nor engine. GUI thread only.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import Any, Literal

from PySide6.QtCore import QAbstractListModel, QModelIndex, QObject, QPersistentModelIndex, Qt

from inglenook.app.text.reasoning import PartedReply, Piece, may_have_tags, part_reply

Role = Literal["user", "assistant"]
State = Literal["streaming", "complete", "stopped", "cut", "repeated", "interrupted", "failed"]


@dataclass(frozen=True, slots=True)
class Citation:
    """A source of a reply: its number in the reply, where it is, what it says, and whether code found it there.

    `is_cited` is False for a passage that the model had and that no sentence rests on.
    """

    number: int
    title: str
    page: str
    quote: str
    verified: bool
    is_cited: bool = True


@dataclass(frozen=True, slots=True)
class Message:
    """One turn as it is shown; `error` is the sentence of a failed reply, "cut" one that reached its longest length,
    "repeated" one that was ended since it said the same thing without end.

    `branch` of `num_branches` is its place among the versions of it, from 0. `reasoning_s` is how long it was thought
    over, None not (yet); `reasoning_end` ends a thought that its prompt began. `figures` is the line of how fast it was,
    `unfound` the sentences of an answer from documents that no passage says, `others` the passages that no sentence
    rests on.
    """

    id: int | str
    role: Role
    text: str
    state: State = "complete"
    error: str = ""
    citations: tuple[Citation, ...] = ()
    branch: int = 0
    num_branches: int = 1
    reasoning_s: float | None = None
    reasoning_end: str = ""
    figures: str = ""
    unfound: tuple[str, ...] = ()
    others: tuple[Citation, ...] = ()

    @property
    def can_go_on(self) -> bool:
        """Whether the reply ended before its own end, and can be gone on with."""
        return self.state in ("stopped", "cut", "repeated", "interrupted") and bool(self.text.strip())

    @property
    def parted(self) -> PartedReply:
        """The text in thought and answer; a person's words are all answer."""
        if self.role == "user":
            return PartedReply(self.text, (Piece(0, len(self.text), False),))
        return part_reply(self.text, end_tag=self.reasoning_end, is_streaming=self.state == "streaming")

    @property
    def answer(self) -> str:
        """The text without what was thought; the thought where it is all there is."""
        parted = self.parted
        return parted.answer or parted.thought


class MessageRole(IntEnum):
    """What `data` answers besides the usual roles; `MESSAGE` is the whole value."""

    MESSAGE = Qt.ItemDataRole.UserRole
    ID = MESSAGE + 1
    ROLE = MESSAGE + 2
    TEXT = MESSAGE + 3
    STATE = MESSAGE + 4
    ERROR = MESSAGE + 5
    CITATIONS = MESSAGE + 6


class MessageListModel(QAbstractListModel):
    """A list of messages in the order of the conversation; ids are unique."""

    def __init__(self, messages: Iterable[Message] = (), parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._messages: list[Message] = []
        self._rows: dict[int | str, int] = {}
        self.replace(messages)

    @property
    def messages(self) -> Sequence[Message]:
        """All messages; not to be changed."""
        return self._messages

    def message(self, message_id: int | str) -> Message:
        """Return a message. Raises: KeyError if there is none of this id."""
        return self._messages[self._rows[message_id]]

    def row_of(self, message_id: int | str) -> int:
        """Return where a message stands. Raises: KeyError if there is none of this id."""
        return self._rows[message_id]

    def append(self, message: Message) -> None:
        """Add a message at the end. Raises: ValueError if its id is taken."""
        if message.id in self._rows:
            raise ValueError(f"a message with id {message.id!r} is in the list already")
        row = len(self._messages)
        self.beginInsertRows(QModelIndex(), row, row)
        self._messages.append(message)
        self._rows[message.id] = row
        self.endInsertRows()

    def append_text(self, message_id: int | str, text: str) -> None:
        """Add a piece of text to a message."""
        self.update_text(message_id, self.message(message_id).text + text)

    def update_text(self, message_id: int | str, text: str) -> None:
        """Replace the text of a message."""
        self.update(message_id, text=text)

    def update(self, message_id: int | str, **changes: Any) -> None:
        """Replace fields of a message, for instance `state="failed", error="..."`."""
        row = self._rows[message_id]
        old = self._messages[row]
        new = replace(old, **changes)
        if new.id != old.id:
            raise ValueError("a message keeps its id")
        if new == old:
            return
        self._messages[row] = new
        changed: list[int] = [
            role for name, role in _ROLES_OF_FIELDS.items() if getattr(old, name) != getattr(new, name)
        ]
        if MessageRole.TEXT in changed:
            changed.append(Qt.ItemDataRole.DisplayRole)
        index = self.index(row)
        self.dataChanged.emit(index, index, [int(role) for role in (MessageRole.MESSAGE, *changed)])

    def replace(self, messages: Iterable[Message]) -> None:
        """Show other messages. Raises: ValueError if two have one id."""
        messages = list(messages)
        rows = {message.id: row for row, message in enumerate(messages)}
        if len(rows) != len(messages):
            raise ValueError("two messages have the same id")
        self.beginResetModel()
        self._messages, self._rows = messages, rows
        self.endResetModel()

    def remove_from(self, row: int) -> None:
        """Remove a message and all that follow, as when a turn is asked again."""
        if not 0 <= row < len(self._messages):
            return
        self.beginRemoveRows(QModelIndex(), row, len(self._messages) - 1)
        for message in self._messages[row:]:
            del self._rows[message.id]
        del self._messages[row:]
        self.endRemoveRows()

    def rowCount(self, parent: QModelIndex | QPersistentModelIndex = QModelIndex()) -> int:  # noqa: B008
        return 0 if parent.isValid() else len(self._messages)

    def data(
        self, index: QModelIndex | QPersistentModelIndex, role: int = Qt.ItemDataRole.DisplayRole
    ) -> Any:
        if not index.isValid() or index.row() >= len(self._messages):
            return None
        message = self._messages[index.row()]
        if role == Qt.ItemDataRole.DisplayRole:
            return message.text
        if role == Qt.ItemDataRole.AccessibleTextRole:
            return accessible_name(message, self.tr("You"), self.tr("Assistant"))
        if role == MessageRole.MESSAGE:
            return message
        for name, of_field in _ROLES_OF_FIELDS.items():
            if role == of_field:
                return getattr(message, name)
        return None

    def roleNames(self) -> dict[int, Any]:
        own = {int(role): role.name.lower().encode() for role in MessageRole}
        return {**super().roleNames(), **own}


_ROLES_OF_FIELDS = {
    "id": MessageRole.ID,
    "role": MessageRole.ROLE,
    "text": MessageRole.TEXT,
    "state": MessageRole.STATE,
    "error": MessageRole.ERROR,
    "citations": MessageRole.CITATIONS,
}


def accessible_name(message: Message, you: str, assistant: str) -> str:
    """Say who wrote a message and how it begins, for a screen reader."""
    who = you if message.role == "user" else assistant
    begin = message.text[:600]
    if message.reasoning_end or may_have_tags(begin):
        # Only then, since a long text is not gone through in no time.
        begin = message.answer[:600]
    begin = " ".join(begin.split())
    return f"{who}, {begin}" if begin else who
