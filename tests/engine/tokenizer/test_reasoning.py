"""The tags around a model's reasoning: found by template or vocabulary, and readable in its replies."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from template_families import FAMILIES

from inglenook.engine.tokenizer.reasoning import ReasoningTags, find_reasoning
from inglenook.engine.tokenizer.tokenizer import Tokenizer

Metadata = Callable[..., dict[str, Any]]


@pytest.mark.parametrize(
    ("family", "expected"),
    [
        ("qwen 3", ReasoningTags("<think>", "</think>")),
        ("deepseek r1 distilled", ReasoningTags("<think>", "</think>", is_open=True)),
    ],
)
def test_the_tags_of_a_family_are_found_and_whether_a_reply_begins_inside(
    byte_level_metadata: Metadata, family: str, expected: ReasoningTags
) -> None:
    with Tokenizer.from_gguf(byte_level_metadata(template=FAMILIES[family])) as tokenizer:
        assert tokenizer.reasoning == expected


@pytest.mark.parametrize(
    ("template", "tokens", "begin"),
    [
        ("", ["[THINK]", "[/THINK]"], "[THINK]"),
        ("{{ x.split('</think>') }}", [], "<think>"),
        ("<|user|>x<|end|>", ["<|end|>"], None),
        ("", ["<think>"], None),
        ("plain", ["<|im_end|>"], None),
    ],
)
def test_tags_are_those_of_the_template_or_a_whole_pair_of_tokens(
    template: str, tokens: list[str], begin: str | None
) -> None:
    found = find_reasoning(template, tokens)

    assert (found.begin if found else None) == begin


def test_tags_that_are_control_tokens_can_be_read_in_a_reply(byte_level_metadata: Metadata) -> None:
    values = byte_level_metadata(template="{{ messages[0].content }}")
    kinds = values["tokenizer.ggml.token_type"].copy()
    kinds[kinds == 4] = 3
    values["tokenizer.ggml.token_type"] = kinds
    with Tokenizer.from_gguf(values) as tokenizer:
        ids = [tokenizer.control_tokens_in(t)[0] for t in ("<think>", "</think>", "<tool>", "<|im_end|>")]
        detokenizer = tokenizer.detokenizer()

        assert [tokenizer.is_control(i) for i in ids] == [True] * 4
        assert [detokenizer.feed(i) for i in ids] == ["<think>", "</think>", "", ""]
