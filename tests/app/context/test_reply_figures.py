"""The figures of a reply, in words."""

from __future__ import annotations

from dataclasses import replace

import pytest

from inglenook.app.context.reply_figures import details, figures_line
from inglenook.storage.records import Message

REPLY = Message(
    2, 1, 1, "assistant", "Yes.", "complete", "stop", "", "tiny",
    {"temperature": 0.2, "top_k": 40, "top_p": 0.9, "max_tokens": None, "preset": "precise", "persona": "Editor",
     "system": "Cut.", "context_length": 8192, "backend": "native-cpu"},
    (1, 2, 3), 600, 512, 0.25, 0.024, 7, 0,
)  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({}, "0.25 s to the first word · 42 tokens a second · 512 of 600 tokens from the cache"),
        ({"cached_tokens": 0}, "0.25 s to the first word · 42 tokens a second"),
        ({"tpot_s": None}, "0.25 s to the first word · 512 of 600 tokens from the cache"),
        (
            {"tpot_s": 0.4, "ttft_s": 12.4},
            "12 s to the first word · 2.5 tokens a second · 512 of 600 tokens from the cache",
        ),
        ({"ttft_s": None, "tpot_s": None, "prompt_tokens": None, "cached_tokens": None}, ""),
        ({"tpot_s": 0.0, "ttft_s": None, "cached_tokens": None}, ""),
    ],
)
def test_the_line_says_what_is_known(changes: dict[str, object], line: str) -> None:
    assert figures_line(replace(REPLY, **changes)) == line  # type: ignore[arg-type]


def test_the_details_have_the_values_in_force_and_what_was_counted() -> None:
    rows = dict(details(REPLY))

    assert rows == {
        "Model": "tiny",
        "Persona": "Editor",
        "Instructions": "Cut.",
        "Style of answers": "Precise",
        "Temperature": "0.2",
        "Top k": "40",
        "Top p": "0.9",
        "Longest reply": "no limit",
        "Seed": "7",
        "Window": "8,192 tokens",
        "Back end": "native-cpu",
        "Read": "600 tokens, 512 of them from the cache",
        "Written": "3 tokens",
        "First word": "after 0.25 s",
        "Speed": "42 tokens a second",
        "End": "The model ended it",
    }


def test_a_reply_of_an_older_program_shows_what_there_is() -> None:
    old = replace(REPLY, sampling={}, token_ids=(), prompt_tokens=None, seed=None, ttft_s=None, tpot_s=None)

    assert details(old) == [("Model", "tiny"), ("End", "The model ended it")]


def test_garbled_values_are_left_out() -> None:
    garbled = replace(
        REPLY, sampling={"preset": 3, "persona": ["x"], "temperature": "hot", "context_length": "x"}
    )

    names = [name for name, _ in details(garbled)]
    assert not {"Persona", "Style of answers", "Temperature", "Window"} & set(names)
