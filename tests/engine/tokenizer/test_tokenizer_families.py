"""Ids of 1,000 strings for each family of tokenizers: its original pipeline against a GGUF file of its vocabulary."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest
import tokenizers
from odd_strings import odd_strings
from tokenizers import models, pre_tokenizers, trainers

from inglenook.engine.errors import UnsupportedModelError
from inglenook.engine.tokenizer.tokenizer import Tokenizer
from inglenook.engine.weights.gguf import GGUFFile

# The pipelines as each model's own tokenizer.json has them, written down apart from the rules that are tested.
_CONTRACTIONS = "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
_REST = r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
_CL100K = _CONTRACTIONS + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}" + _REST
_QWEN = _CONTRACTIONS + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}" + _REST
_UPPER, _LOWER = r"\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}", r"\p{Ll}\p{Lm}\p{Lo}\p{M}"
_CASES = rf"[^\r\n\p{{L}}\p{{N}}]?[{_UPPER}]*[{_LOWER}]+%s|[^\r\n\p{{L}}\p{{N}}]?[{_UPPER}]+[{_LOWER}]*%s|\p{{N}}%s"
_SLASH = r"| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
_TEKKEN = _CASES % ("", "", "") + _SLASH
_O200K = _CASES % (f"{_CONTRACTIONS}?", f"{_CONTRACTIONS}?", "{1,3}") + _SLASH
_BYTES = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}


def _split(pattern: str) -> dict[str, Any]:
    split = {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": False}
    return {"type": "Sequence", "pretokenizers": [split, {**_BYTES, "use_regex": False}]}


_DIGITS = {"type": "Sequence", "pretokenizers": [{"type": "Digits", "individual_digits": True}, _BYTES]}
# pre -> pre-tokeniser, normaliser, whether words that are tokens are taken without merging
FAMILIES: dict[str, tuple[dict[str, Any], dict[str, Any] | None, bool]] = {
    "gpt-2": (_BYTES, None, False),
    "smollm": (_DIGITS, None, False),
    "starcoder": (_DIGITS, None, False),
    "refact": (_DIGITS, None, False),
    "qwen2": (_split(_QWEN), {"type": "NFC"}, False),
    "deepseek-r1-qwen": (_split(_QWEN), None, False),
    "llama-bpe": (_split(_CL100K), None, True),
    "dbrx": (_split(_CL100K), None, False),
    "tekken": (_split(_TEKKEN), None, True),
    "gpt-4o": (_split(_O200K), None, False),
}
TRAINED_ON = odd_strings(1400)
STRINGS = TRAINED_ON[400:]


def pipeline(family: str) -> tokenizers.Tokenizer:
    """The family's own pipeline without a vocabulary."""
    before, normalizer, ignores_merges = FAMILIES[family]
    model = {"type": "BPE", "vocab": {}, "merges": [], "ignore_merges": ignores_merges}
    source = {"version": "1.0", "model": model, "pre_tokenizer": before, "normalizer": normalizer}
    return tokenizers.Tokenizer.from_str(json.dumps(source))


def original(family: str) -> tokenizers.Tokenizer:
    """A vocabulary of 1,200 tokens, trained through the family's own pipeline."""
    tokenizer = pipeline(family)
    trainer = trainers.BpeTrainer(
        vocab_size=1200, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False
    )
    tokenizer.train_from_iterator(TRAINED_ON, trainer)
    return tokenizer


def write_gguf(tokenizer: tokenizers.Tokenizer, pre: str, path: Path) -> Path:
    """The vocabulary as a GGUF file, written by the format's own package."""
    model = json.loads(tokenizer.to_str())["model"]
    tokens = sorted(model["vocab"], key=model["vocab"].__getitem__)
    writer = gguf.GGUFWriter(str(path), "llama")
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre(pre)
    writer.add_token_list([*tokens, "<|begin|>", "<|end|>"])
    writer.add_token_types([1] * len(tokens) + [3, 3])
    writer.add_token_merges([m if isinstance(m, str) else " ".join(m) for m in model["merges"]])
    writer.add_bos_token_id(len(tokens))
    writer.add_eos_token_id(len(tokens) + 1)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.close()
    return path


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.slow
def test_a_thousand_strings_have_the_ids_of_the_original_pipeline(family: str, tmp_path: Path) -> None:
    theirs = original(family)
    with (
        GGUFFile(write_gguf(theirs, family, tmp_path / "v.gguf")) as file,
        Tokenizer.from_gguf(file.metadata) as ours,
    ):
        first = 1 if ours.wants_bos else 0
        got = [list(ours.encode_text(text).token_ids[first:]) for text in STRINGS]
        assert ours.wants_bos == (family in ("llama-bpe", "tekken"))

    want = [encoding.ids for encoding in theirs.encode_batch(STRINGS, add_special_tokens=False)]
    assert got == want


def test_the_strings_tell_the_families_apart() -> None:
    """Or a wrong rule would pass."""
    words = {
        family: [
            tuple(w for w, _ in pipeline(family).pre_tokenizer.pre_tokenize_str(t)) for t in STRINGS[:300]
        ]
        for family in ("gpt-2", "smollm", "qwen2", "llama-bpe", "tekken", "gpt-4o")
    }

    assert len({tuple(found) for found in words.values()}) == len(words)


