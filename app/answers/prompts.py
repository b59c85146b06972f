"""From a conversation, documents and passages to the messages that the model reads, within its context. Pure.

The reply's room is reserved first; of the rest passages get a share, by an estimate of their tokens. Turns are given to
the engine, which alone counts exactly, to leave out the oldest; the one that holds the documents is pinned. Nothing is
left out silently: each cut has its sentence. Documents that go in whole stand at the beginning of the first message,
so that the next turn's prompt begins with the same text and the engine's prefix cache applies; passages change with
every question and stand before it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from inglenook.storage.parsing.document import ParsedPage
from inglenook.storage.records import Hit, Place

MAX_PASSAGES = 6
DEFAULT_REPLY_TOKENS = 1024
MAX_WHOLE_TOKENS = 3000
"""Documents longer than this are searched even where more would fit: a processor reads some hundred tokens a second."""

_SHARE_FOR_PASSAGES = 0.6
_SHARE_FOR_WHOLE_DOCUMENTS = 0.6
_TOKENS_PER_MESSAGE = 12
_MOST_BYTES_PER_TOKEN = 12
_WHOLE_HEAD = "These are documents of the user, page by page. Answer questions about them from their text."
_PASSAGES_HEAD = (
    "These passages of the user's documents may answer the question below. Answer from them; "
    "if they do not hold the answer, say so."
)

Count = Callable[[str], int]


@dataclass(frozen=True, slots=True)
class PastMessage:
    """A message before the question: role "user" or "assistant", and the token ids that a reply was made of."""

    role: str
    text: str
    token_ids: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class WholeDocument:
    """A document small enough to be read from beginning to end."""

    document_id: int
    name: str
    pages: tuple[ParsedPage, ...]


@dataclass(frozen=True, slots=True)
class Room:
    """The tokens of one model: its context, and how many of them a reply may take."""

    context_length: int
    reply_tokens: int

    @classmethod
    def of(cls, context_length: int, max_tokens: int | None = None) -> Room:
        """Reserve what was asked for the reply, at most half of the context; by default a quarter or 1,024."""
        if max_tokens is None:
            return cls(context_length, min(DEFAULT_REPLY_TOKENS, context_length // 4))
        return cls(context_length, min(max_tokens, context_length // 2))

    @property
    def prompt_tokens(self) -> int:
        """What is left for the prompt."""
        return max(0, self.context_length - self.reply_tokens)

    @property
    def whole_tokens(self) -> int:
        """What documents may take to go in whole; of longer ones passages are looked up."""
        return min(MAX_WHOLE_TOKENS, round(_SHARE_FOR_WHOLE_DOCUMENTS * self.prompt_tokens))


@dataclass(frozen=True, slots=True)
class Prompt:
    """What is sent: messages for the chat template, the passages among them, and sentences about what was left out.

    `pinned` and `reply_token_ids` go by the messages' indices, as in `engine.request.Request`.
    """

    messages: tuple[dict[str, str], ...]
    passages: tuple[Hit, ...] = ()
    pinned: tuple[int, ...] = ()
    reply_token_ids: dict[int, tuple[int, ...]] = field(default_factory=dict)
    num_dropped_turns: int = 0
    notices: tuple[str, ...] = ()

    @property
    def num_bytes(self) -> int:
        """The size of all texts."""
        return sum(len(message["content"].encode("utf-8", "replace")) for message in self.messages)

    def num_turns_among(self, indices: Iterable[int]) -> int:
        """Return how many turns the messages with these indices are of."""
        return sum(self.messages[index]["role"] == "user" for index in indices)


def build_prompt(
    question: str,
    *,
    room: Room,
    count: Count,
    history: Sequence[PastMessage] = (),
    system: str = "",
    whole: Sequence[WholeDocument] = (),
    passages: Sequence[Hit] = (),
) -> Prompt:
    """Put everything together; the question itself is always whole, and the engine says if it is too long."""
    left = room.prompt_tokens - _cost(question, count) - (_cost(system, count) if system else 0)
    preface = _whole_text(whole)
    if preface:
        left -= _cost(preface, count)
    taken = _fitting_passages(passages, round(left * _SHARE_FOR_PASSAGES), count)
    turns = _turns(history)
    kept = turns[len(turns) - _num_conceivable(turns, room) :]
    past = [message for turn in kept for message in turn]
    last = f"{_PASSAGES_HEAD}\n\n{_passages_text(taken)}\n\nQuestion: {question}" if taken else question
    texts = [*(message.text for message in past), last]
    if preface:
        texts[0] = f"{preface}\n\n{texts[0]}"
    roles = [*(message.role for message in past), "user"]
    messages = [{"role": role, "content": text} for role, text in zip(roles, texts, strict=True)]
    first = 0
    if system:
        messages.insert(0, {"role": "system", "content": system})
        first = 1
    return Prompt(
        tuple(messages),
        tuple(taken),
        (first,) if preface else (),
        {first + i: message.token_ids for i, message in enumerate(past) if message.token_ids},
        len(turns) - len(kept),
        _passages_notices(passages, taken),
    )


def dropped_notice(num_turns: int) -> str:
    """Say how many turns were left out."""
    what = (
        "question and its reply were" if num_turns == 1 else f"{num_turns} questions and their replies were"
    )
    return f"The earliest {what} left out, because the conversation is longer than the model's context."


def place_text(place: Place, num_pages: int = 0) -> str:
    """Say where a passage stands: "p. iv (6 of 120)", "p. 6 of 120", "p. 6" or "lines 12–20"."""
    if place.first_line is not None and place.last_line is not None:
        if place.first_line == place.last_line:
            return f"line {place.first_line}"
        return f"lines {place.first_line}–{place.last_line}"
    number = str(place.page_index + 1)
    of = f" of {num_pages}" if num_pages else ""
    if place.page_label is None or place.page_label == number:
        return f"p. {number}{of}"
    return f"p. {place.page_label} ({number}{of})"


def whole_size_bytes(pages: Sequence[ParsedPage]) -> int:
    """Return how large a document is in the prompt, page marks included."""
    return sum(len(page.text.encode("utf-8", "replace")) + 24 for page in pages)


def _cost(text: str, count: Count) -> int:
    return count(text) + _TOKENS_PER_MESSAGE


def _turns(history: Sequence[PastMessage]) -> list[list[PastMessage]]:
    """Group messages into turns, each beginning with a question; empty replies are left out, as templates refuse them."""
    turns: list[list[PastMessage]] = []
    for message in history:
        if message.role == "user":
            turns.append([message])
        elif turns and message.text.strip() and len(turns[-1]) == 1:
            turns[-1].append(message)
    # A question without a reply would stand before another question, which most templates refuse.
    return [turn for turn in turns if len(turn) == 2]


def _whole_text(whole: Sequence[WholeDocument]) -> str:
    if not whole:
        return ""
    parts = [_WHOLE_HEAD]
    for document in whole:
        parts.append(f"=== {document.name} ===")
        parts += [
            f"{_page_mark(page, len(document.pages))}\n{page.text.strip()}"
            for page in document.pages
            if page.text.strip()
        ]
        parts.append(f"=== end of {document.name} ===")
    return "\n\n".join(parts)


def _page_mark(page: ParsedPage, num_pages: int) -> str:
    if page.first_line is not None:
        return f"[lines {page.first_line}–{page.last_line}]"
    label = "" if page.label in (None, str(page.index + 1)) else f" ({page.label})"
    return f"[page {page.index + 1}{label} of {num_pages}]"


def _passages_text(passages: Sequence[Hit]) -> str:
    return "\n\n".join(
        f"[{hit.chunk.document_name}, {place_text(hit.chunk.place, hit.chunk.num_pages)}]\n{hit.chunk.text.strip()}"
        for hit in passages
    )


def _fitting_passages(passages: Sequence[Hit], tokens: int, count: Count) -> list[Hit]:
    taken: list[Hit] = []
    for hit in passages[:MAX_PASSAGES]:
        cost = _cost(hit.chunk.text, count) + count(hit.chunk.document_name)
        if cost <= tokens:
            taken.append(hit)
            tokens -= cost
    return taken


def _num_conceivable(turns: Sequence[Sequence[PastMessage]], room: Room) -> int:
    """Return how many of the newest turns could fit at all; to count the tokens of others would be a waste."""
    left = room.prompt_tokens * _MOST_BYTES_PER_TOKEN
    for number, turn in enumerate(reversed(turns)):
        left -= sum(len(message.text.encode("utf-8", "replace")) for message in turn)
        if left < 0:
            return number
    return len(turns)


def _passages_notices(passages: Sequence[Hit], taken: Sequence[Hit]) -> tuple[str, ...]:
    wanted = min(len(passages), MAX_PASSAGES)
    if len(taken) == wanted:
        return ()
    return (
        f"Only {len(taken)} of {wanted} passages fit into the model's context. A shorter question or a model with a "
        "longer context leaves room for more.",
    )
