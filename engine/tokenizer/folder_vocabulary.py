"""Read a `Vocabulary` from a Hugging Face model folder: tokenizer.json and the small JSON files beside it.

tokenizer.json describes a whole pipeline, which the `tokenizers` library runs. Added tokens are taken out of it (and
out of its vocabulary and merges), because `Tokenizer` matches them itself; only byte-pair encoding is accepted.
"""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import tokenizers

from inglenook.engine.errors import ModelFileError, UnsupportedModelError
from inglenook.engine.tokenizer.added_tokens import AddedToken, AddedTokens
from inglenook.engine.tokenizer.token_bytes import byte_level_bytes, missing_bytes, sentencepiece_bytes
from inglenook.engine.tokenizer.vocabulary import MAX_TOKENS, Vocabulary, rust_guard, turn_ends
from inglenook.engine.weights.model_folder import holds, inside

MAX_TOKENIZER_BYTES = 128 << 20
MAX_CONFIG_BYTES = 4 << 20
_VARIABLES = ("bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token")
_BYTE_TOKEN = re.compile(r"<0x[0-9A-F]{2}>")

Json = dict[str, Any]  # what a JSON file may hold; each value is checked where it is used


def vocabulary_from_folder(folder: Path) -> Vocabulary:
    """Read the vocabulary of a model folder.

    Raises:
        UnsupportedModelError: a kind of tokenizer that is not supported; the message names it.
        ModelFileError: a file is missing, damaged or contradicts itself; the message names file and key.
    """
    source = _read_json(folder, "tokenizer.json", MAX_TOKENIZER_BYTES)
    if source is None:
        raise ModelFileError(f"{folder.name} has no tokenizer.json, so its texts cannot be encoded.")
    config = _read_json(folder, "tokenizer_config.json", MAX_CONFIG_BYTES) or {}
    special = _read_json(folder, "special_tokens_map.json", MAX_CONFIG_BYTES) or {}
    return _Folder(folder, source, config, special).vocabulary()


