"""Texts changed in place, turns taken out, and conversations forked."""

from __future__ import annotations

import random

import pytest

from inglenook.storage.conversations import Conversations
from inglenook.storage.database import Database
from inglenook.storage.errors import InvalidValueError, NotFoundError
from inglenook.storage.message_edits import MessageEdits
from inglenook.storage.messages import Messages


@pytest.fixture
def conversation(db: Database) -> int:
    return Conversations(db).create("Origin", model="m", options={"document_ids": [7]})


def say(db: Database, conversation: int, *texts: str, parent: int | None = None) -> list[int]:
    """Add messages below each other, questions and replies in turn."""
    messages, ids = Messages(db), []
    for number, text in enumerate(texts):
        if number % 2 == 0:
            parent = messages.add(conversation, "user", text, parent_id=parent)
        else:
            parent = messages.begin_reply(conversation, parent_id=parent, model="m", sampling={"top_k": 3})
            messages.finish_reply(parent, text, [1, 2], finish_reason="stop")
        ids.append(parent)
    return ids


def shown(db: Database, conversation: int) -> list[str]:
    return [message.text for message in Messages(db).shown(conversation)]


def test_a_changed_reply_keeps_what_follows_and_loses_the_old_token_ids(
    db: Database, conversation: int
) -> None:
    _, reply, _, _ = say(db, conversation, "a", "b", "c", "d")

    MessageEdits(db).set_text(reply, "B")

    assert shown(db, conversation) == ["a", "B", "c", "d"]
    assert Messages(db).get(reply).token_ids == ()


def test_a_reply_that_is_being_written_keeps_its_text(db: Database, conversation: int) -> None:
    question = Messages(db).add(conversation, "user", "a", parent_id=None)
    reply = Messages(db).begin_reply(conversation, parent_id=question, model="m", sampling={})

    with pytest.raises(InvalidValueError, match="still being written"):
        MessageEdits(db).set_text(reply, "x")


@pytest.mark.parametrize("of", [0, 1])
@pytest.mark.parametrize("turn", [0, 1, 2])
def test_a_turn_taken_out_leaves_the_others_in_their_order(
    db: Database, conversation: int, turn: int, of: int
) -> None:
    texts = ["a", "b", "c", "d", "e", "f"]
    ids = say(db, conversation, *texts)

    MessageEdits(db).delete_turn(ids[2 * turn + of])

    assert shown(db, conversation) == texts[: 2 * turn] + texts[2 * turn + 2 :]


def test_other_versions_of_a_turn_go_with_it_and_what_followed_any_of_them_stays(
    db: Database, conversation: int
) -> None:
    question, first, later, _ = say(db, conversation, "q", "r1", "after r1", "x")
    second = Messages(db).begin_reply(conversation, parent_id=question, model="m", sampling={})
    Messages(db).finish_reply(second, "r2", [], finish_reason="stop")

    MessageEdits(db).delete_turn(second)

    # Below the version that was shown nothing followed, so the newest that is left is shown.
    assert shown(db, conversation) == ["after r1", "x"]
    with pytest.raises(NotFoundError):
        Messages(db).get(first)
    assert Messages(db).get(later).parent_id is None


def test_a_fork_is_a_copy_of_the_path_that_lives_alone(db: Database, conversation: int) -> None:
    _, _, _, last = say(db, conversation, "a", "b", "c", "d")
    _, other = say(db, conversation, "c2", "d2", parent=Messages(db).shown(conversation)[1].id)

    fork = MessageEdits(db).fork(last, "Fork")

    Messages(db).delete(other)
    assert shown(db, fork) == ["a", "b", "c", "d"]
    copied = Messages(db).shown(fork)[1]
    assert (copied.sampling, copied.token_ids, copied.model) == ({"top_k": 3}, (1, 2), "m")
    assert Conversations(db).get(fork).options == {"document_ids": [7]}
    Conversations(db).delete(conversation)
    assert shown(db, fork) == ["a", "b", "c", "d"]
    with pytest.raises(NotFoundError):
        MessageEdits(db).fork(last, "Fork")


def test_any_turns_taken_out_of_any_tree_leave_a_sound_one(db: Database, conversation: int) -> None:
    choose = random.Random(3)
    messages, edits = Messages(db), MessageEdits(db)
    ids = say(db, conversation, "0", "1")
    for number in range(2, 60):
        parent = choose.choice(ids)
        if messages.get(parent).role == "user":
            reply = messages.begin_reply(conversation, parent_id=parent, model="m", sampling={})
            messages.finish_reply(reply, str(number), [], finish_reason="stop")
            ids.append(reply)
        else:
            ids.append(messages.add(conversation, "user", str(number), parent_id=parent))

    while ids:
        edits.delete_turn(choose.choice(ids))
        ids = [
            row[0] for row in db.rows("SELECT id FROM messages WHERE conversation_id = ?", (conversation,))
        ]
        roles = [message.role for message in messages.shown(conversation)]
        assert roles == ["user", "assistant"] * (len(roles) // 2) + ["user"] * (len(roles) % 2)
        assert bool(roles) == bool(ids)
        assert all((m.parent_id or 0) < m.id for m in map(messages.get, ids))
    assert db.rows("PRAGMA foreign_key_check") == []
