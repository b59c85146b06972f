"""The pre-tokenisers that `tokenizer.ggml.pre` names, each as its model's original tokenizer.json defines it.

A name stands for a normaliser, the rule that cuts text into words before merging, whether a word that is a token
is taken without merging, and whether a prompt begins with BOS when the file does not say. Only names whose original
definition is known are here; every other one is refused, because a near miss costs quality that nobody sees. So is a
name that the vocabulary contradicts: a rule that cuts numbers leaves none in the tokens that were learned by it.
"""

from __future__ import annotations

import re
from collections.abc import Collection
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
_O200K = (
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
    r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
    r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
_NUMBER = re.compile(r"[0-9]{2,}")
_FEW = 5  # tokens that may be others': some are added by hand
_WHOLE_VOCABULARY = 30_000  # a smaller one may have learned no number


@dataclass(frozen=True, slots=True)
class ByteLevelRules:
    """How one family of byte-level vocabularies reads text; `digits` is the most that a word has, 0 for any number."""

    pattern: str | None = None  # None is GPT-2's own
    individual_digits: bool = False
    nfc: bool = False
    ignore_merges: bool = False
    add_bos: bool = False
    digits: int = 0

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

    def contradiction(self, tokens: Collection[str]) -> str:
        """How the ordinary tokens of a vocabulary contradict these rules, in words; "" if they do not."""
        numbers = [len(found.group()) for token in tokens if (found := _NUMBER.search(token))]
        longer = sum(length > self.digits for length in numbers) if self.digits else 0
        if longer > _FEW:
            return f"cuts numbers after {self.digits}, but {longer:,} of its tokens hold longer ones"
        if self.digits != 1 and not numbers and len(tokens) >= _WHOLE_VOCABULARY:
            return f"keeps digits together, but none of its {len(tokens):,} tokens holds two"
        return ""


_LLAMA3_RULES = ByteLevelRules(_LLAMA3, ignore_merges=True, add_bos=True, digits=3)
_ONE_BY_ONE = ByteLevelRules(individual_digits=True, digits=1)

BYTE_LEVEL_RULES: dict[str, ByteLevelRules] = {
    "gpt-2": ByteLevelRules(),
    "smollm": _ONE_BY_ONE,
    "starcoder": _ONE_BY_ONE,
    "refact": _ONE_BY_ONE,  # granite 3
    "qwen2": ByteLevelRules(_QWEN2, nfc=True, digits=1),
    "deepseek-r1-qwen": ByteLevelRules(_QWEN2, digits=1),
    "dbrx": ByteLevelRules(_LLAMA3, digits=3),  # OLMo 2 and Phi 4
    "gpt-4o": ByteLevelRules(_O200K, digits=3),  # Phi 4 mini
    "llama-bpe": _LLAMA3_RULES,
    "llama3": _LLAMA3_RULES,
    "llama-v3": _LLAMA3_RULES,
    "tekken": ByteLevelRules(_TEKKEN, ignore_merges=True, add_bos=True, digits=1),
}
