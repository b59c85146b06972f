"""Pins, archive, folders, trash, titles, and finding a conversation again."""

from __future__ import annotations

from pathlib import Path

import pytest

from inglenook.storage.conversation_search import SearchFilter, search_conversations
from inglenook.storage.conversation_shelf import ConversationShelf
from inglenook.storage.conversations import Conversations
from inglenook.storage.database import Database
from inglenook.storage.errors import InvalidValueError, NotFoundError
from inglenook.storage.forget import forget_documents
from inglenook.storage.message_edits import MessageEdits
from inglenook.storage.messages import Messages


def make(db: Database, title: str, *texts: str) -> int:
    conversation = Conversations(db).create(title)
    parent = None
    for text in texts:
        parent = Messages(db).add(conversation, "user", text, parent_id=parent)
    return conversation


def titles(db: Database, shelf: str = "chats") -> list[str]:
    return [c.title for c in ConversationShelf(db).entries(shelf)]  # type: ignore[arg-type]


def found(db: Database, text: str) -> list[tuple[str, bool]]:
    """Titles, and whether it was the title that was found."""
    return [(hit.title, hit.message_id is None) for hit in search_conversations(db, text)]


def test_pinned_chats_stand_first_and_the_rest_by_activity(db: Database) -> None:
    ids = [make(db, title, "x") for title in "abc"]

    ConversationShelf(db).pin(ids[0], is_pinned=True)
    assert titles(db) == ["a", "c", "b"]
    ConversationShelf(db).pin(ids[0], is_pinned=False)

    assert titles(db) == ["c", "b", "a"]


def test_what_is_put_away_is_found_but_not_listed(db: Database) -> None:
    chat = make(db, "Old tax matters", "the receipt")

    ConversationShelf(db).archive(chat, is_archived=True)

    assert (titles(db), titles(db, "archive")) == ([], ["Old tax matters"])
    (hit,) = search_conversations(db, "receipt")
    assert hit.is_archived


def test_trash_is_emptied_of_what_is_old_and_of_nothing_else(db: Database) -> None:
    ids = [make(db, title, f"secret of {title}") for title in "abc"]
    for conversation in ids[:2]:
        Conversations(db).trash(conversation)
    db.execute(
        "UPDATE conversations SET trashed_at_ms = trashed_at_ms - 31 * 86400000 WHERE id = ?", (ids[0],)
    )

    assert ConversationShelf(db).empty_trash(older_than_days=30) == 1
    assert titles(db, "trash") == ["b"]
    assert found(db, "secret") == [("c", False)]
    assert ConversationShelf(db).empty_trash(only=[ids[1]]) == 1
    assert (titles(db), titles(db, "trash")) == (["c"], [])


def test_no_byte_of_an_emptied_trash_stays_in_the_file(tmp_path: Path) -> None:
    with Database.open(tmp_path / "history.db") as db:
        chat = make(db, "about axolotls", *(f"axolotl {n} " * 300 for n in range(30)))
        Conversations(db).trash(chat)

        assert ConversationShelf(db).empty_trash() == 1

        assert not any(b"axolotl" in file.read_bytes() for file in tmp_path.iterdir())


def test_folders_hold_chats(db: Database) -> None:
    first, second = make(db, "a"), make(db, "b")
    shelf = ConversationShelf(db)

    shelf.put_in_folder([first], "  Work \n 2026 ")
    shelf.put_in_folder([second], "home")

    assert shelf.folders() == ["home", "Work 2026"]
    assert Conversations(db).get(first).folder == "Work 2026"
    shelf.put_in_folder([first], "")
    assert Conversations(db).get(first).folder == ""
    assert shelf.folders() == ["home", "Work 2026"]


def test_a_folder_is_made_empty_renamed_with_what_is_in_it_and_deleted_without_its_chats(
    db: Database,
) -> None:
    chat, other = make(db, "a"), make(db, "b")
    shelf = ConversationShelf(db)
    assert shelf.make_folder("  Tax ") == "Tax"
    shelf.put_in_folder([chat, other], "TAX")
    assert shelf.folders() == ["Tax"]

    assert shelf.rename_folder("Tax", "tax") == "tax"
    assert shelf.rename_folder("tax", "Tax 2026") == "Tax 2026"
    assert Conversations(db).get(chat).folder == "Tax 2026"
    assert sorted(shelf.delete_folder("Tax 2026")) == [chat, other]

    assert shelf.folders() == []
    assert titles(db) == ["b", "a"]


@pytest.mark.parametrize("name", ["", "  \n", "home", "HOME"])
def test_a_folder_without_a_name_or_with_another_s_is_refused(db: Database, name: str) -> None:
    shelf = ConversationShelf(db)
    shelf.make_folder("Home")
    shelf.make_folder("Work")

    with pytest.raises(InvalidValueError):
        shelf.make_folder(name)
    with pytest.raises(InvalidValueError):
        shelf.rename_folder("Work", name)

    assert shelf.folders() == ["Home", "Work"]


