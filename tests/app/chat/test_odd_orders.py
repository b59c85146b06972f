"""What people do in orders that nobody thinks of: while a reply is written, while a model loads, in two chats at once."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from window_desk import WindowDesk


def begin(desk: WindowDesk, question: str, words: str = "Once") -> int:
    """Ask, let the reply begin, and return the chat's id."""
    count = len(desk.client.requests)
    desk.send(question)
    desk.qtbot.waitUntil(lambda: len(desk.client.requests) == count + 1)
    desk.client.requests[-1].say(words, 1)
    desk.qtbot.waitUntil(lambda: bool(desk.messages) and desk.messages[-1].text == words)
    chat = desk.join.chats.conversation_id
    assert chat is not None
    return chat


def do(desk: WindowDesk, action: str) -> None:
    desk.window.actions_by_name[action].trigger()


def open_chat(desk: WindowDesk, chat: int) -> None:
    desk.window.sidebar.chats.activated.emit(chat)
    desk.qtbot.waitUntil(lambda: desk.join.chats.conversation_id == chat)


def stored(desk: WindowDesk) -> list[tuple[str, str, str]]:
    found: list[list[tuple[str, str, str]]] = []
    query = "SELECT role, text, status FROM messages ORDER BY id"
    desk.application.tasks.read(lambda db: [tuple(row) for row in db.rows(query)], found.append)
    desk.qtbot.waitUntil(lambda: bool(found))
    return found[0]


def test_a_chat_deleted_while_it_is_answered_with_one_waiting_is_quiet_and_comes_back_whole(
    desk: WindowDesk,
) -> None:
    chat = begin(desk, "Long?")
    desk.send("Waits")
    asked = desk.client.requests[-1]

    do(desk, "delete_chat")
    assert asked.is_cancelled
    asked.finish("cancelled")
    desk.qtbot.waitUntil(lambda: desk.titles == [])
    assert desk.window.chat.queue.isHidden()
    assert len(desk.client.requests) == 1
    desk.window.banner.button.click()
    desk.qtbot.waitUntil(lambda: desk.join.chats.conversation_id == chat)

    desk.qtbot.waitUntil(lambda: desk.texts == ["Long?", "Once"])
    assert desk.messages[-1].state == "stopped"
    assert len(desk.window.chat.queue.chips) == 2
    assert desk.window.chat.queue.is_paused


def test_taking_a_chat_back_while_another_is_answered_disturbs_neither(desk: WindowDesk) -> None:
    desk.ask("First?", "1")
    first = desk.join.chats.conversation_id
    do(desk, "delete_chat")
    desk.qtbot.waitUntil(lambda: desk.titles == [])
    undo = desk.window.banner.button
    second = begin(desk, "Second?")

    undo.click()
    desk.qtbot.waitUntil(lambda: desk.join.chats.conversation_id == first and desk.texts == ["First?", "1"])
    assert not desk.window.chat.composer.is_streaming
    desk.client.requests[-1].say(" more", 2)
    open_chat(desk, second)
    desk.qtbot.waitUntil(lambda: desk.texts == ["Second?", "Once more"])
    desk.client.requests[-1].finish()

    desk.qtbot.waitUntil(lambda: desk.messages[-1].state == "complete")


def test_stop_pressed_again_and_again_stops_once_and_the_next_question_is_asked(desk: WindowDesk) -> None:
    begin(desk, "Long?")
    edit = desk.window.chat.composer.edit
    for _ in range(4):
        QTest.keyClick(edit, Qt.Key.Key_Escape)
    desk.client.requests[-1].finish("cancelled")
    desk.qtbot.waitUntil(lambda: desk.messages[-1].state == "stopped")

    desk.ask("Short?", "Yes.")

    assert desk.texts == ["Long?", "Once", "Short?", "Yes."]


def test_what_is_asked_after_stop_is_asked_as_soon_as_the_engine_has_let_go(desk: WindowDesk) -> None:
    begin(desk, "Long?")
    QTest.keyClick(desk.window.chat.composer.edit, Qt.Key.Key_Escape)
    desk.send("Rather this.")
    assert len(desk.client.requests) == 1

    desk.client.requests[-1].finish("cancelled")
    desk.qtbot.waitUntil(lambda: len(desk.client.requests) == 2)

    assert desk.client.requests[-1].what.messages[-1]["content"] == "Rather this."
    assert not desk.window.chat.queue.is_paused


