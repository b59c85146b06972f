"""The command palette over the whole window."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from pytestqt.modeltest import ModelTester
from window_desk import WindowDesk

from inglenook.app.chat.copied_code import last_code
from inglenook.app.window.palette import Palette, PaletteEntry, PaletteModel, matching

CTRL = Qt.KeyboardModifier.ControlModifier


def opened(desk: WindowDesk) -> Palette:
    desk.window.activateWindow()
    QTest.keyClick(desk.window, Qt.Key.Key_K, CTRL)
    (palette,) = desk.window.findChildren(Palette)
    return palette


def texts(palette: Palette) -> list[str]:
    return [entry.text for entry in palette.model.entries]


def test_an_action_is_found_by_its_words_and_done_with_enter(desk: WindowDesk) -> None:
    palette = opened(desk)
    QTest.keyClicks(palette.field, "dark")
    assert texts(palette)[0] == "Dark"

    QTest.keyClick(palette.field, Qt.Key.Key_Return)

    assert desk.window.theme.is_dark
    assert not palette.isVisible()


def test_chats_and_documents_are_found_and_opened(desk: WindowDesk, tmp_path: Path) -> None:
    desk.ask("Which hedge grows fast?", "Privet.")
    note = tmp_path / "Garden notes.txt"
    note.write_text("Water the roses.")
    desk.drop(note)
    desk.qtbot.waitUntil(lambda: bool(desk.window.sidebar.documents.model.entries))
    desk.window.actions_by_name["new_chat"].trigger()

    palette = opened(desk)
    desk.qtbot.waitUntil(lambda: "Which hedge grows fast?" in texts(palette))
    assert "Garden notes.txt" in texts(palette)
    QTest.keyClicks(palette.field, "hedge fast")
    QTest.keyClick(palette.field, Qt.Key.Key_Return)

    desk.qtbot.waitUntil(lambda: len(desk.messages) == 2)
    assert desk.window.windowTitle() == "Which hedge grows fast? — Inglenook"


def test_what_no_title_holds_is_searched_in_all_messages(desk: WindowDesk) -> None:
    desk.ask("Which hedge grows fast?", "Privet does.")
    palette = opened(desk)
    QTest.keyClicks(palette.field, "privet")
    assert texts(palette) == ["Search all messages for “privet”"]

    QTest.keyClick(palette.field, Qt.Key.Key_Return)

    desk.qtbot.waitUntil(lambda: [e.is_hit for e in desk.window.sidebar.chats.model.entries] == [True])
    assert desk.window.sidebar.chats.search.text() == "privet"


def test_the_arrows_choose_round_and_round_and_esc_leaves(desk: WindowDesk) -> None:
    palette = opened(desk)
    last = len(palette.model.entries) - 1
    QTest.keyClick(palette.field, Qt.Key.Key_Up)
    assert palette.view.currentIndex().row() == last
    QTest.keyClick(palette.field, Qt.Key.Key_Down)
    assert palette.view.currentIndex().row() == 0
    assert palette.field.accessibleDescription().startswith(texts(palette)[0])

    QTest.keyClick(palette.field, Qt.Key.Key_Escape)

    assert not palette.isVisible()


def test_entries_that_begin_with_the_words_come_first() -> None:
    entries = [PaletteEntry(text, "", lambda: None) for text in ("An archive", "Search", "Archive", "Larch")]

    assert [entry.text for entry in matching(entries, "arch")] == ["Archive", "An archive", "Search", "Larch"]
    assert matching(entries, "arch nothing") == []


def test_the_model_is_sound(qtmodeltester: ModelTester) -> None:
    model = PaletteModel()
    model.replace([PaletteEntry("One", "Chat", lambda: None), PaletteEntry("Two", "Chat", lambda: None)])

    qtmodeltester.check(model)


@pytest.mark.parametrize(
    ("replies", "code"),
    [
        (["Look:\n```python\nprint(1)\n```\nand\n~~~\nx = 2\n\ny = 3\n~~~\n"], "x = 2\n\ny = 3"),
        (["```\nold\n```", "no code here"], "old"),
        (["```\nnever closed"], "never closed"),
        (["`only inline`"], ""),
        ([], ""),
    ],
)
def test_the_last_code_is_the_last_block_of_the_last_reply_that_has_one(
    replies: list[str], code: str
) -> None:
    assert last_code(replies) == code
