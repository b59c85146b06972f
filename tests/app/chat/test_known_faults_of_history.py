"""What users of other chat programs report of histories, backups and searches that lose something, tried here."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QMessageBox
from pytestqt.qtbot import QtBot
from window_desk import WindowDesk, put_model

from inglenook.app.window.theme import Theme

MakeDesk = Callable[[str], WindowDesk]
SEARCHES = (
    ("tax 2025", "Titles and messages", ["Tax 2025"]),
    ("tax 2025", "Titles only", ["Tax 2025"]),
    ("tax 2025", "Messages only", []),
    ("marmalade", "Titles only", []),
    ("marmalade", "Messages only", ["About bread"]),
    ("MARMALADE older", "Titles and messages", ["About bread"]),
)


@pytest.fixture
def make_desk(qtbot: QtBot, theme: Theme, tmp_path: Path) -> Iterator[MakeDesk]:
    """Makes windows over profiles by name, each closed at the end; the same name again is a restart."""
    desks: list[WindowDesk] = []

    def make(name: str) -> WindowDesk:
        if not (tmp_path / name).exists():
            put_model(tmp_path / name)
        desks.append(WindowDesk(qtbot, theme, tmp_path / name).start())
        return desks[-1]

    yield make
    for desk in desks:
        desk.close()


def history(desk: WindowDesk) -> list[tuple[str, str, str]]:
    """Every chat with each of its messages: title, role, text."""
    found: list[list[tuple[str, str, str]]] = []
    desk.application.tasks.read(
        lambda db: [
            tuple(row)
            for row in db.rows(
                "SELECT c.title, m.role, m.text FROM messages m JOIN conversations c ON c.id = m.conversation_id "
                "ORDER BY c.title, m.id"
            )
        ],
        found.append,
    )
    desk.qtbot.waitUntil(lambda: bool(found))
    return found[0]


def backed_up(desk: WindowDesk, target: Path) -> Path:
    desk.join.backups.back_up(target)
    desk.qtbot.waitUntil(lambda: "was backed up into" in desk.window.banner.text)
    return target


def change(desk: WindowDesk, row: int, text: str, answer: str) -> None:
    """Edit a question and ask it again."""
    count = len(desk.client.requests)
    desk.window.chat.view.act_on(desk.messages[row].id, "edit")
    desk.window.chat.composer.set_text(text)
    QTest.keyClick(desk.window.chat.composer.edit, Qt.Key.Key_Return)
    desk.qtbot.waitUntil(lambda: len(desk.client.requests) == count + 1)
    desk.client.requests[-1].say(answer, 1)
    desk.client.requests[-1].finish()
    desk.qtbot.waitUntil(lambda: desk.texts[-1] == answer and desk.messages[-1].state == "complete")


def test_a19_edits_before_and_in_a_fork_are_there_after_a_restart(make_desk: MakeDesk) -> None:
    desk = make_desk("here")
    desk.ask("Q1", "A1")
    desk.ask("Q2", "A2")
    change(desk, 2, "Q2 edited", "A2 edited")
    original = desk.join.chats.conversation_id
    desk.window.chat.view.act_on(desk.messages[-1].id, "fork")
    desk.qtbot.waitUntil(lambda: desk.join.chats.conversation_id not in (original, None))
    desk.qtbot.waitUntil(lambda: desk.texts == ["Q1", "A1", "Q2 edited", "A2 edited"])
    change(desk, 2, "Q2 in the fork", "A2 in the fork")
    forked = desk.join.chats.conversation_id
    before = history(desk)
    desk.close()

    again = make_desk("here")
    again.qtbot.waitUntil(lambda: again.texts == ["Q1", "A1", "Q2 in the fork", "A2 in the fork"])
    assert again.join.chats.conversation_id == forked
    assert history(again) == before
    again.window.sidebar.chats.activated.emit(original)
    again.qtbot.waitUntil(lambda: again.texts == ["Q1", "A1", "Q2 edited", "A2 edited"])
    again.window.chat.view.act_on(again.messages[2].id, "previous")

    again.qtbot.waitUntil(lambda: again.texts == ["Q1", "A1", "Q2", "A2"])


def test_a22_titles_bodies_and_other_versions_are_found(make_desk: MakeDesk) -> None:
    desk = make_desk("here")
    desk.ask("Which forms?", "These.")
    desk.window.sidebar.chats.rename_requested.emit(desk.join.chats.conversation_id, "Tax 2025")
    desk.window.actions_by_name["new_chat"].trigger()
    desk.ask("About bread", "The older marmalade version.")
    desk.window.chat.view.act_on(desk.messages[-1].id, "again")
    desk.qtbot.waitUntil(lambda: len(desk.client.requests) == 3)
    desk.client.requests[-1].say("The newer one.", 1)
    desk.client.requests[-1].finish()
    desk.qtbot.waitUntil(lambda: desk.texts[-1] == "The newer one." and desk.messages[-1].state == "complete")
    chats = desk.window.sidebar.chats
    for words, where, found in SEARCHES:
        next(action for action in chats.filter_button.fill().actions() if action.text() == where).trigger()
        chats.search.setText(words)

        desk.qtbot.waitUntil(lambda found=found: desk.titles == found)  # type: ignore[misc]


def test_d5_restoring_says_what_comes_merges_and_changes_nothing_that_is_here(
    make_desk: MakeDesk, tmp_path: Path
) -> None:
    there = make_desk("there")
    there.ask("From there", "1")
    there.window.actions_by_name["new_chat"].trigger()
    there.ask("From there too", "2")
    backup = backed_up(there, tmp_path / "foreign.inglenook")
    content = backup.read_bytes()
    here = make_desk("here")
    here.ask("From here", "3")
    before = history(here)

    here.join.backups.look_at(backup)
    here.qtbot.waitUntil(lambda: bool(here.window.findChildren(QMessageBox)))
    (box,) = here.window.findChildren(QMessageBox)
    assert box.text() == "“foreign.inglenook” holds 2 chats with 4 messages, and 0 documents."
    box.escapeButton().click()
    assert history(here) == before
    here.join.backups.restore(backup)
    here.qtbot.waitUntil(lambda: len(here.titles) == 3)

    assert [row for row in history(here) if row[0] == "From here"] == before
    assert {row[0] for row in history(here)} == {"From here", "From there", "From there too"}
    assert backup.read_bytes() == content


def test_d6_documents_and_sources_come_along_to_a_clean_profile(make_desk: MakeDesk, tmp_path: Path) -> None:
    there = make_desk("there")
    note = tmp_path / "shed.txt"
    note.write_text("The password of the garden shed is marmalade.\n")
    there.drop(note)
    entries = there.window.sidebar.documents.model
    there.qtbot.waitUntil(lambda: [e.state for e in entries.entries] == ["ready"], timeout=20_000)
    there.ask("What is the password of the shed?", "The password of the garden shed is marmalade [1].")
    (before,) = (*there.messages[-1].citations, *there.messages[-1].others)
    backup = backed_up(there, tmp_path / "all.inglenook")
    there.close()
    note.unlink()

    here = make_desk("clean")
    here.join.backups.restore(backup)
    here.qtbot.waitUntil(lambda: len(here.titles) == 1)
    assert "Added 1 chats, 2 messages and 1 documents." in here.window.banner.text
    here.window.sidebar.chats.activated.emit(here.window.sidebar.chats.model.entries[0].id)
    here.qtbot.waitUntil(lambda: len(here.messages) == 2)
    (citation,) = (*here.messages[-1].citations, *here.messages[-1].others)
    here.window.chat.view.citation_activated.emit(here.messages[-1].id, citation.number)
    here.qtbot.waitUntil(lambda: not here.window.source.isHidden(), timeout=20_000)

    assert citation == before
    assert "marmalade" in citation.quote
    assert "shed.txt" in str(here.window.source.source)


def test_d7_restoring_twice_or_from_two_backups_keeps_chats_apart_and_makes_no_second_ones(
    make_desk: MakeDesk, tmp_path: Path
) -> None:
    there = make_desk("there")
    for number in range(3):
        there.window.actions_by_name["new_chat"].trigger()
        there.ask("The same words", f"Answer {number}")
    early = backed_up(there, tmp_path / "early.inglenook")
    there.ask("More", "Answer 3")
    late = backed_up(there, tmp_path / "late.inglenook")
    whole = history(there)
    here = make_desk("here")

    for backup in (early, early, late, early, late):
        here.window.banner.clear_line("backup")
        here.join.backups.restore(backup)
        here.qtbot.waitUntil(lambda: any(w in here.window.banner.text for w in ("Added", "was here already")))

    assert sorted(history(here)) == sorted(whole)
    here.qtbot.waitUntil(lambda: here.titles == ["The same words"] * 3)
