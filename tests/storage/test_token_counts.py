"""What a conversation takes of the window, by the engine's own counts."""

from __future__ import annotations

from inglenook.storage.conversations import Conversations
from inglenook.storage.database import Database
from inglenook.storage.messages import Messages
from inglenook.storage.records import ReplyFigures
from inglenook.storage.token_counts import TurnCount, turn_counts


def ask(db: Database, conversation_id: int, parent: int | None, text: str, reply: str, prompt: int) -> int:
    messages = Messages(db)
    question = messages.add(conversation_id, "user", text, parent_id=parent)
    reply_id = messages.begin_reply(conversation_id, parent_id=question, model="m", sampling={})
    messages.finish_reply(
        reply_id,
        reply,
        list(range(len(reply))),
        finish_reason="stop",
        figures=ReplyFigures(prompt_tokens=prompt),
    )
    return reply_id


def test_turns_of_the_shown_path_come_with_the_engines_counts(db: Database) -> None:
    conversation_id = Conversations(db).create("x")
    first = ask(db, conversation_id, None, "Wie \n geht’s?", "Gut.", 12)
    ask(db, conversation_id, first, "Not shown", "No.", 30)
    shown = ask(db, conversation_id, first, "Warum?", "Darum", 31)

    counts = turn_counts(db, conversation_id)

    assert [(c.question, c.reply_id, c.prompt_tokens, c.reply_tokens) for c in counts] == [
        ("Wie geht’s?", first, 12, 4),
        ("Warum?", shown, 31, 5),
    ]
    assert counts[0].num_bytes == len("Wie \n geht’s?".encode()) + 4


def test_many_wide_token_ids_are_counted(db: Database) -> None:
    conversation_id = Conversations(db).create("x")
    messages = Messages(db)
    question = messages.add(conversation_id, "user", "Q", parent_id=None)
    reply = messages.begin_reply(conversation_id, parent_id=question, model="m", sampling={})
    messages.finish_reply(reply, "long", [5, 70_000, 100_000], finish_reason="stop")

    assert turn_counts(db, conversation_id) == [TurnCount(question, "Q", reply, None, 3, 5)]


def test_a_question_that_got_nothing_is_no_turn(db: Database) -> None:
    conversation_id = Conversations(db).create("x")
    messages = Messages(db)
    question = messages.add(conversation_id, "user", "Q", parent_id=None)
    reply = messages.begin_reply(conversation_id, parent_id=question, model="m", sampling={})
    messages.fail_reply(reply, "", [], error="It broke.")

    assert turn_counts(db, conversation_id) == []