def test_nothing_is_moved_when_one_of_many_is_gone(db: Database) -> None:
    chat = make(db, "a")

    with pytest.raises(NotFoundError):
        ConversationShelf(db).put_in_folder([chat, 999], "Home")
    with pytest.raises(NotFoundError):
        ConversationShelf(db).delete_folder("Home")

    assert Conversations(db).get(chat).folder == ""
    assert ConversationShelf(db).folders() == []


@pytest.mark.parametrize(
    ("only", "expected"),
    [
        (SearchFilter(), ["Hedge plan", "Archived", "Pinned", "Asked", "Answered"]),
        (SearchFilter(where="titles"), ["Hedge plan"]),
        (SearchFilter(where="messages"), ["Archived", "Pinned", "Asked", "Answered"]),
        (SearchFilter(author="assistant"), ["Hedge plan", "Answered"]),
        (SearchFilter(where="messages", author="user"), ["Archived", "Pinned", "Asked"]),
        (SearchFilter(kept="archive"), ["Archived"]),
        (SearchFilter(kept="pinned"), ["Pinned"]),
        (SearchFilter(kept="chats", where="messages"), ["Pinned", "Asked", "Answered"]),
        (SearchFilter(folder="Garden"), ["Asked"]),
        (SearchFilter(folder="", where="messages"), ["Archived", "Pinned", "Answered"]),
        (SearchFilter(since_ms=1_000_000), ["Hedge plan", "Archived", "Pinned", "Answered"]),
    ],
)
@pytest.mark.parametrize("text", ["hedge", "he"])
def test_a_search_can_be_confined(db: Database, only: SearchFilter, expected: list[str], text: str) -> None:
    answered = Conversations(db).create("Answered")
    question = Messages(db).add(answered, "user", "Which shrub?", parent_id=None)
    Messages(db).add(answered, "assistant", "A hedge.", parent_id=question)
    asked, pinned, archived = (make(db, title, "a hedge?") for title in ("Asked", "Pinned", "Archived"))
    make(db, "Hedge plan", "nothing")
    shelf = ConversationShelf(db)
    shelf.put_in_folder([asked], "Garden")
    shelf.pin(pinned, is_pinned=True)
    shelf.archive(archived, is_archived=True)
    db.execute("UPDATE messages SET created_at_ms = 5 WHERE conversation_id = ?", (asked,))

    assert [hit.title for hit in search_conversations(db, text, only)] == expected


def test_a_title_of_the_program_never_replaces_the_user_s(db: Database) -> None:
    chat = make(db, "First words")
    shelf = ConversationShelf(db)

    assert shelf.name_by_itself(chat, "A good title")
    Conversations(db).rename(chat, "My title")

    assert not shelf.name_by_itself(chat, "Another")
    assert titles(db) == ["My title"]


@pytest.mark.parametrize(
    ("text", "is_found"),
    [
        ("lighthouse", True),
        ("LIGHT", True),
        ("ghth", True),
        ("keeper lighthouse", True),
        ("lighthouse whale", False),
        ("of", True),
        ("É", True),
        ("灯台", True),
        ("台", True),
        ('"', True),
        ("a*", False),
        ("NEAR(", False),
        ("lighthouse OR whale", False),
        ("-keeper", False),
        ("\x00", False),
        ("text:keeper", False),
        ("   ", False),
    ],
)
def test_messages_are_found_by_parts_of_words_in_any_script_and_no_syntax(
    db: Database, text: str, is_found: bool
) -> None:
    make(db, "Chat", 'The keeper of the Lighthouse said "été" 灯台守.')

    assert bool(found(db, text)) is is_found


def test_titles_come_first_and_each_chat_once(db: Database) -> None:
    make(db, "Recipes", "about bread", "more bread")
    make(db, "Bread", "bread and bread")

    assert found(db, "bread") == [("Bread", True), ("Recipes", False)]


def test_a_snippet_shows_the_words_around_the_hit(db: Database) -> None:
    make(db, "Chat", "word " * 40 + "the needle\nlies here " + "word " * 40)

    (hit,) = search_conversations(db, "needle")

    assert "the needle lies here" in hit.snippet
    assert hit.snippet.startswith("…")
    assert hit.snippet.endswith("…")
    assert len(hit.snippet) <= 125


def test_the_index_follows_edits_deletions_and_replies(db: Database) -> None:
    chat = make(db, "Chat", "alpha")
    question = Messages(db).shown(chat)[-1]
    reply = Messages(db).begin_reply(chat, parent_id=question.id, model="m", sampling={})
    Messages(db).save_reply(reply, "betamax half", [])
    assert found(db, "betamax") == []

    Messages(db).finish_reply(reply, "betamax whole", [], finish_reason="stop")
    assert found(db, "betamax") == [("Chat", False)]
    MessageEdits(db).set_text(reply, "gammaray")
    assert (found(db, "betamax"), found(db, "gammaray")) == ([], [("Chat", False)])
    Messages(db).delete(reply)

    assert found(db, "gammaray") == []
    db.execute("INSERT INTO message_trigrams(message_trigrams, rank) VALUES ('integrity-check', 1)")
    forget_documents(db, [])


def test_an_unknown_chat_cannot_be_moved(db: Database) -> None:
    with pytest.raises(NotFoundError):
        ConversationShelf(db).pin(99, is_pinned=True)
