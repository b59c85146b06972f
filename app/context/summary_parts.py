"""A conversation that is longer than the model's window, cut into parts that the model can read one at a time. Pure.

A part is whole turns where they fit; a turn that is longer than a part by itself is cut between words.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from inglenook.app.text.reasoning import part_reply
from inglenook.storage.records import Message

Count = Callable[[str], int]
"""About how many tokens a text is."""

_LEAST_CHARS = 64


def turns_of(messages: Iterable[Message]) -> list[str]:
    """Return each answered turn of a shown path as text, without what was thought over it."""
    turns, question = [], ""
    for message in messages:
        if message.role == "user":
            question = message.text
        elif message.role == "assistant" and question and message.text.strip():
            answer = part_reply(message.text, end_tag=message.reasoning_end).answer.strip()
            turns.append(f"Question: {question.strip()}\n\nAnswer: {answer}")
            question = ""
    return turns


def parts_of(texts: Sequence[str], room: int, count: Count) -> list[str]:
    """Join texts, in their order, to as few parts of at most `room` tokens as may be; `room` is at least 1."""
    parts: list[str] = []
    for text in texts:
        for piece in _cut(text, room, count):
            joined = f"{parts[-1]}\n\n{piece}" if parts else piece
            if parts and count(joined) <= room:
                parts[-1] = joined
            else:
                parts.append(piece)
    return parts


def _cut(text: str, room: int, count: Count) -> list[str]:
    """Halve a text, near the middle and between words, until its pieces fit; the shortest are left as they are."""
    if count(text) <= room or len(text) < 2 * _LEAST_CHARS:
        return [text]
    middle = len(text) // 2
    space = max(text.rfind(" ", _LEAST_CHARS, middle), text.rfind("\n", _LEAST_CHARS, middle))
    at = space + 1 if space > len(text) // 4 else middle
    return [*_cut(text[:at], room, count), *_cut(text[at:], room, count)]
