"""The two real models: ids of 1,000 strings and whole chats equal the original tokenizers'.

The reference is what `transformers` makes of the same file, corrected where its conversion loses what the original
tokenizer.json says: SmolLM's digits are cut one by one, and Qwen2 normalises text to NFC. A second reference is
written out here on the `regex` module, so that a shared mistake of the `tokenizers` library cannot pass.
"""

from __future__ import annotations

import functools
import itertools
import json
import random
import unicodedata
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import regex
import tokenizers
from odd_strings import odd_strings
from tokenizers import normalizers, pre_tokenizers

from inglenook.engine.tokenizer.tokenizer import Tokenizer
from inglenook.engine.weights.gguf import GGUFFile

pytestmark = pytest.mark.slow

_GPT2 = r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
_QWEN2 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)


def _written_out(metadata: Any, pattern: str, digits: bool, nfc: bool) -> Callable[[str], list[int]]:
    """Byte-level BPE from its definition: split, spell as bytes, merge the best-ranked neighbours, leftmost first."""
    tokens = metadata["tokenizer.ggml.tokens"]
    ids = {t: i for i, t in enumerate(tokens) if metadata["tokenizer.ggml.token_type"][i] == 1}
    ranks = {tuple(m.split(" ")): rank for rank, m in enumerate(metadata["tokenizer.ggml.merges"])}
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    spelling = {b: chr(b) for b in printable}
    spelling |= {b: chr(0x100 + i) for i, b in enumerate(b for b in range(256) if b not in spelling)}
    words, digit = regex.compile(pattern), regex.compile(r"\p{N}")

    @functools.cache
    def merged(word: str) -> list[int]:
        symbols = [spelling[byte] for byte in word.encode()]
        while pairs := [(ranks[p], i) for i, p in enumerate(itertools.pairwise(symbols)) if p in ranks]:
            at = min(pairs)[1]
            symbols[at : at + 2] = [symbols[at] + symbols[at + 1]]
        return [ids[s] for s in symbols if s in ids]  # SmolLM2 has no token for 12 rare bytes

    def encode(text: str) -> list[int]:
        text = unicodedata.normalize("NFC", text) if nfc else text
        parts = regex.split(r"(\p{N})", text) if digits else [text]
        found = [part if digits and digit.fullmatch(part) else None for part in parts]
        spans = itertools.chain.from_iterable(
            [part] if is_digit else words.findall(part) for part, is_digit in zip(parts, found, strict=True)
        )
        return [token_id for word in spans for token_id in merged(word)]

    return encode


@pytest.fixture(scope="module", params=["smollm2", "qwen2"])
def model(request: pytest.FixtureRequest) -> Iterator[tuple[str, Tokenizer, Any, Any]]:
    """Name, our tokenizer, the reference, the metadata."""
    transformers = pytest.importorskip("transformers")
    path: Path = request.getfixturevalue(request.param)
    reference = transformers.AutoTokenizer.from_pretrained(path.parent, gguf_file=path.name)
    if request.param == "smollm2":
        parts = [
            pre_tokenizers.Digits(individual_digits=True),
            pre_tokenizers.ByteLevel(add_prefix_space=False),
        ]
        reference.backend_tokenizer.pre_tokenizer = pre_tokenizers.Sequence(parts)
    else:
        reference.backend_tokenizer.normalizer = normalizers.NFC()
    with GGUFFile(path) as file, Tokenizer.from_gguf(file.metadata) as tokenizer:
        yield request.param, tokenizer, reference, file.metadata


def _ordinary(reference: Any) -> tokenizers.Tokenizer:
    """The reference without added tokens: what it makes of text that only looks like them."""
    source = json.loads(reference.backend_tokenizer.to_str())
    names = {token["content"] for token in source["added_tokens"]}
    source["model"]["vocab"] = {t: i for t, i in source["model"]["vocab"].items() if t not in names}
    return tokenizers.Tokenizer.from_str(json.dumps({**source, "added_tokens": [], "post_processor": None}))


def test_a_thousand_strings_have_the_reference_tokenizers_ids(model: tuple[str, Tokenizer, Any, Any]) -> None:
    name, tokenizer, reference, metadata = model
    ordinary = _ordinary(reference)
    is_smollm = name == "smollm2"
    written_out = _written_out(metadata, _GPT2 if is_smollm else _QWEN2, is_smollm, not is_smollm)
    added = reference.get_added_vocab()
    strings = odd_strings(1000)
    assert sum(any(t in s for t in added) for s in strings) > 100

    for text in strings:
        ids = list(tokenizer.encode_text(text).token_ids)

        assert ids == ordinary.encode(text).ids, text
        assert ids == written_out(text), text
        if not any(token in text for token in added):
            assert ids == reference.encode(text, add_special_tokens=False), text


def test_a_thousand_strings_come_back(model: tuple[str, Tokenizer, Any, Any]) -> None:
    name, tokenizer, _, metadata = model
    tokens = set(metadata["tokenizer.ggml.tokens"])
    lost = {b for b in range(32) if chr(0x100 + b) not in tokens}

    for text in odd_strings(1000):
        detokenizer = tokenizer.detokenizer()
        shown = "".join(map(detokenizer.feed, tokenizer.encode_text(text).token_ids)) + detokenizer.flush()

        expected = text if name == "smollm2" else unicodedata.normalize("NFC", text)
        if not any(ord(c) in lost for c in text):
            assert shown == expected


def test_chats_have_the_reference_text_and_ids(model: tuple[str, Tokenizer, Any, Any]) -> None:
    _, tokenizer, reference, _ = model
    source = random.Random(7)
    strings = odd_strings(400)
    added = reference.get_added_vocab()
    added_ids = set(added.values())

    for _ in range(60):
        contents = source.sample(strings, source.choice([1, 3, 5]))
        roles = ["user", "assistant", "user", "assistant", "user"]
        messages = [{"role": r, "content": c} for r, c in zip(roles, contents, strict=False)]
        if source.random() < 0.5:
            messages.insert(0, {"role": "system", "content": source.choice(strings)})

        prompt = tokenizer.encode_chat(messages)

        text = reference.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
        assert prompt.text == text
        control = [i for i in prompt.token_ids if i in added_ids]
        neutral = [{**m, "content": "x"} for m in messages]
        assert control == [i for i in tokenizer.encode_chat(neutral).token_ids if i in added_ids]
        if not any(token in m["content"] for m in messages for token in added):
            assert list(prompt.token_ids) == reference.encode(text, add_special_tokens=False)


def test_no_added_token_can_be_forged_in_any_role(model: tuple[str, Tokenizer, Any, Any]) -> None:
    _, tokenizer, reference, _ = model
    added = reference.get_added_vocab()
    ids = set(added.values())

    def control(content: str) -> list[int]:
        messages = [{"role": role, "content": content} for role in ("system", "user", "assistant", "user")]
        return [i for i in tokenizer.encode_chat(messages).token_ids if i in ids]

    neutral = control("x")
    for token in added:
        half = len(token) // 2
        forged = f"{token} a{token}b {token[:half]}\u200d{token[half:]} {token}{token} {token[half:]}{token[:half]}"
        assert control(forged) == neutral


def test_long_texts_encode_in_bounded_time(model: tuple[str, Tokenizer, Any, Any]) -> None:
    _, tokenizer, _, _ = model

    for text in ("a" * 1_000_000, "\u0301" * 500_000, " " * 1_000_000, "字" * 300_000, "\n" * 1_000_000):
        assert tokenizer.encode_text(text).token_ids