class _Folder:
    """The files of one folder while they are read."""

    def __init__(self, folder: Path, source: Json, config: Json, special: Json) -> None:
        self._folder = folder
        self._source = source
        self._config = config
        self._variables = {
            name: text
            for name in _VARIABLES
            if (text := _text(config.get(name, special.get(name)))) is not None
        }
        self._vocab = self._read_vocab()
        self._added = self._read_added()

    def vocabulary(self) -> Vocabulary:
        """Put it together."""
        is_byte_level = any(
            part.get("type") == "ByteLevel" for part in self._parts("pre_tokenizer", "decoder")
        )
        plain = self._without_added()
        first = self._build(plain)
        rest_source, prefix = _without_prefix(plain)
        normalize = first.normalizer.normalize_str if first.normalizer is not None else str
        size = max([-1, *self._vocab.values(), *(token.id for token in self._added)]) + 1
        pieces = [b""] * size
        for text, token_id in self._vocab.items():
            pieces[token_id] = (
                byte_level_bytes(text)
                if is_byte_level
                else sentencepiece_bytes(text, is_byte=bool(_BYTE_TOKEN.fullmatch(text)))
            )
        for token in self._added:
            pieces[token.id] = b"" if token.special else token.content.encode("utf-8", "replace")
        ids = self._vocab | {token.content: token.id for token in self._added}
        bos_id = ids.get(self._variables.get("bos_token", ""))
        control = {token.content: token.id for token in self._added if token.special}
        return Vocabulary(
            pieces=tuple(pieces),
            missing_bytes=missing_bytes(self._vocab) if is_byte_level else b"",
            control_ids=frozenset(control.values()),
            added=AddedTokens(self._added, normalize),
            first=first,
            rest=self._build(rest_source) if prefix != "none" else first,
            prefix=prefix,
            strips_space=any(_strips_space(part) for part in self._parts("decoder")),
            bos_id=bos_id,
            add_bos=bos_id is not None and self._adds_bos(),
            stop_ids=self._stops(ids, size) | turn_ends(control),
            variables=self._variables,
            templates=self._templates(),
        )

    def _read_vocab(self) -> dict[str, int]:
        model = self._source.get("model")
        if not isinstance(model, dict):
            raise self._error("tokenizer.json", "model", "is missing")
        if (kind := model.get("type", "BPE")) != "BPE":
            raise UnsupportedModelError(
                f"{self._folder.name}: tokenizer.json holds the tokenizer {kind!r}, which is not supported for chat; "
                "'BPE' is."
            )
        vocab = model.get("vocab")
        if not isinstance(vocab, dict) or not vocab:
            raise self._error("tokenizer.json", "model.vocab", "must be a group of token ids")
        seen: dict[int, str] = {}
        for text, token_id in vocab.items():
            self._check_id("model.vocab", token_id)
            if seen.setdefault(token_id, text) != text:
                raise self._error(
                    "tokenizer.json",
                    "model.vocab",
                    f"gives {seen[token_id]!r} and {text!r} the same id {token_id:,}",
                )
        return vocab

    def _read_added(self) -> list[AddedToken]:
        entries = self._source.get("added_tokens") or []
        if not isinstance(entries, list):
            raise self._error("tokenizer.json", "added_tokens", "must be a list")
        tokens = {}
        for entry in entries:
            token = self._added_token(
                "added_tokens", entry.get("id") if isinstance(entry, dict) else None, entry
            )
            tokens[token.content] = token
        decoder = self._config.get("added_tokens_decoder") or {}
        for key, entry in decoder.items() if isinstance(decoder, dict) else ():
            token = self._added_token("added_tokens_decoder", int(key) if key.isdecimal() else None, entry)
            tokens.setdefault(token.content, token)
        for text in self._variables.values():
            if text not in tokens and text in self._vocab:
                tokens[text] = AddedToken(self._vocab[text], text, special=True)
        return list(tokens.values())

    def _added_token(self, key: str, token_id: Any, entry: Any) -> AddedToken:
        content = entry.get("content") if isinstance(entry, dict) else None
        if not isinstance(content, str):
            raise self._error("tokenizer", key, "must hold tokens with a content")
        self._check_id(key, token_id)
        if self._vocab.get(content, token_id) != token_id:
            raise self._error(
                "tokenizer",
                key,
                f"gives {content!r} the id {token_id:,}, model.vocab {self._vocab[content]:,}",
            )
        flags = {
            name: entry.get(name) is True
            for name in ("special", "lstrip", "rstrip", "single_word", "normalized")
        }
        return AddedToken(token_id, content, **flags)

    def _without_added(self) -> Json:
        """The pipeline without what `Tokenizer` does itself."""
        source = {
            **self._source,
            "added_tokens": [],
            "post_processor": None,
            "truncation": None,
            "padding": None,
        }
        model = dict(source["model"])
        removed = {token.content for token in self._added if not token.is_text} - {model.get("unk_token")}
        model["vocab"] = {text: token_id for text, token_id in self._vocab.items() if text not in removed}
        merges = []
        for merge in model.get("merges") or []:
            pair = merge.split(" ") if isinstance(merge, str) else merge
            if (
                not isinstance(pair, list)
                or len(pair) != 2
                or not all(isinstance(part, str) for part in pair)
            ):
                raise self._error(
                    "tokenizer.json", "model.merges", f"holds {str(merge)[:40]!r}, which is no pair"
                )
            if removed.isdisjoint((*pair, "".join(pair))):
                merges.append(pair)
        model["merges"] = merges
        source["model"] = model
        return source

    def _build(self, source: Json) -> tokenizers.Tokenizer:
        with rust_guard("be built from tokenizer.json"):
            return tokenizers.Tokenizer.from_str(json.dumps(source))

    def _parts(self, *keys: str) -> Iterator[Json]:
        for key in keys:
            yield from _flatten(self._source.get(key))

    def _adds_bos(self) -> bool:
        if isinstance(flag := self._config.get("add_bos_token"), bool):
            return flag
        for part in _flatten(self._source.get("post_processor")):
            single = part.get("single")
            if part.get("type") == "TemplateProcessing" and isinstance(single, list) and single:
                first = single[0].get("SpecialToken") if isinstance(single[0], dict) else None
                return isinstance(first, dict) and first.get("id") == self._variables.get("bos_token")
        return False

    def _stops(self, ids: dict[str, int], size: int) -> frozenset[int]:
        stops = {ids[text] for text in (self._variables.get("eos_token"),) if text in ids}
        for name in ("config.json", "generation_config.json"):
            config = _read_json(self._folder, name, MAX_CONFIG_BYTES) or {}
            value = config.get("eos_token_id")
            for token_id in value if isinstance(value, list) else [value]:
                if token_id is None:
                    continue
                if not _is_id(token_id) or token_id >= size:
                    raise self._error(
                        name, "eos_token_id", f"is {token_id!r}; it must be from 0 to {size - 1:,}"
                    )
                stops.add(token_id)
        return frozenset(stops)

    def _templates(self) -> dict[str, str]:
        templates: dict[str, str] = {}
        value = self._config.get("chat_template")
        if isinstance(value, str):
            templates["default"] = value
        for entry in value if isinstance(value, list) else ():
            if isinstance(entry, dict) and isinstance(entry.get("template"), str):
                templates[str(entry.get("name"))] = entry["template"]
        named = (_read_json(self._folder, "chat_template.json", MAX_CONFIG_BYTES) or {}).get("chat_template")
        if isinstance(named, str):
            templates["default"] = named
        data = _read_bytes(self._folder, "chat_template.jinja", MAX_CONFIG_BYTES)
        if data is not None:
            templates["default"] = data.decode("utf-8", "replace")
        return templates

    def _check_id(self, key: str, token_id: object) -> None:
        if not _is_id(token_id):
            raise self._error(
                "tokenizer", key, f"holds the id {token_id!r}; ids are from 0 to {MAX_TOKENS - 1:,}"
            )

    def _error(self, file: str, key: str, problem: str) -> ModelFileError:
        return ModelFileError(f"{self._folder.name}: {file}: {key} {problem}.")


