"""`Vocabulary`: everything `Tokenizer` must know of a model's tokens, wherever it was read from.

The two encoders know no added tokens at all: whatever text they are given, they cannot return a control token. They
differ in one thing, the space that SentencePiece vocabularies put before a text; `prefix` says where it goes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Literal

import tokenizers

from inglenook.engine.errors import ModelFileError
from inglenook.engine.tokenizer.added_tokens import AddedTokens

MAX_TOKENS = 2_000_000
MAX_TOKEN_LENGTH = 1_024

# Control tokens that end a turn. Files often name only one of them as the end of text.
TURN_ENDS = frozenset(
    (
        "<|im_end|>", "<|eot_id|>", "<|eom_id|>", "<|end|>", "<|eot|>", "<|eom|>", "<end_of_turn>", "<end_of_utterance>",
        "<|endoftext|>", "<|end_of_text|>", "<|end_of_turn|>", "<|END_OF_TURN_TOKEN|>", "<|return|>", "<|call|>",
        "<|endofturn|>", "</s>", "<｜end▁of▁sentence｜>", "<|end_of_sentence|>", "<turn|>",
    )
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Vocabulary:
    """The tokens of one model.

    pieces: the bytes of each token id; empty for control tokens and ids that stand for nothing.
    missing_bytes: bytes that byte-level encoders leave out, because the vocabulary has no token for them.
    first, rest: encoders with and without the prefix space; one and the same object if there is none.
    prefix: where `first` is used: nowhere, at the start of the text, or also after each added token.
    variables: what a chat template may name: bos_token, eos_token and their like.
    templates: chat templates by name; the usual one is "default".
    """

    pieces: tuple[bytes, ...]
    control_ids: frozenset[int]
    added: AddedTokens
    first: tokenizers.Tokenizer
    rest: tokenizers.Tokenizer
    missing_bytes: bytes = b""
    prefix: Literal["none", "start", "gaps"] = "none"
    strips_space: bool = False
    bos_id: int | None = None
    add_bos: bool = False
    stop_ids: frozenset[int] = frozenset()
    variables: Mapping[str, str] = field(default_factory=dict)
    templates: Mapping[str, str] = field(default_factory=dict)


def turn_ends(control: Mapping[str, int]) -> frozenset[int]:
    """The ids among control tokens (by text) that end a turn in any chat format we know."""
    ends = {text for text in TURN_ENDS if text in control}
    if {"<|return|>", "<|call|>"} <= ends:
        ends.discard("<|end|>")  # there it ends one part of a reply, and the next part follows
    return frozenset(control[text] for text in ends)


@contextmanager
def rust_guard(action: str) -> Iterator[None]:
    """Turn every failure inside the `tokenizers` library into a `ModelFileError`, which quotes no text.

    Its panics are no `Exception`, so everything is caught but what must never be.
    """
    try:
        yield
    except (KeyboardInterrupt, SystemExit, GeneratorExit, MemoryError, ModelFileError):
        raise
    except BaseException as error:
        raise ModelFileError(f"The model's tokenizer could not {action} ({type(error).__name__}).") from error
