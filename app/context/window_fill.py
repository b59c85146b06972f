"""How full the window of a chat is, and which turns would be left out of the next question. Pure.

Every number begins with what the engine counted when it wrote the replies. A turn's own share is the difference of two
such counts; where a count is missing or documents came and went between, it is set from its size, and marked as about.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from inglenook.engine.context_overflow import reply_reserve
from inglenook.storage.token_counts import TurnCount

_BYTES_PER_TOKEN = 3.5  # where the engine has counted nothing yet
_TOKENS_PER_MESSAGE = 8


@dataclass(frozen=True, slots=True)
class WindowFill:
    """Tokens: `used` by what the model has before it now and by the question that is typed, of `limit`, of which
    `reserve` is kept free for a reply.

    `left_out` are the oldest turns that the next question could not have before it, oldest first. `is_exact` says that
    the engine counted all that matters here; otherwise the numbers are about right.
    """

    limit: int
    reserve: int
    used: int = 0
    wanted: int = 0
    num_turns: int = 0
    left_out: tuple[TurnCount, ...] = ()
    is_exact: bool = True

    @property
    def share(self) -> float:
        """The part of the window that is used, from 0 to 1."""
        return min(1.0, self.used / self.limit) if self.limit else 0.0

    @property
    def is_nearly_full(self) -> bool:
        """Whether the next question may be the first that something is left out for."""
        return bool(self.left_out) or self.used + self.reserve > 0.9 * self.limit


def window_fill(
    counts: Sequence[TurnCount], limit: int, *, max_tokens: int | None, question_bytes: int = 0
) -> WindowFill:
    """Return how full a window of `limit` tokens is, and what a question of that many bytes would leave out.

    A limit of 0 is not known, and nothing is said then. `wanted` of the result is what the next prompt would take if nothing were left out.
    """
    if not limit:
        return WindowFill(0, 0)
    reserve = min(limit, reply_reserve(max_tokens, limit))
    costs, is_exact = _turn_costs(counts)
    ratio = _bytes_per_token(counts, costs)
    question = round(question_bytes / ratio) + _TOKENS_PER_MESSAGE if question_bytes else 0
    whole = sum(costs)
    fewest = 0
    while fewest < len(costs) and sum(costs[fewest:]) + question > limit - reserve:
        fewest += 1
    last = counts[-1] if counts else None
    used = whole if last is None or last.prompt_tokens is None else last.prompt_tokens + last.reply_tokens
    return WindowFill(
        limit,
        reserve,
        min(used + question, limit),
        whole + question,
        len(counts),
        tuple(counts[:fewest]),
        is_exact and not question_bytes,
    )


def _turn_costs(counts: Sequence[TurnCount]) -> tuple[list[int], bool]:
    """What each turn adds to a prompt, and whether all of it is counted."""
    costs: list[int | None] = []
    before = 0
    for count in counts:
        cost = None if count.prompt_tokens is None else count.prompt_tokens + count.reply_tokens - before
        # Turns that were left out make the difference too small, documents make it too large.
        is_sound = cost is not None and count.reply_tokens < cost <= 2 * count.num_bytes + 200
        costs.append(cost if is_sound else None)
        if count.prompt_tokens is not None:
            before = count.prompt_tokens + count.reply_tokens
    known = [(cost, count.num_bytes) for cost, count in zip(costs, counts, strict=True) if cost is not None]
    ratio = sum(size for _, size in known) / sum(cost for cost, _ in known) if known else _BYTES_PER_TOKEN
    filled = [
        round(count.num_bytes / ratio) + 2 * _TOKENS_PER_MESSAGE if cost is None else cost
        for cost, count in zip(costs, counts, strict=True)
    ]
    return filled, None not in costs


def _bytes_per_token(counts: Sequence[TurnCount], costs: Sequence[int]) -> float:
    total = sum(costs)
    return max(0.5, sum(count.num_bytes for count in counts) / total) if total else _BYTES_PER_TOKEN
