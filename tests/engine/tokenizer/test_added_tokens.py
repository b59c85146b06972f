"""Added tokens: found as the `tokenizers` library finds them, and never in what a person wrote."""

from __future__ import annotations

import pytest
import tokenizers
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import models

from inglenook.engine.tokenizer.added_tokens import AddedToken, AddedTokens, shield

_FLAGS = st.fixed_dictionaries(
    {name: st.booleans() for name in ("special", "lstrip", "rstrip", "single_word", "normalized")}
)
_CONTENTS = ["<a>", "<a><b>", "<b>", "ab", "<", "<a b>"]


def _ids(added: AddedTokens, text: str, shielded: str) -> list[int | str]:
    return [text[p.start : p.end] if p.token_id is None else p.token_id for p in added.split(text, shielded)]


@settings(deadline=None)
@given(st.dictionaries(st.sampled_from(_CONTENTS), _FLAGS, max_size=5), st.text("<>ab \n", max_size=30))
def test_matches_equal_the_librarys_for_all_flags(tokens: dict[str, dict[str, bool]], text: str) -> None:
    library = tokenizers.Tokenizer(models.WordLevel({"?": 0}, "?"))
    library.add_tokens([tokenizers.AddedToken(content, **flags) for content, flags in tokens.items()])
    added = AddedTokens(AddedToken(library.token_to_id(c), c, **flags) for c, flags in tokens.items())

    ours = _ids(added, text, text)

    encoding = library.encode(text)
    expected = [
        token_id or text[start:end]
        for token_id, (start, end) in zip(encoding.ids, encoding.offsets, strict=True)
    ]
    assert ours == expected


@settings(deadline=None)
@given(st.lists(st.tuples(st.text("<>ab ", max_size=6), st.booleans()), max_size=8))
def test_no_match_touches_a_shielded_character(parts: list[tuple[str, bool]]) -> None:
    added = AddedTokens(AddedToken(i, c, special=True) for i, c in enumerate(_CONTENTS))
    text = "".join(part for part, _ in parts)
    shielded = "".join(shield(part) if is_user else part for part, is_user in parts)
    typed = "".join(("u" * len(part) if is_user else "t" * len(part)) for part, is_user in parts)

    pieces = list(added.split(text, shielded))

    assert "".join(text[p.start : p.end] for p in pieces) == text
    for piece in pieces:
        if piece.token_id is not None:
            span = range(piece.start, piece.end)
            assert all(typed[i] == "t" or text[i] == " " for i in span)


def test_white_space_tokens_match_in_typed_text_too() -> None:
    added = AddedTokens([AddedToken(7, "  ", special=False), AddedToken(8, "<x>", special=False)])

    assert _ids(added, "a  b<x>", shield("a  b<x>")) == ["a", 7, "b<x>"]


def test_special_white_space_is_never_matched() -> None:
    added = AddedTokens([AddedToken(7, "\n", special=True)])

    assert _ids(added, "a\nb", "a\nb") == ["a\nb"]


@pytest.mark.parametrize(("typed", "template"), [("<|im", "_end|>"), ("<|im_end", "|>"), ("<", "|im_end|>")])
def test_a_token_straddling_the_border_is_not_matched(typed: str, template: str) -> None:
    added = AddedTokens([AddedToken(1, "<|im_end|>", special=True)])

    assert _ids(added, typed + template, shield(typed) + template) == [typed + template]
    assert _ids(added, template + typed, template + shield(typed)) == [template + typed]


def test_thousands_of_tokens_are_searched_fast() -> None:
    added = AddedTokens(AddedToken(i, f"<unused{i}>", special=False) for i in range(6000))

    pieces = list(added.split("<unused17>" * 5000, "<unused17>" * 5000))

    assert {p.token_id for p in pieces} == {17}
