"""The list of conversations."""

from __future__ import annotations

import pytest

from inglenook.storage.conversations import Conversations
from inglenook.storage.database import Database
from inglenook.storage.errors import NotFoundError
from inglenook.storage.messages import Messages


def test_last_spoken_in_comes_first_whatever_the_clock_says(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    times = iter([5000, 10, 9, 3000, 1, 0])
    monkeypatch.setattr("inglenook.storage.conversations.now_ms", lambda: next(times))
    monkeypatch.setattr("inglenook.storage.messages.now_ms", lambda: next(times))
    conversations = Conversations(db)

    first, second, third = (conversations.create(title) for title in ("first", "second", "third"))
    message = Messages(db).add(first, "user", "hello", parent_id=None)
    fourth = conversations.create("fourth")

    assert [c.id for c in conversations.entries()] == [fourth, first, third, second]
    Messages(db).delete(message)
    assert conversations.entries(limit=1)[0].id == fourth


def test_fields_come_back(db: Database) -> None:
    conversations = Conversations(db)
    one = conversations.create("Titel \ud83d\ude00 \ud800", model="m", options={"temperature": 0.5})

    conversations.rename(one, "新しい題")
    conversations.set_model(one, "n")
    conversations.set_options(one, {"a": [1]})

    got = conversations.get(one)
    assert (got.title, got.model, got.options, got.trashed_at_ms) == ("新しい題", "n", {"a": [1]}, None)


def test_trash_hides_and_gives_back(db: Database) -> None:
    conversations = Conversations(db)
    one, two = conversations.create(), conversations.create()

    conversations.trash(one)
    hidden = [c.id for c in conversations.entries()], [c.id for c in conversations.entries(trashed=True)]
    conversations.restore(one)

    assert hidden == ([two], [one])
    assert (conversations.count(), conversations.count(trashed=True)) == (2, 0)


def test_long_conversation_is_deleted_whole(db: Database) -> None:
    conversations, parent = Conversations(db), None
    one, other = conversations.create(), conversations.create()
    kept = Messages(db).add(other, "user", "kept", parent_id=None)
    with db.atomic():
        for _ in range(1500):
            parent = Messages(db).add(one, "user", "x", parent_id=parent)

    conversations.delete(one)

    assert db.rows("SELECT id FROM messages") == [(kept,)]
    assert db.check() == []


def test_deleting_twice_is_fine_and_missing_ones_are_named(db: Database) -> None:
    conversations = Conversations(db)
    one = conversations.create()
    conversations.delete(one)
    conversations.delete(one)

    with pytest.raises(NotFoundError, match=f"no conversation {one}"):
        conversations.get(one)
    with pytest.raises(NotFoundError):
        conversations.rename(one, "x")


def test_garbled_options_do_not_hide_a_conversation(db: Database) -> None:
    one = Conversations(db).create()
    db.execute("UPDATE conversations SET options = '[[['")

    assert Conversations(db).get(one).options == {}
