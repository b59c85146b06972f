"""What a request and the options of a load refuse: by name, with the value and what is allowed."""

from __future__ import annotations

from typing import Any

import pytest

from inglenook.engine.errors import InvalidRequestError
from inglenook.engine.request import LoadOptions, Request

ASKED = {"role": "user", "content": "hello"}


def chat(*messages: Any, **more: Any) -> Request:
    return Request(messages=messages, **more)


@pytest.mark.parametrize(
    "part",
    [
        [{"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}],
        [{"type": "text", "text": "hello"}],
        None,
        b"hello",
        7,
    ],
)
def test_a_part_that_is_no_text_is_refused_and_no_placeholder_stands_for_it(part: Any) -> None:
    with pytest.raises(
        InvalidRequestError, match=f"text content, got role 'user' and {type(part).__name__} content"
    ):
        chat({"role": "user", "content": part})


@pytest.mark.parametrize("key", ["image", "images", "tool_calls", "name", "reasoning_content"])
def test_what_a_message_brings_along_and_we_do_not_read_is_refused_by_name(key: str) -> None:
    with pytest.raises(InvalidRequestError, match=rf"role and content and nothing else, got \['{key}'\]"):
        chat(ASKED | {key: "x"})


@pytest.mark.parametrize("role", ["tool", "developer", "", None, 3])
def test_an_unknown_role_is_refused(role: Any) -> None:
    with pytest.raises(InvalidRequestError, match="role \\(system, user or assistant\\)"):
        chat({"role": role, "content": "hello"})


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"pinned": (1,)}, "pinned must be indices of the 1 messages, got 1"),
        ({"pinned": (-1,)}, "pinned must be indices of the 1 messages, got -1"),
        ({"pinned": 0}, "pinned must be a list, got 0"),
        ({"reply_token_ids": {7: (9,)}}, "reply_token_ids must be indices of the 1 messages, got 7"),
        ({"reply_token_ids": [(9,)]}, "reply_token_ids must be a dictionary"),
        ({"priority": 10}, "priority must be from 0 to 9, got 10"),
        ({"overflow": "middle"}, "overflow must be refuse or drop_oldest, got 'middle'"),
        ({"sampling": {"temperature": 1}}, "sampling must be SamplingParams"),
        ({"prompt": "hello"}, "exactly one of messages, prompt, prompt_token_ids; got messages, prompt"),
    ],
)
def test_a_field_out_of_range_is_named_with_value_and_range(more: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidRequestError, match=message):
        chat(ASKED, **more)


def test_indices_without_messages_are_refused() -> None:
    with pytest.raises(InvalidRequestError, match="pinned must be"):
        Request(prompt="hello", pinned=(0,))


def test_a_message_that_is_no_dictionary_is_refused() -> None:
    with pytest.raises(
        InvalidRequestError, match="a message must be a dictionary with role and content, got 'hello'"
    ):
        chat("hello")


def test_a_long_value_is_quoted_in_part() -> None:
    with pytest.raises(InvalidRequestError) as caught:
        chat("x" * 10_000)

    assert len(str(caught.value)) < 200


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"kv_dtype": "q4"},
            "kv_dtype must be None, float32, float16, bfloat16, int8, float8_e4m3fn, got 'q4'",
        ),
        ({"speculation": 1}, "speculation must be True or False, got 1"),
        ({"backend": None}, "backend must be a name, got None"),
        ({"context_length": 0}, "context_length must be a whole number from 1"),
        ({"max_step_tokens": 65_537}, "max_step_tokens must be a whole number from 1 to 65536, got 65537"),
    ],
)
def test_options_of_a_load_are_checked_alike(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidRequestError, match=message):
        LoadOptions(**options)