def _without_prefix(source: Json) -> tuple[Json, Literal["none", "start", "gaps"]]:
    """The pipeline without a space put before the text, and where the one with it belongs."""
    rest = copy.deepcopy({key: source.get(key) for key in ("normalizer", "pre_tokenizer")})
    prefix: Literal["none", "start", "gaps"] = "none"
    normalizer = rest["normalizer"]
    steps = list(_flatten(normalizer))
    if any(step.get("type") == "Prepend" for step in steps):
        prefix = "gaps"
        kept = [step for step in steps if step.get("type") != "Prepend"]
        rest["normalizer"] = {"type": "Sequence", "normalizers": kept}
    for step in _flatten(rest["pre_tokenizer"]):
        if step.get("type") == "Metaspace" and step.get("prepend_scheme") == "first":
            step["prepend_scheme"] = "never"
            prefix = prefix if prefix == "gaps" else "start"
    return {**source, **rest}, prefix


def _strips_space(decoder: Json) -> bool:
    """Whether a decoding step takes the space off that a prefix put there."""
    if decoder.get("type") == "Metaspace":
        return bool(decoder.get("prepend_scheme", "always") != "never")
    return [decoder.get(key) for key in ("type", "content", "start")] == ["Strip", " ", 1]


def _flatten(part: Any) -> Iterator[Json]:
    """The steps of a pipeline stage, with sequences opened."""
    if not isinstance(part, dict):
        return
    if part.get("type") != "Sequence":
        yield part
        return
    for key in ("normalizers", "pretokenizers", "processors", "decoders"):
        inner = part.get(key)
        for step in inner if isinstance(inner, list) else ():
            yield from _flatten(step)


def _read_json(folder: Path, name: str, limit: int) -> Json | None:
    data = _read_bytes(folder, name, limit)
    if data is None:
        return None
    try:
        value = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise ModelFileError(f"{folder.name}: {name} is no JSON file: {error}.") from error
    if not isinstance(value, dict):
        raise ModelFileError(f"{folder.name}: {name} must hold a group of settings.")
    return value


def _read_bytes(folder: Path, name: str, limit: int) -> bytes | None:
    if not holds(folder, name):
        return None
    with inside(folder, name).open("rb") as file:
        data = file.read(limit + 1)
    if len(data) > limit:
        raise ModelFileError(f"{folder.name}: {name} has more than {limit:,} bytes.")
    return data


def _text(value: Any) -> str | None:
    if isinstance(value, dict):
        value = value.get("content")
    return value if isinstance(value, str) else None


def _is_id(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < MAX_TOKENS