def test_a_sentencepiece_vocabulary_has_the_ids_of_its_converted_pipeline(tmp_path: Path) -> None:
    trained = tokenizers.Tokenizer(models.BPE())
    trained.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="always")
    trained.train_from_iterator(STRINGS, trainers.BpeTrainer(vocab_size=2500, show_progress=False))
    model = json.loads(trained.to_str())["model"]
    merges = [m if isinstance(m, list) else m.split(" ") for m in model["merges"]]
    merged = list(dict.fromkeys("".join(m) for m in merges))
    letters = [token for token in model["vocab"] if token not in set(merged)]
    tokens = ["<unk>", "<s>", "</s>", *(f"<0x{b:02X}>" for b in range(256)), *merged, *letters]
    scores = [0.0] * 259 + [-float(rank) for rank in range(len(merged) + len(letters))]
    ids = {token: i for i, token in enumerate(tokens)}
    # as transformers converts it: every cut of a token is a merge, the best score first
    cuts = [
        (-scores[ids[t]], t[:at], t[at:])
        for t in merged for at in range(1, len(t)) if t[:at] in ids and t[at:] in ids
    ]  # fmt: skip
    for add_prefix in (True, False):
        steps: list[dict[str, Any]] = [{"type": "Prepend", "prepend": "▁"}] if add_prefix else []
        steps.append({"type": "Replace", "pattern": {"String": " "}, "content": "▁"})
        bpe = {
            "type": "BPE", "vocab": ids, "merges": [[a, b] for _, a, b in sorted(cuts, key=lambda c: c[0])],
            "unk_token": "<unk>", "fuse_unk": True, "byte_fallback": True,
        }  # fmt: skip
        source = {"version": "1.0", "model": bpe, "normalizer": {"type": "Sequence", "normalizers": steps}}
        theirs = tokenizers.Tokenizer.from_str(json.dumps(source))
        writer = gguf.GGUFWriter(str(tmp_path / f"{add_prefix}.gguf"), "llama")
        writer.add_tokenizer_model("llama")
        writer.add_token_list(tokens)
        writer.add_token_scores(scores)
        writer.add_token_types([2, 3, 3, *[6] * 256, *[1] * (len(tokens) - 259)])
        writer.add_bos_token_id(1)
        writer.add_eos_token_id(2)
        writer.add_add_space_prefix(add_prefix)
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.close()

        with GGUFFile(tmp_path / f"{add_prefix}.gguf") as file, Tokenizer.from_gguf(file.metadata) as ours:
            got = [list(ours.encode_text(text).token_ids[1:]) for text in STRINGS]

        want = [encoding.ids for encoding in theirs.encode_batch(STRINGS, add_special_tokens=False)]
        assert got == want


def _vocabulary(numbers: list[str], pre: str) -> dict[str, Any]:
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    words = [
        f"w{chr(97 + i % 26)}{chr(97 + i // 26 % 26)}{chr(97 + i // 676 % 26)}{chr(65 + i // 17576)}"
        for i in range(30_000)
    ]
    tokens = [*letters, *words, *numbers]
    return {
        "tokenizer.ggml.model": "gpt2", "tokenizer.ggml.pre": pre, "tokenizer.ggml.tokens": tokens,
        "tokenizer.ggml.token_type": np.ones(len(tokens), np.int32),
        "tokenizer.ggml.merges": [], "tokenizer.ggml.eos_token_id": 0,
    }  # fmt: skip


_THREE = [f"{n:03}" for n in range(100)]
_FOUR = [f"{n:04}" for n in range(100)]


@pytest.mark.parametrize(
    ("numbers", "pre", "message"),
    [
        (_THREE, "qwen2", "'qwen2', which cuts numbers after 1, but 100 of its tokens hold longer ones"),
        (
            _FOUR,
            "llama-bpe",
            "'llama-bpe', which cuts numbers after 3, but 100 of its tokens hold longer ones",
        ),
        (
            [],
            "llama-bpe",
            "'llama-bpe', which keeps digits together, but none of its 30,256 tokens holds two",
        ),
        ([], "gpt-2", "'gpt-2', which keeps digits together"),
    ],
)
def test_a_swapped_name_is_refused_with_what_contradicts_it(
    numbers: list[str], pre: str, message: str
) -> None:
    with pytest.raises(UnsupportedModelError, match=message):
        Tokenizer.from_gguf(_vocabulary(numbers, pre))


@pytest.mark.parametrize(
    ("numbers", "pre"),
    [
        (_THREE, "llama-bpe"),
        (_THREE, "gpt-4o"),
        (_FOUR, "gpt-2"),
        ([], "qwen2"),
        ([], "smollm"),
        (["007"], "qwen2"),
    ],
)
def test_a_name_that_fits_its_vocabulary_is_taken(numbers: list[str], pre: str) -> None:
    tokenizer = Tokenizer.from_gguf(_vocabulary(numbers, pre))
    ids = tokenizer.encode_text("07").token_ids
    read = b"".join(map(tokenizer.token_bytes, ids))
    tokenizer.close()

    assert read == b"07"
