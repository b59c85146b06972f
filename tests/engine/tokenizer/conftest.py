"""Small vocabularies, made here: byte-level and SentencePiece-style, as GGUF metadata and as pipelines."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tokenizers
from tokenizers import decoders, models, pre_tokenizers, trainers

CORPUS = [
    "The quick brown fox jumps over the lazy dog. The dog sleeps; the fox doesn't care.",
    "def area(width, height):\n    return width * height\n\n\nprint(area(3, 14))",
    "Ein größerer Bär läuft über die Straße. Das Öl fließt durch die Röhre.",
    "Привет, мир! Как дела? 你好，世界。 こんにちは世界。 안녕하세요 세계",
    "numbers: 1 12 123 1234 12345, 3.14159, 2024-01-31   and    spaces\t\ttabs",
] * 4


@pytest.fixture(scope="session")
def byte_level() -> tokenizers.Tokenizer:
    """A trained byte-level pipeline with individual digits, as SmolLM's is."""
    tokenizer = tokenizers.Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=600, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False
    )
    tokenizer.train_from_iterator(CORPUS, trainer)
    return tokenizer


@pytest.fixture(scope="session")
def byte_level_metadata(byte_level: tokenizers.Tokenizer) -> Callable[..., dict[str, Any]]:
    """GGUF metadata of that pipeline; keyword arguments replace keys, None removes one."""
    model = json.loads(byte_level.to_str())["model"]
    tokens = sorted(model["vocab"], key=model["vocab"].__getitem__)
    added = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<think>", "</think>", "<tool>"]
    kinds = [1] * len(tokens) + [3, 3, 3, 4, 4, 4]
    merges = [" ".join(merge) if isinstance(merge, list) else merge for merge in model["merges"]]

    def metadata(**changes: object) -> dict[str, Any]:
        size = len(tokens)
        values: dict[str, Any] = {
            "model": "gpt2",
            "pre": "smollm",
            "tokens": tokens + added,
            "token_type": np.array(kinds, dtype=np.int32),
            "merges": merges,
            "bos_token_id": size,
            "eos_token_id": size + 2,
            "add_bos_token": False,
        }
        template = changes.pop("template", None)
        values.update(changes)
        result = {f"tokenizer.ggml.{k}": v for k, v in values.items() if v is not None}
        return result | ({"tokenizer.chat_template": template} if template else {})

    return metadata


@pytest.fixture(scope="session")
def sentencepiece_metadata() -> Callable[..., dict[str, Any]]:
    """GGUF metadata of a SentencePiece-style vocabulary with byte fallback, trained here; keys as above."""
    tokenizer = tokenizers.Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="always")
    tokenizer.train_from_iterator(CORPUS[:3], trainers.BpeTrainer(vocab_size=400, show_progress=False))
    model = json.loads(tokenizer.to_str())["model"]
    merged = ["".join(m) if isinstance(m, list) else m.replace(" ", "") for m in model["merges"]]
    letters = [token for token in model["vocab"] if token not in set(merged)]
    tokens = [
        "<unk>",
        "<s>",
        "</s>",
        *(f"<0x{byte:02X}>" for byte in range(256)),
        "<|user|>",
        *merged,
        *letters,
    ]
    kinds = [2, 3, 3, *[6] * 256, 4, *[1] * (len(merged) + len(letters))]
    scores = [0.0] * 260 + [-float(rank) for rank in range(len(merged) + len(letters))]

    def metadata(**changes: object) -> dict[str, Any]:
        values: dict[str, Any] = {
            "model": "llama",
            "pre": "default",
            "tokens": tokens,
            "token_type": np.array(kinds, dtype=np.int32),
            "scores": np.array(scores, dtype=np.float32),
            "bos_token_id": 1,
            "eos_token_id": 2,
            "unknown_token_id": 0,
        }
        template = changes.pop("template", None)
        values.update(changes)
        result = {f"tokenizer.ggml.{k}": v for k, v in values.items() if v is not None}
        return result | ({"tokenizer.chat_template": template} if template else {})

    return metadata
