"""Everything fits into the context, and nothing is left out silently."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from passages import passage

from inglenook.app.answers.prompts import (
    MAX_PASSAGES,
    PastMessage,
    Room,
    WholeDocument,
    build_prompt,
    dropped_notice,
    place_text,
)
from inglenook.app.answers.token_estimate import TokenEstimate
from inglenook.storage.parsing.document import ParsedPage
from inglenook.storage.records import Place


def count(text: str) -> int:
    """A tokenizer of words."""
    return len(text.split())


ROOM = Room(context_length=400, reply_tokens=100)


def history(turns: int, words: int = 10) -> list[PastMessage]:
    return [
        PastMessage(role, f"{role}{turn} " + "word " * words)
        for turn in range(turns)
        for role in ("user", "assistant")
    ]


def test_a_question_alone_is_sent_as_it_is() -> None:
    prompt = build_prompt("What is it?", room=ROOM, count=count)

    assert prompt.messages == ({"role": "user", "content": "What is it?"},)
    assert prompt.notices == ()


def test_all_turns_are_given_to_the_engine_with_the_ids_of_their_replies() -> None:
    past = [PastMessage("user", "a"), PastMessage("assistant", "b", (7, 8))]

    prompt = build_prompt("c", room=ROOM, count=count, history=past, system="Be brief.")

    assert [message["content"] for message in prompt.messages] == ["Be brief.", "a", "b", "c"]
    assert prompt.reply_token_ids == {2: (7, 8)}
    assert prompt.pinned == ()
    assert prompt.num_turns_among([1, 2]) == 1


def test_turns_that_could_never_fit_are_not_even_counted() -> None:
    prompt = build_prompt("Now?", room=ROOM, count=count, history=history(100, words=100))

    assert prompt.num_dropped_turns == 100 - (len(prompt.messages) - 1) // 2
    assert 0 < len(prompt.messages) < 20
    assert "user99" in prompt.messages[-3]["content"]


def test_what_was_left_out_is_a_sentence() -> None:
    assert dropped_notice(1).startswith("The earliest question and its reply were left out, because")
    assert dropped_notice(3).startswith("The earliest 3 questions and their replies were left out, because")


def test_turns_without_a_reply_are_not_sent() -> None:
    past = [PastMessage("user", "a"), PastMessage("assistant", " "), PastMessage("user", "b")]

    prompt = build_prompt("c", room=ROOM, count=count, history=past)

    assert [message["content"] for message in prompt.messages] == ["c"]


def test_whole_documents_begin_the_first_message_with_page_marks() -> None:
    pages = (ParsedPage(index=0, label="iv", text="First."), ParsedPage(index=1, label="2", text="Second."))

    prompt = build_prompt(
        "Which?", room=ROOM, count=count, history=history(1), whole=[WholeDocument(1, "a.pdf", pages)]
    )

    assert prompt.pinned == (0,)
    first, last = prompt.messages[0]["content"], prompt.messages[-1]["content"]
    assert "=== a.pdf ===\n\n[page 1 (iv) of 2]\nFirst.\n\n[page 2 of 2]\nSecond." in first
    assert "user0" in first
    assert last == "Which?"


def test_lines_mark_a_text_without_pages() -> None:
    pages = (ParsedPage(index=0, text="First.", first_line=1, last_line=40),)

    prompt = build_prompt("Which?", room=ROOM, count=count, whole=[WholeDocument(1, "a.md", pages)])

    assert "[lines 1–40]\nFirst." in prompt.messages[0]["content"]


def test_passages_stand_before_the_question_with_their_place() -> None:
    prompt = build_prompt("How high?", room=ROOM, count=count, passages=[passage("It is 34 m high.", page=3)])

    text = prompt.messages[-1]["content"]
    assert "[document1.pdf, p. 4 of 9]\nIt is 34 m high." in text
    assert text.endswith("Question: How high?")


def test_passages_that_do_not_fit_are_told() -> None:
    passages = [passage("word " * 100, page=page) for page in range(5)]

    prompt = build_prompt("How high?", room=ROOM, count=count, passages=passages)

    assert len(prompt.passages) == 1
    assert prompt.notices[0].startswith("Only 1 of 5 passages fit")


def test_more_passages_than_a_small_model_can_use_are_left_out_without_a_word() -> None:
    passages = [passage("word", page=page) for page in range(2 * MAX_PASSAGES)]

    prompt = build_prompt("How?", room=ROOM, count=count, passages=passages)

    assert len(prompt.passages) == MAX_PASSAGES
    assert prompt.notices == ()


@pytest.mark.parametrize(
    ("place", "num_pages", "words"),
    [
        (Place(5, None, 0, 1), 9, "p. 6 of 9"),
        (Place(5, "6", 0, 1), 0, "p. 6"),
        (Place(5, "iv", 0, 1), 9, "p. iv (6 of 9)"),
        (Place(0, None, 0, 1, 3, 3), 1, "line 3"),
        (Place(0, None, 0, 1, 3, 7), 1, "lines 3–7"),
    ],
)
def test_a_place_is_said_as_people_cite_it(place: Place, num_pages: int, words: str) -> None:
    assert place_text(place, num_pages) == words


def test_the_reply_has_room_by_default_and_never_more_than_half() -> None:
    assert Room.of(512) == Room(512, 128)
    assert Room.of(100_000) == Room(100_000, 1024)
    assert Room.of(1000, 900) == Room(1000, 500)


def test_documents_go_in_whole_up_to_a_length_that_is_read_in_time() -> None:
    assert Room.of(2048).whole_tokens == round(0.6 * 1536)
    assert Room.of(100_000).whole_tokens == 3000


@given(st.integers(60, 2000), st.lists(st.integers(1, 300), max_size=8))
def test_passages_fit_whenever_the_question_does(context: int, sizes: list[int]) -> None:
    room = Room.of(context)
    passages = [passage("word " * size, page=page) for page, size in enumerate(sizes)]

    prompt = build_prompt("Why?", room=room, count=count, passages=passages)

    used = sum(count(message["content"]) for message in prompt.messages)
    head = 40 if prompt.passages else 0
    assert used <= max(room.prompt_tokens, count("Why?") + head)
    assert prompt.messages[-1]["content"].endswith("Why?")


def test_the_estimate_learns_from_what_the_engine_counted() -> None:
    estimate = TokenEstimate()
    before = estimate.count("x" * 3000)

    estimate.observe(num_bytes=40_000, num_tokens=10_000)
    assert estimate.count("x" * 3000) < before
    estimate.lower()
    estimate.lower()

    assert estimate.count("x" * 3000) > before
    assert estimate.count("") == 1
