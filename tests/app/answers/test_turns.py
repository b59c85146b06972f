"""Turns as rows."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from inglenook.app.answers.turns import (
    Ending,
    Turn,
    begin_again,
    begin_turn,
    end_turn,
    open_conversation,
    title_of,
)
from inglenook.storage.conversations import Conversations
from inglenook.storage.database import Database
from inglenook.storage.errors import NotFoundError
from inglenook.storage.messages import Messages


@pytest.fixture
def db() -> Iterator[Database]:
    with Database.in_memory() as database:
        yield database


def begin(db: Database, text: str, conversation_id: int | None = None) -> Turn:
    return begin_turn(
        db, text, conversation_id=conversation_id, document_ids=[3], model="m", sampling={"temperature": 0.0}
    )


def test_a_turn_knows_what_came_before_with_its_token_ids(db: Database) -> None:
    first = begin(db, "One?")
    end_turn(db, first.reply.id, Ending("First.", (1, 2)), [])

    second = begin(db, "Two?", first.conversation.id)

    assert [(m.role, m.text, m.token_ids) for m in second.history] == [
        ("user", "One?", ()),
        ("assistant", "First.", (1, 2)),
    ]
    assert not second.is_new_conversation
    assert second.reply.sampling == {"temperature": 0.0}
    assert open_conversation(db, first.conversation.id).document_ids == (3,)


def test_nothing_of_a_turn_is_saved_when_it_cannot_be_saved_whole(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_arguments: object, **_options: object) -> None:
        raise NotFoundError("no")

    monkeypatch.setattr(Messages, "begin_reply", fail)

    with pytest.raises(NotFoundError):
        begin(db, "One?")

    assert Conversations(db).count() == 0


def test_a_question_cannot_be_written_again(db: Database) -> None:
    turn = begin(db, "One?")

    with pytest.raises(NotFoundError, match="answers no question"):
        begin_again(db, turn.question.id, document_ids=[], model="m", sampling={})


@pytest.mark.parametrize(
    ("question", "title"),
    [
        ("  Why is\n the sky blue? ", "Why is the sky blue?"),
        ("word " * 30, ("word " * 11).strip() + "…"),
        ("x" * 100, "x" * 59 + "…"),
    ],
)
def test_a_title_is_the_beginning_of_the_question(question: str, title: str) -> None:
    assert title_of(question) == title
    assert len(title) <= 60
