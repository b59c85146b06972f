"""Backup and restoring, in the whole window."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from PySide6.QtWidgets import QMessageBox
from pytestqt.qtbot import QtBot
from window_desk import WindowDesk, put_model

from inglenook.app.window.theme import Theme


@pytest.fixture
def make_desk(qtbot: QtBot, theme: Theme, tmp_path: Path) -> Iterator[Callable[[str], WindowDesk]]:
    desks: list[WindowDesk] = []

    def make(name: str) -> WindowDesk:
        put_model(tmp_path / name)
        desks.append(WindowDesk(qtbot, theme, tmp_path / name).start())
        return desks[-1]

    yield make
    for desk in desks:
        desk.close()


def test_a_profile_moves_to_another_computer_in_one_file(
    make_desk: Callable[[str], WindowDesk], tmp_path: Path
) -> None:
    here, backup = make_desk("here"), tmp_path / "all.inglenook"
    here.ask("About bread", "Flour and water.")
    here.join.backups.back_up(backup)
    here.qtbot.waitUntil(lambda: "was backed up into all.inglenook" in here.window.banner.text)
    there = make_desk("there")
    there.ask("About tea", "Leaves.")

    there.join.backups.look_at(backup)
    there.qtbot.waitUntil(lambda: bool(there.window.findChildren(QMessageBox)))
    (box,) = there.window.findChildren(QMessageBox)
    assert box.text() == "“all.inglenook” holds 1 chats with 2 messages, and 0 documents."
    next(button for button in box.buttons() if button.text() == "Add what is new").click()

    there.qtbot.waitUntil(lambda: sorted(there.titles) == ["About bread", "About tea"])
    assert "Added 1 chats, 2 messages and 0 documents." in there.window.banner.text
    there.join.backups.restore(backup)
    there.qtbot.waitUntil(lambda: "was here already" in there.window.banner.text)


def test_a_bad_backup_is_a_sentence_and_stopping_one_leaves_no_file(
    make_desk: Callable[[str], WindowDesk], tmp_path: Path
) -> None:
    desk = make_desk("here")
    (tmp_path / "diary.txt").write_text("Dear diary")
    desk.join.backups.look_at(tmp_path / "diary.txt")
    desk.qtbot.waitUntil(lambda: "is not a backup of Inglenook" in desk.window.banner.text)
    assert not desk.window.findChildren(QMessageBox)

    desk.join.backups.back_up(tmp_path / "out" / "b.inglenook")
    assert desk.window.banner.text == "Backing up… 0 %"
    desk.window.banner.button.click()

    desk.qtbot.waitUntil(lambda: desk.window.banner.text == "The backup was stopped; no file was written.")
    assert list((tmp_path / "out").iterdir()) == []
