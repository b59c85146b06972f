"""Read a `Vocabulary` from a GGUF's metadata: byte-level BPE ("gpt2") and SentencePiece with scores ("llama").

SentencePiece merges the pair whose joined piece scores best; that is byte-pair encoding with one merge for each way
to cut a piece in two, ranked by the piece's score. Added tokens are kept out of the encoders' vocabulary.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np
import tokenizers
from tokenizers import models, normalizers

from inglenook.engine.errors import UnsupportedModelError
from inglenook.engine.tokenizer.added_tokens import AddedToken, AddedTokens
from inglenook.engine.tokenizer.pre_tokenizers import BYTE_LEVEL_RULES
from inglenook.engine.tokenizer.token_bytes import byte_level_bytes, missing_bytes, sentencepiece_bytes
from inglenook.engine.tokenizer.vocabulary import (
    MAX_TOKEN_LENGTH,
    MAX_TOKENS,
    TURN_ENDS,
    Vocabulary,
    rust_guard,
    turn_ends,
)
from inglenook.engine.weights.metadata import Metadata

_TOKENS = "tokenizer.ggml.tokens"
_TYPES = "tokenizer.ggml.token_type"
_SCORES = "tokenizer.ggml.scores"
_MERGES = "tokenizer.ggml.merges"
_NORMAL, _UNKNOWN, _CONTROL, _USER_DEFINED, _UNUSED, _BYTE = range(1, 7)
_BYTE_TOKEN = re.compile(r"<0x[0-9A-F]{2}>")
_STOP_KEYS = ("eos_token_id", "eot_token_id", "eom_token_id")
# a template's variable -> the key of its token id
_VARIABLES = {
    "bos_token": "bos_token_id",
    "eos_token": "eos_token_id",
    "unk_token": "unknown_token_id",
    "pad_token": "padding_token_id",
}
_REFUSED = {
    "bert": "WordPiece",
    "t5": "Unigram",
    "rwkv": "RWKV",
    "plamo2": "PLaMo-2",
    "no_vocab": "no vocabulary",
}


def vocabulary_from_gguf(metadata: Mapping[str, Any]) -> Vocabulary:
    """Read the vocabulary of a GGUF.

    Raises:
        UnsupportedModelError: a kind of tokenizer or a pre-tokeniser that is not supported; the message names it.
        ModelFileError: a key is missing, of the wrong type or length, or contradicts another.
    """
    values = metadata if isinstance(metadata, Metadata) else Metadata(dict(metadata), "The model file")
    kind = values.text("tokenizer.ggml.model")
    if kind not in ("gpt2", "llama"):
        raise UnsupportedModelError(
            f"{values.source}: the tokenizer {kind!r}{f' ({_REFUSED[kind]})' if kind in _REFUSED else ''} is not "
            "supported for chat; 'gpt2' (byte-level BPE) and 'llama' (SentencePiece) are."
        )
    tokens, types = _tokens(values)
    return _byte_level(values, tokens, types) if kind == "gpt2" else _sentencepiece(values, tokens, types)


def _tokens(values: Metadata) -> tuple[list[str], list[int]]:
    tokens = values.texts(_TOKENS)
    if not 0 < len(tokens) <= MAX_TOKENS:
        raise values.error(_TOKENS, f"has {len(tokens):,} entries; it must have from 1 to {MAX_TOKENS:,}")
    types: list[int] = values.array(_TYPES, kind=np.integer, length=len(tokens)).tolist()
    seen: dict[str, int] = {}
    for token_id, (token, kind) in enumerate(zip(tokens, types, strict=True)):
        if (earlier := seen.setdefault(token, token_id)) != token_id:
            raise values.error(
                _TOKENS, f"has the same text at {earlier:,} and {token_id:,}; tokens must differ"
            )
        if len(token) > MAX_TOKEN_LENGTH:
            raise values.error(
                _TOKENS, f"has {len(token):,} characters at {token_id:,}; {MAX_TOKEN_LENGTH:,} are allowed"
            )
        if not _NORMAL <= kind <= _BYTE:
            raise values.error(_TYPES, f"is {kind} at {token_id:,}; it must be from 1 to 6")
        if kind == _BYTE and not _BYTE_TOKEN.fullmatch(token):
            raise values.error(
                _TOKENS, f"has the byte token {token[:20]!r} at {token_id:,}; it must be <0x00> to <0xFF>"
            )
        if kind == _NORMAL and token in TURN_ENDS and token.startswith("<|"):
            types[token_id] = _CONTROL  # some converters forget to mark it
    return tokens, types


def _byte_level(values: Metadata, tokens: list[str], types: list[int]) -> Vocabulary:
    name = values.text("tokenizer.ggml.pre", default="default")
    rules = BYTE_LEVEL_RULES.get(name)
    if rules is None:
        raise UnsupportedModelError(
            f"{values.source}: tokenizer.ggml.pre names the pre-tokeniser {name!r}, which is not supported; "
            f"supported are {', '.join(BYTE_LEVEL_RULES)}."
        )
    vocab = {t: i for i, (t, kind) in enumerate(zip(tokens, types, strict=True)) if kind == _NORMAL}
    if contradiction := rules.contradiction(vocab):
        raise UnsupportedModelError(
            f"{values.source}: tokenizer.ggml.pre names the pre-tokeniser {name!r}, which {contradiction}: it is "
            "another model's. Use another conversion of this model."
        )
    merges = _merges(values, vocab, set(tokens))
    with rust_guard("be built"):
        model = models.BPE(vocab=vocab, merges=merges, ignore_merges=rules.ignore_merges)
        encoder = tokenizers.Tokenizer(model)
        if (normalizer := rules.normalizer()) is not None:
            encoder.normalizer = normalizer
        encoder.pre_tokenizer = rules.pre_tokenizer()
    pieces = tuple(
        byte_level_bytes(t) if kind == _NORMAL else t.encode() if kind == _USER_DEFINED else b""
        for t, kind in zip(tokens, types, strict=True)
    )
    added = AddedTokens(_added(tokens, types))
    return Vocabulary(
        pieces=pieces,
        missing_bytes=missing_bytes(vocab),
        added=added,
        first=encoder,
        rest=encoder,
        **_facts(values, tokens, types, rules.add_bos),
    )


def _merges(values: Metadata, vocab: dict[str, int], tokens: set[str]) -> list[tuple[str, str]]:
    merges = []
    for index, merge in enumerate(values.texts(_MERGES)):
        left, _, right = merge.partition(" ")
        if not left or not right or " " in right:
            raise values.error(
                _MERGES, f"is {merge[:40]!r} at {index:,}; it must be two tokens and a space between"
            )
        for token in (left, right, left + right):
            if token not in tokens:
                raise values.error(_MERGES, f"names {token[:40]!r} at {index:,}, which is not in {_TOKENS}")
        if left in vocab and right in vocab and left + right in vocab:
            merges.append((left, right))
    return merges


def _sentencepiece(values: Metadata, tokens: list[str], types: list[int]) -> Vocabulary:
    scores = values.array(_SCORES, kind=np.floating, length=len(tokens))
    if not np.isfinite(scores).all():
        at = int(np.flatnonzero(~np.isfinite(scores))[0])
        raise values.error(_SCORES, f"is {scores[at]} at {at:,}; it must be a finite number")
    added = _added(tokens, types)
    # White space that is matched whole must also stay reachable by merges, as it is in the original.
    ordinary = {t.id for t in added if t.is_text}
    ordinary.update(i for i, kind in enumerate(types) if kind == _NORMAL)
    vocab = {tokens[i]: i for i in sorted(ordinary)}
    merges = merges_from_scores(vocab, scores.tolist())
    unknown = _id(values, "unknown_token_id", len(tokens))
    if unknown is None:
        unknown = next((i for i, kind in enumerate(types) if kind == _UNKNOWN), None)
    bytes_by_token = {t: i for i, (t, kind) in enumerate(zip(tokens, types, strict=True)) if kind == _BYTE}
    vocab |= bytes_by_token
    if unknown is not None:
        vocab[tokens[unknown]] = unknown
    with rust_guard("be built"):
        model = models.BPE(
            vocab=vocab,
            merges=merges,
            unk_token=None if unknown is None else tokens[unknown],
            fuse_unk=True,
            byte_fallback=bool(bytes_by_token),
        )
        rest = tokenizers.Tokenizer(model)
        rest.normalizer = normalizers.Replace(" ", "▁")
        first = rest
        if add_prefix := values.flag("tokenizer.ggml.add_space_prefix", default=True):
            first = tokenizers.Tokenizer(model)
            first.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    texts = (_NORMAL, _USER_DEFINED, _BYTE)
    pieces = tuple(
        sentencepiece_bytes(t, is_byte=kind == _BYTE) if kind in texts else b""
        for t, kind in zip(tokens, types, strict=True)
    )
    return Vocabulary(
        pieces=pieces,
        added=AddedTokens(added),
        first=first,
        rest=rest,
        prefix="gaps" if add_prefix else "none",
        strips_space=add_prefix,
        **_facts(values, tokens, types, True),
    )


def merges_from_scores(vocab: Mapping[str, int], scores: list[float]) -> list[tuple[str, str]]:
    """The merges that make byte-pair encoding pick what SentencePiece picks: every cut, best score first."""
    ranked = []
    for token, token_id in vocab.items():
        score = scores[token_id]
        for cut in range(1, len(token)):
            left, right = token[:cut], token[cut:]
            if left in vocab and right in vocab:
                ranked.append((-score, -cut, token_id, left, right))
    ranked.sort()
    return [(left, right) for *_, left, right in ranked]


def _added(tokens: list[str], types: list[int]) -> list[AddedToken]:
    return [
        AddedToken(i, t, special=kind == _CONTROL)
        for i, (t, kind) in enumerate(zip(tokens, types, strict=True))
        if kind in (_CONTROL, _USER_DEFINED) and t
    ]


def _facts(values: Metadata, tokens: list[str], types: list[int], add_bos: bool) -> dict[str, Any]:
    """What both kinds of vocabulary read alike (`Any`: the fields of `Vocabulary` by name)."""
    control = {t: i for i, (t, kind) in enumerate(zip(tokens, types, strict=True)) if kind == _CONTROL}
    stops = {_id(values, key, len(tokens)) for key in _STOP_KEYS} - {None}
    variables = {
        name: tokens[token_id]
        for name, key in _VARIABLES.items()
        if (token_id := _id(values, key, len(tokens))) is not None
    }
    bos_id = _id(values, "bos_token_id", len(tokens))
    return {
        "control_ids": frozenset(i for i, kind in enumerate(types) if kind in (_CONTROL, _UNKNOWN)),
        "bos_id": bos_id,
        "add_bos": values.flag("tokenizer.ggml.add_bos_token", default=add_bos) and bos_id is not None,
        "stop_ids": frozenset(stops) | turn_ends(control),
        "variables": variables,
        "templates": _templates(values),
    }


def _id(values: Metadata, key: str, size: int) -> int | None:
    key = f"tokenizer.ggml.{key}"
    return values.integer(key, 0, size - 1) if values.has(key) else None


def _templates(values: Metadata) -> dict[str, str]:
    templates = {}
    if values.has("tokenizer.chat_templates"):
        for name in values.texts("tokenizer.chat_templates"):
            templates[name] = values.text(f"tokenizer.chat_template.{name}")
    if values.has("tokenizer.chat_template"):
        templates["default"] = values.text("tokenizer.chat_template")
    return templates
