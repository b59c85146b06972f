"""Replacements of characters as `tokenizers` reads them from the form that is written."""

from __future__ import annotations

import random

import pytest
from tokenizers import normalizers

from inglenook.engine.tokenizer.charsmap import charsmap


def test_each_character_is_replaced_and_no_other() -> None:
    rng = random.Random(3)
    characters = rng.sample([chr(c) for c in range(1, 0x2FFFF) if not 0xD800 <= c < 0xE000], 3000)
    replaced = {c: "".join(rng.choices("ab é火", k=rng.randint(0, 4))) for c in characters[:1500]}

    normalizer = normalizers.Precompiled(charsmap(replaced))

    assert {c: normalizer.normalize_str(c) for c in replaced} == replaced
    others = [c for c in characters[1500:] if c not in replaced]
    assert [normalizer.normalize_str(c) for c in others] == others


def test_no_replacement_leaves_a_text_as_it_is() -> None:
    assert normalizers.Precompiled(charsmap({})).normalize_str("as it is é") == "as it is é"


@pytest.mark.parametrize("replaced", [{"": "a"}, {"\0": "a"}, {"a": "b\0"}])
def test_what_the_form_cannot_hold_is_refused(replaced: dict[str, str]) -> None:
    with pytest.raises(ValueError, match="zero bytes"):
        charsmap(replaced)
