"""Tokenizers of sentence encoders: from tokenizer.json, from a BERT's vocab.txt, and from a GGUF's vocabulary.

A GGUF has WordPiece vocabularies with "▁" before the pieces that begin a word and nothing before the others, where
BERT has nothing and "##"; and Unigram vocabularies with their scores. Texts of people and documents never become
control tokens.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import tokenizers
from tokenizers import Regex, models, normalizers, pre_tokenizers, processors

from inglenook.engine.errors import ModelFileError, UnsupportedModelError
from inglenook.engine.tokenizer.vocabulary import rust_guard
from inglenook.engine.weights.json_file import read_json_file
from inglenook.engine.weights.metadata import Metadata
from inglenook.engine.weights.model_folder import holds, inside

MAX_TOKENIZER_BYTES = 64 << 20
MAX_VOCABULARY_BYTES = 16 << 20
MAX_CONFIG_BYTES = 1 << 20

_WORD_START = "▁"
_CONTROL, _BYTE = 3, 6


def tokenizer_from_folder(folder: Path, vocab_size: int) -> tokenizers.Tokenizer:
    """The tokenizer of a model folder, without padding and truncation.

    Raises:
        ModelFileError: it is missing, damaged, or larger than the model's table.
    """
    path = inside(folder, "tokenizer.json")
    if path.is_file():
        if path.stat().st_size > MAX_TOKENIZER_BYTES:
            raise ModelFileError(
                f"tokenizer.json has {path.stat().st_size:,} bytes; at most {MAX_TOKENIZER_BYTES:,} are allowed."
            )
        with rust_guard("be read from tokenizer.json"):
            tokenizer = tokenizers.Tokenizer.from_str(path.read_text(encoding="utf-8"))
    elif holds(folder, "vocab.txt"):
        tokenizer = _from_vocab_txt(folder)
    else:
        raise ModelFileError(
            f"{folder.name} has no tokenizer.json. The folder is incomplete; fetch it again."
        )
    if tokenizer.get_vocab_size() > vocab_size:
        raise ModelFileError(
            f"{folder.name}: the tokenizer has {tokenizer.get_vocab_size():,} tokens, config.json says {vocab_size:,}."
        )
    return _plain(tokenizer)


def tokenizer_from_gguf(metadata: Metadata, vocab_size: int) -> tokenizers.Tokenizer:
    """The tokenizer in a GGUF's metadata.

    Raises:
        UnsupportedModelError: a kind of tokenizer that is not supported for encoders.
        ModelFileError: a key is missing, of the wrong type or length, or contradicts another.
    """
    kind = metadata.text("tokenizer.ggml.model")
    tokens = metadata.texts("tokenizer.ggml.tokens", length=vocab_size)
    if len(set(tokens)) < len(tokens):
        raise metadata.error("tokenizer.ggml.tokens", "has the same text twice")
    if kind == "bert":
        return _plain(_wordpiece_from_gguf(metadata, tokens))
    if kind == "t5":
        return _plain(_unigram_from_gguf(metadata, tokens))
    raise UnsupportedModelError(
        f"{metadata.source}: the tokenizer {kind!r} is not supported for encoders; "
        "'bert' (WordPiece) and 't5' (Unigram) are."
    )


def _plain(tokenizer: tokenizers.Tokenizer) -> tokenizers.Tokenizer:
    tokenizer.no_truncation()
    tokenizer.no_padding()
    tokenizer.encode_special_tokens = True
    return tokenizer


def _from_vocab_txt(folder: Path) -> tokenizers.Tokenizer:
    path = inside(folder, "vocab.txt")
    if path.stat().st_size > MAX_VOCABULARY_BYTES:
        raise ModelFileError(
            f"vocab.txt has {path.stat().st_size:,} bytes; at most {MAX_VOCABULARY_BYTES:,} are allowed."
        )
    lines = path.read_text(encoding="utf-8", errors="strict").split("\n")
    vocab = {line.rstrip("\r"): i for i, line in enumerate(lines[: -1 if not lines[-1] else None])}
    file = inside(folder, "tokenizer_config.json")
    settings = Metadata(read_json_file(file, MAX_CONFIG_BYTES) if file.is_file() else {}, file.name)
    return _wordpiece(
        vocab,
        f"{folder.name}/vocab.txt",
        lowercases=settings.flag("do_lower_case", default=True),
        splits_chinese=settings.flag("tokenize_chinese_chars", default=True),
    )


def _wordpiece_from_gguf(metadata: Metadata, tokens: list[str]) -> tokenizers.Tokenizer:
    kinds = metadata.array("tokenizer.ggml.token_type", kind=np.integer, length=len(tokens)).tolist()
    vocab = {}
    lowercases = True
    for i, (token, kind) in enumerate(zip(tokens, kinds, strict=True)):
        if kind == _CONTROL or (token.startswith("[") and token.endswith("]") and len(token) > 2):
            vocab[token] = i
            continue
        # A vocabulary with capital letters is a cased one; a GGUF does not say.
        lowercases = lowercases and token == token.lower()
        vocab[token.removeprefix(_WORD_START) if token.startswith(_WORD_START) else f"##{token}"] = i
    return _wordpiece(vocab, metadata.source, lowercases=lowercases, splits_chinese=True)


def _wordpiece(
    vocab: dict[str, int], source: str, *, lowercases: bool, splits_chinese: bool
) -> tokenizers.Tokenizer:
    for token in ("[CLS]", "[SEP]", "[UNK]"):
        if token not in vocab:
            raise ModelFileError(f"{source}: the vocabulary has no {token}, so it is no BERT's.")
    with rust_guard("be built from its vocabulary"):
        tokenizer = tokenizers.Tokenizer(models.WordPiece(vocab, unk_token="[UNK]"))
        tokenizer.normalizer = normalizers.BertNormalizer(
            lowercase=lowercases, handle_chinese_chars=splits_chinese
        )
        tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
        tokenizer.post_processor = processors.TemplateProcessing(
            single="[CLS] $A [SEP]",
            special_tokens=[("[CLS]", vocab["[CLS]"]), ("[SEP]", vocab["[SEP]"])],
        )
    return tokenizer


def _unigram_from_gguf(metadata: Metadata, tokens: list[str]) -> tokenizers.Tokenizer:
    scores = metadata.array("tokenizer.ggml.scores", kind=np.floating, length=len(tokens)).astype(float)
    if not np.isfinite(scores).all():
        raise metadata.error("tokenizer.ggml.scores", "has a number that is not finite")
    kinds = metadata.array("tokenizer.ggml.token_type", kind=np.integer, length=len(tokens))
    if (kinds == _BYTE).any():
        raise UnsupportedModelError(f"{metadata.source}: a Unigram vocabulary with bytes is not supported.")
    last = len(tokens) - 1
    unknown = metadata.integer("tokenizer.ggml.unknown_token_id", 0, last)
    first, end = (metadata.integer(f"tokenizer.ggml.{n}_token_id", 0, last) for n in ("bos", "eos"))
    steps: list[normalizers.Normalizer] = []
    if metadata.has("tokenizer.ggml.precompiled_charsmap"):
        charsmap = metadata.array("tokenizer.ggml.precompiled_charsmap", kind=np.integer)
        with rust_guard("read its character map"):
            steps.append(normalizers.Precompiled(charsmap.astype(np.uint8).tobytes()))
    if metadata.flag("tokenizer.ggml.remove_extra_whitespaces", default=True):
        steps.append(normalizers.Replace(Regex(" {2,}"), " "))
    with rust_guard("be built from its vocabulary"):
        pieces = list(zip(tokens, scores.tolist(), strict=True))
        tokenizer = tokenizers.Tokenizer(models.Unigram(pieces, unk_id=unknown))
        tokenizer.normalizer = normalizers.Sequence(steps)
        tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
            [pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace()]
        )
        tokenizer.post_processor = processors.TemplateProcessing(
            single=f"{tokens[first]} $A {tokens[end]}",
            special_tokens=[(tokens[first], first), (tokens[end], end)],
        )
    return tokenizer
