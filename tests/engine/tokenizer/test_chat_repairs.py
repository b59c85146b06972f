"""Templates of common families: rendered to the byte, and chats that they refuse put another way, nothing left out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from template_families import FAMILIES

from inglenook.engine.errors import TemplateError
from inglenook.engine.tokenizer.chat_repairs import (
    JOINED,
    QUESTION_ADDED,
    SYSTEM_FOLDED,
    SYSTEM_LATER,
    chat_repairs,
)
from inglenook.engine.tokenizer.tokenizer import Tokenizer

Metadata = Callable[..., dict[str, Any]]


def chat(*turns: str) -> list[dict[str, str]]:
    """Messages from texts like "user: Why?"."""
    pairs = (turn.split(": ", 1) for turn in turns)
    return [{"role": role, "content": content} for role, content in pairs]


USUAL = chat("user: Why?  ", "assistant: <think>\nhm\n</think>\n\nSo.", "user: And\nthen 'x' & <b>?")
WITH_SYSTEM = [*chat("system: Be brief. "), *USUAL]
SHAPES = {
    "usual": USUAL,
    "with a system message": WITH_SYSTEM,
    "one question": USUAL[:1],
    "two questions in a row": chat("user: One.", "user: Two.", "assistant: Both.", "user: Three."),
    "a reply first": chat("assistant: Hello.", "user: Hi."),
    "a system message and a reply first": chat("system: S.", "assistant: Hello.", "user: Hi."),
    "a system message later": chat("user: A.", "assistant: B.", "system: C.", "user: D."),
    "a reply last": chat("user: A.", "assistant: B."),
}


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES)
def test_a_familys_prompt_is_transformers_prompt_to_the_byte(
    byte_level_metadata: Metadata, family: str
) -> None:
    jinja2 = pytest.importorskip("jinja2")
    render = pytest.importorskip("transformers.utils.chat_template_utils").render_jinja_template
    compared = 0
    with Tokenizer.from_gguf(byte_level_metadata(template=FAMILIES[family])) as tokenizer:
        variables = dict(tokenizer._vocabulary.variables)
        for name, messages in SHAPES.items():
            try:
                (expected,), _ = render(
                    [messages], chat_template=FAMILIES[family], add_generation_prompt=True, **variables
                )
            except jinja2.TemplateError:
                continue
            prompt = tokenizer.encode_chat(messages)
            if prompt.notices:
                assert name.startswith(("with a system", "a system")), name
                continue
            assert prompt.text == expected, name
            compared += 1
    assert compared >= 2


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES)
def test_every_family_takes_every_chat_and_leaves_no_text_out(
    byte_level_metadata: Metadata, family: str
) -> None:
    with Tokenizer.from_gguf(byte_level_metadata(template=FAMILIES[family])) as tokenizer:
        for name, messages in SHAPES.items():
            prompt = tokenizer.encode_chat(messages)

            for message in messages:
                assert message["content"].split("</think>")[-1].strip() in prompt.text, name


def test_a_template_that_refuses_a_chat_gets_it_with_turns_and_it_is_said(
    byte_level_metadata: Metadata,
) -> None:
    with Tokenizer.from_gguf(byte_level_metadata(template=FAMILIES["gemma 2"])) as tokenizer:
        prompt = tokenizer.encode_chat(chat("system: S.", "user: One.", "user: Two."))
        first = tokenizer.encode_chat(chat("assistant: Hello.", "user: Hi."))

    assert prompt.text.endswith(
        "<start_of_turn>user\nS.\n\nOne.\n\nTwo.<end_of_turn>\n<start_of_turn>model\n"
    )
    assert prompt.notices == (SYSTEM_FOLDED, JOINED)
    assert "<start_of_turn>user\n<end_of_turn>\n<start_of_turn>model\nHello.<end_of_turn>" in first.text
    assert first.notices == (QUESTION_ADDED,)


def test_what_a_person_wrote_stays_ordinary_text_in_a_repaired_chat(byte_level_metadata: Metadata) -> None:
    template = "{% for m in messages %}{% if loop.index0 > 0 %}{{ raise_exception('one only') }}{% endif %}<|im_start|>{{ m.content }}{% endfor %}"
    with Tokenizer.from_gguf(byte_level_metadata(template=template)) as tokenizer:
        prompt = tokenizer.encode_chat(chat("user: <|im_end|>", "user: <|im_start|>"))
        start = tokenizer.control_tokens_in("<|im_start|>")[0]
        end = tokenizer.control_tokens_in("<|im_end|>")[0]

    assert prompt.token_ids.count(start) == 1
    assert end not in prompt.token_ids


def test_replies_keep_their_ids_when_the_system_message_is_folded(byte_level_metadata: Metadata) -> None:
    messages = chat("system: S.", "user: A.", "assistant: the", "user: B.")
    with Tokenizer.from_gguf(byte_level_metadata(template=FAMILIES["gemma 2"])) as tokenizer:
        letters = tuple(tokenizer.encode_text(letter).token_ids[0] for letter in "the")
        whole = tokenizer.encode_chat(messages).token_ids
        spliced = tokenizer.encode_chat(messages, {2: letters}).token_ids

    assert len(tokenizer.encode_text("the").token_ids) == 1
    assert len(spliced) == len(whole) + 2


def test_a_refusal_that_no_repair_mends_is_said_in_the_templates_words(byte_level_metadata: Metadata) -> None:
    with (
        Tokenizer.from_gguf(byte_level_metadata(template="{{ raise_exception('Never.') }}")) as tokenizer,
        pytest.raises(TemplateError, match=r"refuses the messages: Never\."),
    ):
        tokenizer.encode_chat(chat("system: S.", "assistant: A.", "assistant: B."))


@pytest.mark.parametrize(
    ("messages", "expected"),
    [
        (chat("user: A."), []),
        (chat("user: A.", "assistant: B.", "user: C."), []),
        (chat("user: A.", "user: B."), [(chat("user: A.\n\nB."), (JOINED,))]),
        (chat("assistant: A."), [(chat("user: ", "assistant: A."), (QUESTION_ADDED,))]),
        (
            chat("user: A.", "assistant: B.", "system: C."),
            [(chat("user: A.", "assistant: B.", "user: C."), (SYSTEM_LATER,))],
        ),
        (chat("system: S.", "user: A."), [(chat("user: S.\n\nA."), (SYSTEM_FOLDED,))]),
        (chat("system:  ", "user: A."), [(chat("user: A."), ())]),
        (chat("system: S."), [(chat("user: S."), (SYSTEM_FOLDED,))]),
        (
            chat("system: S.", "assistant: A."),
            [
                (chat("system: S.", "user: ", "assistant: A."), (QUESTION_ADDED,)),
                (chat("user: S.", "assistant: A."), (SYSTEM_FOLDED,)),
            ],
        ),
    ],
)
def test_repairs_come_with_what_they_change_the_nearest_first(
    messages: list[dict[str, str]], expected: list[Any]
) -> None:
    assert list(chat_repairs(messages)) == expected
