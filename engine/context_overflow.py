"""What happens when a conversation does not fit the context: the one policy, in one place.

"refuse" leaves the conversation as it is; if it is too long, the request fails with the three numbers. "drop_oldest"
leaves out whole turns, oldest first, until what remains fits: a turn is a user's message with the replies after it.
System messages, pinned messages (with the whole of their turn) and the last turn always stay. What was left out is
named in the result; nothing is ever cut inside a message.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from inglenook.engine.tokenizer.tokenizer import EncodedPrompt

Message = Mapping[str, str]
Encode = Callable[[Sequence[int]], "EncodedPrompt"]  # of the messages with these indices

_RESERVED_SHARE = 4  # without a limit of its own, a reply gets at least this part of the context


def reply_reserve(max_tokens: int | None, context_length: int) -> int:
    """Return how many tokens to keep free for a reply: what was asked for, else a quarter of the context up to 1,024."""
    return min(1024, context_length // _RESERVED_SHARE) if max_tokens is None else max_tokens


def fit_conversation(
    messages: Sequence[Message], pinned: Collection[int], encode: Encode, prompt_limit: int
) -> tuple[EncodedPrompt, tuple[int, ...]]:
    """Leave out as few of the oldest turns as make the prompt at most `prompt_limit` tokens long.

    Returns the encoded prompt, and the indices of the messages left out. When even the last turn alone is too long,
    that is what is returned, for the length check to refuse with its numbers.
    """
    everything = range(len(messages))
    prompt = encode(everything)
    turns = _droppable_turns(messages, pinned)
    if len(prompt.token_ids) <= prompt_limit or not turns:
        return prompt, ()
    fewest, most = 1, len(turns)
    while True:
        count = (fewest + most) // 2
        left_out = tuple(index for turn in turns[:count] for index in turn)
        prompt = encode([index for index in everything if index not in left_out])
        if len(prompt.token_ids) <= prompt_limit:
            most = count
        else:
            fewest = min(count + 1, len(turns))
        if fewest >= most and count == most:
            return prompt, left_out


def _droppable_turns(messages: Sequence[Message], pinned: Collection[int]) -> list[list[int]]:
    """Message indices of each turn that may go, oldest first."""
    turns: list[list[int]] = []
    for index, message in enumerate(messages):
        if message["role"] == "system":
            continue
        if message["role"] == "user" or not turns:
            turns.append([])
        turns[-1].append(index)
    return [turn for turn in turns[:-1] if not any(index in pinned for index in turn)]
