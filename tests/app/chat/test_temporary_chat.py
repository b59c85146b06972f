"""A temporary chat: answered like any other, in no file, no list and no search, and gone when it is left."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from window_desk import WindowDesk

from inglenook.storage.conversation_search import search_conversations
from inglenook.storage.temporary import is_temporary

NONCE = "quetzalmarzipan"


def begin(desk: WindowDesk) -> None:
    desk.window.actions_by_name["temporary_chat"].trigger()


def files_with(folder: Path, word: str) -> list[str]:
    found = []
    for path in folder.rglob("*"):
        if path.is_file() and word.encode() in path.read_bytes():
            found.append(path.name)
    return found


def rows(desk: WindowDesk) -> list[int]:
    """How many conversations and messages the history has, after all that was written so far."""
    counts: list[int] = []

    def count(db: object) -> list[int]:
        return [db.row(f"SELECT count(*) FROM {t}")[0] for t in ("conversations", "messages")]  # type: ignore[attr-defined]

    desk.application.tasks.write(count, counts.extend)
    desk.qtbot.waitUntil(lambda: bool(counts))
    return counts


def test_nothing_of_it_is_ever_written(desk: WindowDesk, tmp_path: Path) -> None:
    begin(desk)
    desk.ask(f"What is a {NONCE}?", f"<think>{NONCE}</think>A kind of {NONCE}.")
    desk.ask("And more?", f"More {NONCE}.")

    assert rows(desk) == [0, 0]
    assert desk.titles == []
    assert files_with(tmp_path, NONCE) == []
    assert is_temporary(desk.join.chats.conversation_id)
    found: list[object] = [None]
    desk.application.tasks.read(lambda db: search_conversations(db, NONCE), lambda hits: found.append(hits))
    desk.qtbot.waitUntil(lambda: len(found) == 2)
    assert found[1] == []
    desk.close()
    assert files_with(tmp_path, NONCE) == []


def test_it_says_what_it_is_and_the_model_is_told_all_of_it(desk: WindowDesk) -> None:
    begin(desk)
    assert not desk.window.chat.temporary.isHidden()
    desk.ask("First", "One")
    desk.ask("Second", "Two")

    sent = [message["content"] for message in desk.client.requests[-1].what.messages]
    assert sent == ["First", "One", "Second"]
    assert desk.window.windowTitle().startswith("Temporary chat")


def test_left_it_is_gone_also_from_the_engine(desk: WindowDesk) -> None:
    desk.ask("Kept", "Yes")
    kept = desk.join.chats.conversation_id
    begin(desk)
    desk.ask("Not kept", "No")
    owner = desk.client.requests[-1].what.owner

    desk.window.sidebar.chats.activated.emit(kept)
    desk.qtbot.waitUntil(lambda: [m.text for m in desk.messages] == ["Kept", "Yes"])

    assert desk.client.forgotten == [owner]
    assert desk.window.chat.temporary.isHidden()
    assert not desk.join.chats.home.is_temporary
    assert desk.application.settings.value("window.conversation") == kept


def test_a_reply_that_is_being_written_is_stopped_when_it_is_left(desk: WindowDesk) -> None:
    begin(desk)
    desk.send("Long?")
    desk.qtbot.waitUntil(lambda: bool(desk.client.requests))
    asked = desk.client.requests[-1]
    asked.say("Once", 1)
    desk.qtbot.waitUntil(lambda: desk.messages[-1].text == "Once")

    desk.window.actions_by_name["new_chat"].trigger()
    asked.say(" upon", 2)
    asked.finish("cancelled")
    desk.ask("Another", "Answer")

    assert [message.text for message in desk.messages] == ["Another", "Answer"]
    assert rows(desk) == [1, 2]


def test_versions_edits_and_deletions_work_in_it(desk: WindowDesk) -> None:
    begin(desk)
    desk.ask("Capitol?", "A building.")
    view = desk.window.chat.view

    view.act_on(desk.messages[0].id, "edit")
    desk.window.chat.composer.set_text("Capital?")
    QTest.keyClick(desk.window.chat.composer.edit, Qt.Key.Key_Return)
    desk.qtbot.waitUntil(lambda: len(desk.client.requests) == 2)
    desk.client.requests[-1].say("Paris.", 1)
    desk.client.requests[-1].finish()
    desk.qtbot.waitUntil(lambda: desk.messages[-1].state == "complete")
    assert [m.text for m in desk.messages] == ["Capital?", "Paris."]

    view.act_on(desk.messages[0].id, "previous")
    desk.qtbot.waitUntil(lambda: [m.text for m in desk.messages] == ["Capitol?", "A building."])
    assert desk.messages[0].num_branches == 2
    assert rows(desk) == [0, 0]


def test_two_in_a_row_do_not_mix(desk: WindowDesk) -> None:
    begin(desk)
    desk.ask("One", "1")
    begin(desk)
    desk.ask("Two", "2")

    sent = [message["content"] for message in desk.client.requests[-1].what.messages]
    assert sent == ["Two"]
