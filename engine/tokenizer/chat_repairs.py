"""`chat_repairs`: other ways to put the same chat, for a template that refuses it as it is, and what to say of each.

Many templates want questions and replies to take turns, a question first; some know no system message. Nothing that
was written is left out: a system message goes before the first question, messages that follow one of their own kind
are joined to it, and before a reply that begins the chat there comes an empty question.
"""

from __future__ import annotations

from collections.abc import Iterator

Messages = list[dict[str, str]]

SYSTEM_FOLDED = "This model's chat template has no place for a system message; its text was put before the first question."
JOINED = "This model's chat template wants questions and replies to take turns; messages that follow one of their own kind were joined."
QUESTION_ADDED = (
    "This model's chat template wants a question first; an empty one was put before the first reply."
)
SYSTEM_LATER = "This model's chat template takes a system message only at the beginning; a later one was put as a question's text."


def chat_repairs(messages: Messages) -> Iterator[tuple[Messages, tuple[str, ...]]]:
    """Other chats to try, the nearest to the one given first, each with the sentences that say what was changed."""
    yield from _changed(messages)
    if messages[0]["role"] != "system":
        return
    folded = fold_system(messages)
    notices = (SYSTEM_FOLDED,) if messages[0]["content"].strip() else ()
    yield folded, notices
    for chat, more in _changed(folded):
        yield chat, (*notices, *more)


def fold_system(messages: Messages) -> Messages:
    """The chat with its first, a system message's text before the first user message's."""
    text, rest = messages[0]["content"].strip(), messages[1:]
    if not text and rest:
        return rest
    if rest and rest[0]["role"] == "user":
        return [{"role": "user", "content": f"{text}\n\n{rest[0]['content']}"}, *rest[1:]]
    return [{"role": "user", "content": messages[0]["content"]}, *rest]


def _changed(messages: Messages) -> Iterator[tuple[Messages, tuple[str, ...]]]:
    """The chat with turns, if it has none yet."""
    first = messages[:1] if messages[0]["role"] == "system" else []
    turns: Messages = []
    notices: dict[str, None] = {}
    for message in messages[len(first) :]:
        role = message["role"]
        if role == "system":
            role = "user"
            notices[SYSTEM_LATER] = None
        if turns and turns[-1]["role"] == role:
            turns[-1] = {"role": role, "content": f"{turns[-1]['content']}\n\n{message['content']}"}
            notices[JOINED] = None
        else:
            turns.append({"role": role, "content": message["content"]})
    if turns and turns[0]["role"] == "assistant":
        turns.insert(0, {"role": "user", "content": ""})
        notices[QUESTION_ADDED] = None
    if notices:
        yield [*first, *turns], tuple(notices)
