"""The tree of messages, and replies that are saved as they come."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inglenook.storage.conversations import Conversations
from inglenook.storage.database import Database
from inglenook.storage.errors import InvalidValueError, NotFoundError
from inglenook.storage.message_edits import MessageEdits
from inglenook.storage.messages import Messages
from inglenook.storage.records import ReplyFigures


@pytest.fixture
def conversation(db: Database) -> int:
    return Conversations(db).create()


def test_finished_reply_keeps_what_the_engine_said(db: Database, conversation: int) -> None:
    messages = Messages(db)
    question = messages.add(conversation, "user", "Why?", parent_id=None)
    reply = messages.begin_reply(
        conversation, parent_id=question, model="smol", sampling={"temperature": 0.7}
    )

    messages.save_reply(reply, "Bec", [1, 2])
    part = messages.get(reply)
    figures = ReplyFigures(prompt_tokens=9, cached_tokens=4, ttft_s=0.25, tpot_s=0.125, seed=2**63 - 1)
    messages.finish_reply(reply, "Because.", [1, 2, 151_000], finish_reason="stop", figures=figures)

    got = messages.get(reply)
    assert (part.text, part.status, part.token_ids) == ("Bec", "streaming", (1, 2))
    assert (got.text, got.status, got.finish_reason, got.token_ids) == (
        "Because.",
        "complete",
        "stop",
        (1, 2, 151_000),
    )
    assert (got.model, got.sampling) == ("smol", {"temperature": 0.7})
    assert (got.prompt_tokens, got.cached_tokens, got.ttft_s, got.tpot_s, got.seed) == (
        9,
        4,
        0.25,
        0.125,
        2**63 - 1,
    )


def test_how_long_a_reply_was_thought_over_is_kept_and_forked(db: Database, conversation: int) -> None:
    messages = Messages(db)
    reply = messages.begin_reply(conversation, parent_id=None, model="", sampling={})
    messages.finish_reply(reply, "so </think> 4", [], finish_reason="stop")

    messages.set_reasoning(reply, seconds=2.5, end_tag="</think>")

    copy = messages.shown(MessageEdits(db).fork(reply, "Fork"))[0]
    assert [(m.reasoning_s, m.reasoning_end) for m in (messages.get(reply), copy)] == [(2.5, "</think>")] * 2


def test_late_part_does_not_change_a_reply_that_has_ended(db: Database, conversation: int) -> None:
    messages = Messages(db)
    reply = messages.begin_reply(conversation, parent_id=None, model="", sampling={})
    messages.finish_reply(reply, "whole", [1], finish_reason="stop")

    messages.save_reply(reply, "part", [])

    assert messages.get(reply).text == "whole"


def test_failed_reply_keeps_its_part_and_the_reason(db: Database, conversation: int) -> None:
    messages = Messages(db)
    reply = messages.begin_reply(conversation, parent_id=None, model="", sampling={})

    messages.fail_reply(reply, "half", [5], error="The engine ended.")

    got = messages.get(reply)
    assert (got.text, got.status, got.finish_reason, got.error) == (
        "half",
        "failed",
        "error",
        "The engine ended.",
    )


def test_unfinished_replies_are_marked_once(db: Database, conversation: int) -> None:
    messages = Messages(db)
    reply = messages.begin_reply(conversation, parent_id=None, model="", sampling={})
    messages.save_reply(reply, "half", [5])

    marked = messages.mark_interrupted(), messages.mark_interrupted()

    assert marked == (1, 0)
    assert (messages.get(reply).text, messages.get(reply).status) == ("half", "interrupted")


def test_second_try_is_shown_and_the_first_is_kept(db: Database, conversation: int) -> None:
    messages = Messages(db)
    question = messages.add(conversation, "user", "q", parent_id=None)
    first = messages.add(conversation, "assistant", "first", parent_id=question)
    after_first = messages.add(conversation, "user", "more", parent_id=first)

    second = messages.add(conversation, "assistant", "second", parent_id=question)
    shown = [m.id for m in messages.shown(conversation)]
    places = [(m.branch, m.num_branches) for m in messages.shown(conversation)]
    messages.show(first)

    assert shown == [question, second]
    assert places == [(0, 1), (1, 2)]
    assert [m.id for m in messages.shown(conversation)] == [question, first, after_first]
    assert messages.branches(second) == [first, second]
    assert [m.id for m in messages.path_to(second)] == [question, second]


def test_edited_first_question_is_a_branch_too(db: Database, conversation: int) -> None:
    messages = Messages(db)
    other = Messages(db).add(Conversations(db).create(), "user", "elsewhere", parent_id=None)
    first = messages.add(conversation, "user", "q", parent_id=None)
    edited = messages.add(conversation, "user", "q edited", parent_id=None)

    assert messages.branches(first) == [first, edited]
    assert [(m.id, m.branch, m.num_branches) for m in messages.shown(conversation)] == [(edited, 1, 2)]
    messages.show(first)
    assert [m.id for m in messages.shown(conversation)] == [first]
    assert messages.branches(other) == [other]


def test_deleting_a_branch_shows_its_sibling(db: Database, conversation: int) -> None:
    messages = Messages(db)
    question = messages.add(conversation, "user", "q", parent_id=None)
    first = messages.add(conversation, "assistant", "a", parent_id=question)
    second = messages.add(conversation, "assistant", "b", parent_id=question)
    messages.add(conversation, "user", "below", parent_id=second)

    messages.delete(second)

    assert [m.id for m in messages.shown(conversation)] == [question, first]
    assert db.check() == []


@pytest.mark.parametrize(
    "text", ["", "a\0b", "\ud800 alone", "\ud83d\ude00", "x" * 10_000_000, "\u202eabc\r\n"]
)
def test_any_text_is_kept(db: Database, conversation: int, text: str) -> None:
    message = Messages(db).add(conversation, "user", text, parent_id=None)

    expected = text.replace("\ud800", "\ufffd").replace("\ud83d\ude00", "\N{GRINNING FACE}")
    assert Messages(db).get(message).text == expected


def test_garbled_columns_do_not_hide_a_conversation(db: Database, conversation: int) -> None:
    message = Messages(db).add(conversation, "user", "seen", parent_id=None)
    db.execute("UPDATE messages SET sampling = '{', token_ids = x'09ff', status = 'odd', role = 'tool'")
    db.execute("UPDATE messages SET active_child_id = id")

    got = Messages(db).shown(conversation)

    assert [(m.id, m.text, m.sampling, m.token_ids, m.status) for m in got] == [
        (message, "seen", {}, (), "odd")
    ]


def test_wrong_parents_and_roles_are_refused(db: Database, conversation: int) -> None:
    messages = Messages(db)
    elsewhere = messages.add(Conversations(db).create(), "user", "x", parent_id=None)

    with pytest.raises(NotFoundError, match=f"no message {elsewhere} in conversation {conversation}"):
        messages.add(conversation, "user", "x", parent_id=elsewhere)
    with pytest.raises(NotFoundError, match="no conversation 999"):
        messages.add(999, "user", "x", parent_id=None)
    with pytest.raises(InvalidValueError, match="one of system, user, assistant, got 'tool'"):
        messages.add(conversation, "tool", "x", parent_id=None)  # type: ignore[arg-type]
    with pytest.raises(NotFoundError):
        messages.finish_reply(999, "", [], finish_reason="stop")
    with pytest.raises(NotFoundError):
        messages.show(999)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**32), st.lists(st.sampled_from(["add", "add", "add", "show", "delete"]), max_size=30))
def test_shown_path_is_what_a_plain_tree_says(seed: int, actions: list[str]) -> None:
    random_ = random.Random(seed)
    parents: dict[int, int | None] = {}
    active: dict[int | None, int] = {}

    with Database.in_memory() as db:
        conversation, messages = Conversations(db).create(), Messages(db)
        for action in actions:
            if action == "add":
                parent = random_.choice([None, *parents])
                made = messages.add(conversation, "user", "", parent_id=parent)
                parents[made], active[parent] = parent, made
            elif parents and action == "show":
                one: int | None = random_.choice(list(parents))
                messages.show(one or 0)
                while one is not None:
                    active[parents[one]] = one
                    one = parents[one]
            elif parents:
                gone = {random_.choice(list(parents))}
                messages.delete(next(iter(gone)))
                for child, parent in sorted(parents.items()):
                    if parent in gone:
                        gone.add(child)
                parents = {child: parent for child, parent in parents.items() if child not in gone}
                active = {parent: child for parent, child in active.items() if child not in gone}
        expected, at = [], None
        while children := [child for child, parent in parents.items() if parent == at]:
            at = active.get(at, max(children))
            expected.append(at)

        assert [m.id for m in messages.shown(conversation)] == expected
        assert db.check() == []
