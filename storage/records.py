"""What storage hands out and takes in: frozen values without behaviour.

Ids are whole numbers that are never used twice, and in the order in which things were made; times are for showing
only. Character positions count code points of the page's text; page indexes count from 0, labels are what is
printed on the page ("iv", "12"). A document as it was read is `parsing.document.ParsedDocument`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from inglenook.storage.parsing.document import Rect

Role = Literal["system", "user", "assistant"]
MessageStatus = Literal["complete", "streaming", "interrupted", "failed"]
VersionStatus = Literal["waiting", "parsing", "ready", "failed", "locked", "superseded"]

FORGOTTEN = "[forgotten]"
"""What stands in place of a quote whose document was forgotten."""


@dataclass(frozen=True, slots=True)
class Conversation:
    """A conversation as the list shows it; `model` is the one last used, `options` what was set for it alone.

    `is_titled` says that its title is the user's own.
    """

    id: int
    title: str
    model: str
    options: dict[str, Any]
    created_at_ms: int
    trashed_at_ms: int | None
    pinned_at_ms: int | None = None
    archived_at_ms: int | None = None
    folder: str = ""
    is_titled: bool = False


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a conversation's tree.

    `branch` of `num_branches` is its place among the alternatives under the same parent, from 0. The figures are
    those of the engine's last event, and None until then or for messages that no engine wrote. `reasoning_s` is how
    long a reply was thought over before it was written; `reasoning_end` is the tag that ends a thought which began
    in the prompt, "" where the reply has the first tag itself.
    """

    id: int
    conversation_id: int
    parent_id: int | None
    role: Role
    text: str
    status: MessageStatus
    finish_reason: str | None
    error: str
    model: str
    sampling: dict[str, Any]
    token_ids: tuple[int, ...]
    prompt_tokens: int | None
    cached_tokens: int | None
    ttft_s: float | None
    tpot_s: float | None
    seed: int | None
    created_at_ms: int
    branch: int = 0
    num_branches: int = 1
    reasoning_s: float | None = None
    reasoning_end: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplyFigures:
    """What the engine says at the end of a reply."""

    prompt_tokens: int | None = None
    cached_tokens: int | None = None
    ttft_s: float | None = None
    tpot_s: float | None = None
    seed: int | None = None


@dataclass(frozen=True, slots=True)
class Document:
    """A document and its newest version.

    `status` is that version's; until it is "ready" the version before, if there was one, is still searched.
    One that is "locked" waits for its password. `is_missing`: the file is no longer where it was. `num_chunks` counts
    what is searchable now. `encoding` is that of a text as it was read, by a guess where the bytes do not prove it;
    `chosen_encoding` is the user's, "" for none.
    """

    id: int
    path: str
    name: str
    version_id: int
    sha256: str
    size_bytes: int
    modified_at_ns: int
    kind: str
    title: str
    status: VersionStatus
    error: str
    notices: tuple[str, ...]
    num_pages: int
    num_chunks: int
    is_missing: bool
    added_at_ms: int
    trashed_at_ms: int | None
    encoding: str = ""
    is_encoding_guessed: bool = False
    chosen_encoding: str = ""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a passage stands: on one page, from `char_start` to before `char_end` of its text, in `rectangles`.

    The lines are those of a text without pages, from 1.
    """

    page_index: int
    page_label: str | None
    char_start: int
    char_end: int
    first_line: int | None = None
    last_line: int | None = None
    rectangles: tuple[Rect, ...] = ()


@dataclass(frozen=True, slots=True)
class IndexedChunk:
    """A chunk as it is searched; `context` is the title and headings that are indexed with it."""

    id: int
    document_id: int
    version_id: int
    document_name: str
    num_pages: int
    text: str
    place: Place
    heading_path: tuple[str, ...]
    context: str


@dataclass(frozen=True, slots=True)
class Hit:
    """A chunk that search found: its fused score, and its rank in each arm from 0 (None: not found by it).

    `cosine` is that of its embedding and the question's, at most; None where meaning was not searched.
    """

    chunk: IndexedChunk
    score: float
    keyword_rank: int | None
    vector_rank: int | None
    cosine: float | None = None


@dataclass(frozen=True, slots=True)
class NewSource:
    """A passage that an answer was given or rests on; `answer_range` is the sentence of the reply it supports.

    `heading` has the headings that the quote stands under, line by line; they are no part of the quote.
    """

    document_id: int
    version_id: int
    chunk_id: int | None
    document_name: str
    place: Place
    quote: str
    score: float = 0.0
    is_cited: bool = False
    answer_range: tuple[int, int] | None = None
    heading: str = ""


@dataclass(frozen=True, slots=True)
class Source:
    """A stored source. It keeps place and quote; ids are None for what has since been deleted or parsed anew."""

    id: int
    message_id: int
    document_id: int | None
    version_id: int | None
    chunk_id: int | None
    document_name: str
    place: Place
    quote: str
    score: float
    is_cited: bool
    answer_range: tuple[int, int] | None = None
    heading: str = ""


@dataclass(frozen=True, slots=True)
class PendingVector:
    """A chunk that waits for its embedding: `text` is its context and its text, as they are to be embedded."""

    chunk_id: int
    document_id: int
    text: str
