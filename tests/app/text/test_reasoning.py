"""A reply parted into thought and answer: every form of tag, streamed and whole, and text that only speaks of tags."""

from __future__ import annotations

import time

import pytest

from inglenook.app.text.reasoning import PAIRS, part_reply
from inglenook.app.text.reply_text import ReplyText


@pytest.mark.parametrize(("begin", "end"), PAIRS)
def test_every_form_of_tags_is_folded_away(begin: str, end: str) -> None:
    parted = part_reply(f"{begin}\n2 and 2 make 4.\n{end}\n\nIt is **4**.")

    assert (parted.thought, parted.answer, parted.is_open) == ("2 and 2 make 4.", "It is **4**.", False)


def test_a_thought_that_the_prompt_began_has_only_its_end() -> None:
    parted = part_reply("2 and 2.\n</think>\n\nIt is 4.", end_tag="</think>")

    assert (parted.thought, parted.answer) == ("2 and 2.", "It is 4.")


def test_a_thought_whose_beginning_nobody_noted_is_found_by_its_end_on_a_line_of_its_own() -> None:
    assert part_reply("2 and 2.\n</think>\nIt is 4.").answer == "It is 4."


def test_a_thought_that_never_ends_is_kept_and_said_to_be_open() -> None:
    parted = part_reply("<think>so it is 4")

    assert (parted.thought, parted.answer, parted.is_open) == ("so it is 4", "", True)


@pytest.mark.parametrize(
    "text",
    [
        "Explain what `<think>` means: it opens a thought, `</think>` ends it.",
        "The tag <think> opens and </think> ends it.",
        "Write this:\n\n```xml\n<think>\nx\n</think>\n```\n\nDone.",
        "```\n</think>\n```",
        "A line\n<think>\nthat nothing ends",
        "<channel>\n<smirk> waffles!",
        "",
        "<",
        "a < b and [THIN ice]",
    ],
)
def test_what_only_speaks_of_tags_is_text_as_it_stands(text: str) -> None:
    parted = part_reply(text)

    assert (parted.answer, parted.has_thought) == (text, False)


def test_an_empty_thought_is_no_thought() -> None:
    parted = part_reply("<think>\n\n</think>\n\nHello.")

    assert (parted.answer, parted.has_thought) == ("Hello.", False)


def test_thoughts_between_answers_are_gathered() -> None:
    parted = part_reply("<think>a</think>One.\n\n<think>\nb\n</think>\nTwo.")

    assert parted.thought.split() == ["a", "b"]
    assert parted.answer == "One.\n\nTwo."


def test_ranges_of_the_reply_are_found_in_the_answer() -> None:
    text = "<think>It is 4.</think>\n\nIt is 4. Sure."
    start = text.rindex("It is")

    parted = part_reply(text)

    assert parted.answer_range(start, start + 8) == (0, 8)
    assert parted.answer_range(7, 15) is None


@pytest.mark.parametrize(
    ("text", "end_tag"),
    [
        ("<think>\nfirst *this*\n\nthen that\n</think>\n\nThe answer is `<think>`.\n\n- a\n- b", ""),
        ("first this\n</think>\nThe answer", "</think>"),
        ("[THINK]x[/THINK]y", ""),
        ("Just text with <b> and </think> in it.", ""),
        ("  <thinking>only a thought", ""),
    ],
)
def test_a_streamed_reply_is_shown_like_the_stored_one_and_no_tag_is_ever_seen(
    text: str, end_tag: str
) -> None:
    whole = ReplyText(end_tag=end_tag)
    whole.take(text, 10_000, is_streaming=False)
    grown = ReplyText(end_tag=end_tag)
    seen = []

    for size in range(1, len(text) + 1):
        grown.take(text[:size], 10_000, is_streaming=True)
        seen.append(grown.thought.text)
    grown.take(text, 10_000, is_streaming=False)

    assert (grown.thought.text, grown.answer.text) == (whole.thought.text, whole.answer.text)
    assert not [part for part in seen if part.rstrip().endswith(("<", "</", "</thi", "[/T", "</think"))]


def test_a_long_reply_is_read_in_slices() -> None:
    reply = ReplyText()
    text = "<think>" + "thinking hard. " * 1_000 + "</think>" + "Answer. " * 1_000

    slices = 1
    while reply.take(text, 4_000, is_streaming=False):
        slices += 1

    assert slices == 4
    assert (len(reply.thought.text), len(reply.answer.text)) == (14_999, 8_000)


def test_hostile_tags_take_no_time() -> None:
    began = time.process_time()

    for text in (
        "<think>" * 20_000,
        "\n<think>" * 20_000,
        "</think>\n" * 20_000,
        "<think>a</think>\n" * 5_000,
    ):
        part_reply(text)

    assert time.process_time() - began < 2


def test_an_unfolded_thought_stands_first_behind_a_bar() -> None:
    reply = ReplyText()
    reply.take("<think>why</think>because", 1_000, is_streaming=False)

    assert (reply.num_parts, reply.elements(0)[0].quote) == (1, 0)
    reply.is_unfolded = True
    assert (reply.num_parts, reply.elements(0)[0].quote, reply.elements(1)[0].quote) == (2, 1, 0)