def test_every_action_on_a_turn_while_a_reply_is_written_is_done_or_says_why_not(desk: WindowDesk) -> None:
    desk.ask("First?", "1")
    begin(desk, "Second?")
    view = desk.window.chat.view
    for row in range(4):
        for name in ("edit", "again", "previous", "next", "continue", "delete_turn", "copy", "copy_text"):
            view.act_on(desk.messages[row].id, name)  # type: ignore[arg-type]
    desk.client.requests[-1].say(" more", 2)
    desk.client.requests[-1].finish()

    desk.qtbot.waitUntil(lambda: desk.messages[-1].state == "complete")
    assert desk.texts == ["First?", "1", "Second?", "Once more"]
    assert len(desk.client.requests) == 2
    assert stored(desk)[-1][1:] == ("Once more", "complete")


def test_a_fork_of_a_turn_whose_reply_is_being_written_lives_alone(desk: WindowDesk) -> None:
    original = begin(desk, "Long?")
    desk.window.chat.view.act_on(desk.messages[-1].id, "fork")
    desk.qtbot.waitUntil(lambda: desk.join.chats.conversation_id != original)
    desk.client.requests[-1].say(" more", 2)
    desk.client.requests[-1].finish()

    open_chat(desk, original)
    desk.qtbot.waitUntil(
        lambda: desk.texts == ["Long?", "Once more"] and desk.messages[-1].state == "complete"
    )
    assert len(desk.titles) == 2
    assert not any(status == "streaming" for _, _, status in stored(desk))


def test_leaving_a_temporary_chat_that_is_answered_stops_it_and_leaves_nothing(desk: WindowDesk) -> None:
    desk.ask("Kept?", "Yes.")
    kept = desk.join.chats.conversation_id
    do(desk, "temporary_chat")
    begin(desk, "Secret?")
    desk.send("And this?")
    secret = desk.client.requests[-1]

    assert kept is not None
    open_chat(desk, kept)

    assert secret.is_cancelled
    secret.say("late", 9)
    secret.finish("cancelled")
    desk.qtbot.waitUntil(lambda: desk.texts == ["Kept?", "Yes."])
    assert not desk.window.chat.composer.is_streaming
    assert desk.window.chat.queue.isHidden()
    assert "Secret" not in str(stored(desk))
    desk.ask("More?", "Here.")


def test_two_chats_answered_at_once_keep_their_words_and_their_queues_apart(desk: WindowDesk) -> None:
    first = begin(desk, "First?", "one ")
    desk.send("First waits")
    do(desk, "new_chat")
    second = begin(desk, "Second?", "two ")
    a, b = desk.client.requests
    for _ in range(20):
        a.say("one ", 1)
        b.say("two ", 2)
    b.finish()
    desk.qtbot.waitUntil(lambda: desk.texts == ["Second?", "two " * 21])
    open_chat(desk, first)
    desk.qtbot.waitUntil(lambda: desk.texts == ["First?", "one " * 21])
    a.finish()
    desk.qtbot.waitUntil(lambda: len(desk.client.requests) == 3)

    desk.qtbot.waitUntil(lambda: desk.texts[2:] == ["First waits", ""])
    open_chat(desk, second)
    desk.qtbot.waitUntil(lambda: desk.texts == ["Second?", "two " * 21])


def test_a_question_asked_while_the_model_loads_is_asked_once_it_stands_and_can_be_stopped_before(
    desk: WindowDesk,
) -> None:
    desk.client.loads_at_once = False
    desk.application.use_model(desk.application.models.state.get("tiny"))  # type: ignore[arg-type]
    desk.qtbot.waitUntil(lambda: desk.application.bridge.model_state().phase == "loading")
    if not desk.can_write:
        pytest.fail("nothing can be written while a model loads")
    desk.send("Too early?")
    desk.qtbot.waitUntil(lambda: desk.texts == ["Too early?", ""])
    assert desk.client.requests == []
    QTest.keyClick(desk.window.chat.composer.edit, Qt.Key.Key_Escape)
    desk.qtbot.waitUntil(lambda: desk.messages[-1].state == "stopped")
    desk.send("Now?")
    desk.qtbot.waitUntil(lambda: len(desk.messages) == 4)
    desk.client.loads_at_once = True

    desk.client.loaded(desk.client.loads[-1])
    desk.qtbot.waitUntil(lambda: len(desk.client.requests) == 1)

    assert desk.client.requests[-1].what.messages[-1]["content"] == "Now?"


