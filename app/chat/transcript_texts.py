"""The texts of the transcript as they are shown: read in slices, kept while in sight, each thought folded or not.

A thought is unfolded while it is being written, and folds when the answer begins, unless the reader has said
otherwise or is reading further up. One that never ended in an answer stays unfolded, since it is all there is.
"""

from __future__ import annotations

from collections.abc import Iterable

from inglenook.app.chat.message_list_model import Message
from inglenook.app.text.reply_text import ReplyText

# How much of a long message is cut into blocks in one turn of the event loop.
FEED_CHARS = 64_000
_KEPT = 64
_KEPT_CHARS = 400_000


class TranscriptTexts:
    """One text a message, None for those that have not been in sight lately."""

    def __init__(self) -> None:
        self._texts: list[ReplyText | None] = []
        self._recent: dict[int, None] = {}
        self._choices: dict[int | str, bool] = {}

    def __len__(self) -> int:
        return len(self._texts)

    def __getitem__(self, index: int) -> ReplyText | None:
        return self._texts[index]

    def sizes(self) -> list[int]:
        """How many rows each message takes, as far as is known."""
        return [text.num_parts if text else 1 for text in self._texts]

    def reset(self, size: int) -> None:
        """Begin anew with other messages."""
        self._texts = [None] * size
        self._recent.clear()
        self._choices.clear()

    def insert(self, first: int, count: int) -> None:
        """Make room for new messages."""
        if first != len(self._texts):
            self._recent.clear()
        self._texts[first:first] = [None] * count

    def remove(self, first: int, end: int) -> None:
        """Drop messages."""
        del self._texts[first:end]
        self._recent = {index: None for index in self._recent if index < first}

    def read(self, index: int, message: Message, *, is_followed: bool) -> bool:
        """Read more of a message; say whether there is still more."""
        text, is_streaming = self._texts[index], message.state == "streaming"
        if text is None or text.end_tag != message.reasoning_end or not message.text.startswith(text.text):
            text = self._texts[index] = ReplyText(message.role == "user", message.reasoning_end)
        was_open = text.is_open
        is_more = text.take(message.text, FEED_CHARS, is_streaming=is_streaming)
        if was_open and not text.is_open and text.is_unfolded and not is_followed:
            # Nothing is taken away under the eyes of who reads it.
            self._choices.setdefault(message.id, True)
        only = text.is_open and (is_streaming or not text.answer.text.strip())
        text.is_unfolded = text.has_thought and self._choices.get(message.id, only)
        return is_more

    def toggle(self, index: int, message: Message) -> None:
        """Fold or unfold the thought of a message."""
        text = self._texts[index]
        if text is not None and text.has_thought:
            text.is_unfolded = not text.is_unfolded
            self._choices[message.id] = text.is_unfolded

    def touch(self, index: int) -> None:
        """Note that a message is in sight."""
        self._recent.pop(index, None)
        self._recent[index] = None

    def forget(self, bound: Iterable[int]) -> None:
        """Drop the texts that have been out of sight longest, beyond a number and a size; those `bound` to rows stay.

        One that is read in several turns of the loop stays too: it would come back a piece at a time.
        """
        texts, bound = self._texts, set(bound)
        sizes = {index: len(text.text) for index in self._recent if (text := texts[index]) is not None}
        num_kept = len(self._recent)
        num_chars = sum(size for size in sizes.values() if size <= FEED_CHARS)
        for index in list(self._recent):
            if num_kept <= _KEPT and num_chars <= _KEPT_CHARS:
                return
            size = sizes.get(index, 0)
            if index not in bound and size <= FEED_CHARS:
                texts[index] = None
                del self._recent[index]
                num_kept, num_chars = num_kept - 1, num_chars - size
