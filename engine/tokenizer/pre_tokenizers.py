"""The pre-tokenisers that `tokenizer.ggml.pre` names, each as its model's original tokenizer.json defines it.

A name stands for a normaliser, the rule that cuts text into words before merging, whether a word that is a token
is taken without merging, and whether a prompt begins with BOS when the file does not say. Only names whose original
definition is known are here; every other one is refused, because a near miss costs quality that nobody sees.
"""

from __future__ import annotations

from dataclasses import dataclass

from tokenizers import Regex
from tokenizers.normalizers import NFC, Normalizer
from tokenizers.pre_tokenizers import ByteLevel, Digits, PreTokenizer, Sequence, Split

_LLAMA3 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
_QWEN2 = _LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}")
_TEKKEN = (
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+"
    r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*"
    r"|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)


@dataclass(frozen=True, slots=True)
class ByteLevelRules:
    """How one family of byte-level vocabularies reads text."""

    pattern: str | None = None  # None is GPT-2's own
    individual_digits: bool = False
    nfc: bool = False
    ignore_merges: bool = False
    add_bos: bool = False

    def normalizer(self) -> Normalizer | None:
        """The normaliser, or None."""
        return NFC() if self.nfc else None

    def pre_tokenizer(self) -> PreTokenizer:
        """The pre-tokeniser."""
        if self.pattern is not None:
            split = Split(Regex(self.pattern), behavior="isolated")
            return Sequence([split, ByteLevel(add_prefix_space=False, use_regex=False)])
        words = ByteLevel(add_prefix_space=False, use_regex=True)
        return Sequence([Digits(individual_digits=True), words]) if self.individual_digits else words


_LLAMA3_RULES = ByteLevelRules(_LLAMA3, ignore_merges=True, add_bos=True)

BYTE_LEVEL_RULES: dict[str, ByteLevelRules] = {
    "gpt-2": ByteLevelRules(),
    "smollm": ByteLevelRules(individual_digits=True),
    "starcoder": ByteLevelRules(individual_digits=True),
    "qwen2": ByteLevelRules(_QWEN2, nfc=True),
    "deepseek-r1-qwen": ByteLevelRules(_QWEN2),
    "llama-bpe": _LLAMA3_RULES,
    "llama3": _LLAMA3_RULES,
    "llama-v3": _LLAMA3_RULES,
    "tekken": ByteLevelRules(_TEKKEN, ignore_merges=True, add_bos=True),
}