def test_a_megabyte_pasted_with_words_typed_around_is_sent_whole_and_comes_back_by_up(
    desk: WindowDesk,
) -> None:
    composer, giant = desk.window.chat.composer, "line of text\n" * 80_000
    composer.set_text(giant)
    composer.edit.insertPlainText("What is this?")
    QTest.keyClick(composer.edit, Qt.Key.Key_Return)
    desk.qtbot.waitUntil(lambda: len(desk.client.requests) == 1)
    assert composer.text() == ""
    sent = desk.client.requests[-1].what.messages[-1]["content"]
    assert "What is this?" in sent
    assert sent.count("line of text\n") >= 79_999
    desk.client.requests[-1].fail("ContextLengthError", "The prompt has 400,000 tokens, 2,048 are free.")
    desk.qtbot.waitUntil(lambda: desk.messages[-1].state == "failed", timeout=20_000)

    QTest.keyClick(composer.edit, Qt.Key.Key_Up)

    assert composer.text().count("line of text") == 80_000


def test_an_export_while_a_reply_is_written_has_what_there_is_and_disturbs_nothing(
    desk: WindowDesk, tmp_path: Path
) -> None:
    chat = begin(desk, "Long?", "Half of it")
    desk.join.chats.list.exports.write_one(chat, tmp_path / "chat.md")
    desk.qtbot.waitUntil(lambda: (tmp_path / "chat.md").exists())
    desk.client.requests[-1].say(" and the rest", 2)
    desk.client.requests[-1].finish()

    desk.qtbot.waitUntil(lambda: desk.texts == ["Long?", "Half of it and the rest"])
    assert "Long?" in (tmp_path / "chat.md").read_text()


def test_a_document_dropped_while_a_reply_is_written_is_for_the_next_question(
    desk: WindowDesk, tmp_path: Path
) -> None:
    begin(desk, "Long?")
    note = tmp_path / "note.txt"
    note.write_text("The password of the shed is marmalade.")
    desk.drop(note)
    entries = desk.window.sidebar.documents.model
    desk.qtbot.waitUntil(lambda: [e.state for e in entries.entries] == ["ready"], timeout=20_000)
    desk.client.requests[-1].finish()
    desk.qtbot.waitUntil(lambda: desk.messages[-1].state == "complete")
    desk.send("What is the password of the shed?")
    desk.qtbot.waitUntil(lambda: len(desk.client.requests) == 2)

    assert "marmalade" not in str(desk.client.requests[0].what)
    assert "marmalade" in str(desk.client.requests[1].what)


@pytest.mark.parametrize("when", ["loading", "waiting", "writing", "two chats"])
def test_the_window_can_be_closed_at_any_moment_and_what_was_written_is_kept(
    desk: WindowDesk, when: str
) -> None:
    if when == "loading":
        desk.client.loads_at_once = False
        desk.application.use_model(desk.application.models.state.get("tiny"))  # type: ignore[arg-type]
        desk.send("Early?")
        desk.qtbot.waitUntil(lambda: len(desk.messages) == 2)
    elif when == "waiting":
        desk.send("Asked?")
        desk.qtbot.waitUntil(lambda: len(desk.client.requests) == 1)
    else:
        begin(desk, "Long?", "Half")
        if when == "two chats":
            do(desk, "new_chat")
            begin(desk, "Other?", "Half too")
    history = desk.folders.data / "history.db"

    desk.close()

    from inglenook.storage.database import Database

    with Database.open(history) as db:
        rows = [tuple(row) for row in db.rows("SELECT text, status FROM messages WHERE role = 'assistant'")]
    wanted = {"loading": [""], "waiting": [""], "writing": ["Half"], "two chats": ["Half", "Half too"]}[when]
    assert rows == [(text, "complete") for text in wanted]
