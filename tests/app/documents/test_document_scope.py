"""Ticks, collections, chips, passwords and encodings in the window, over the real parser."""

from __future__ import annotations

from pathlib import Path

import pypdf
import pytest
from PySide6.QtCore import QPoint
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QApplication, QInputDialog
from pytestqt.qtbot import QtBot
from small_pdf import write_pdf
from window_desk import WindowDesk

from inglenook.app.documents.document_chips import MAX_CHIPS, DocumentChip, DocumentChips
from inglenook.app.documents.document_list_model import DocumentEntry
from inglenook.app.text.plain_label import PlainLabel
from inglenook.app.window.theme import Theme

# "Тест: канарейка живёт в клетке"
RUSSIAN = "Канарейка живёт в клетке. Её корм стоит пять рублей, а вода ничего не стоит."


def entries(desk: WindowDesk) -> list[DocumentEntry]:
    return list(desk.window.sidebar.documents.model.entries)


def add(desk: WindowDesk, *paths: Path) -> list[DocumentEntry]:
    """Drop files and wait until each is read or is not."""
    count = len(entries(desk)) + len(paths)
    desk.drop(*paths)
    desk.qtbot.waitUntil(
        lambda: (
            len(entries(desk)) == count
            and all(entry.state in ("ready", "failed", "locked") for entry in entries(desk))
        ),
        timeout=20_000,
    )
    return entries(desk)


def ticked(desk: WindowDesk) -> list[str]:
    return [entry.name for entry in entries(desk) if entry.is_ticked]


def chips(desk: WindowDesk) -> list[str]:
    return desk.window.chat.findChild(DocumentChips).texts


def action(desk: WindowDesk, *words: str) -> QAction:
    """The action that one finds by these words, in the menu of the ticks."""
    documents = desk.window.sidebar.documents
    documents.scope_menu.aboutToShow.emit()
    return next(each for each in documents.scope_menu.actions() if each.text() in words)


def test_ticks_are_set_by_all_none_collection_name_and_year(desk: WindowDesk, tmp_path: Path) -> None:
    for name in ("letter 2019.txt", "letter 2020.txt", "recipe.txt"):
        (tmp_path / name).write_text(f"This is {name}.")
    shown = add(desk, *sorted(tmp_path.glob("*.txt")))
    indexing = desk.application.indexing
    indexing.put_into_collection("R&D", [shown[0].id, shown[2].id])
    desk.qtbot.waitUntil(lambda: entries(desk)[2].collections == ("R&D",))

    action(desk, "None").trigger()
    assert ticked(desk) == []
    assert chips(desk) == []
    action(desk, "R&&D").trigger()
    assert ticked(desk) == ["letter 2019.txt", "recipe.txt"]
    action(desk, "All").trigger()
    assert len(ticked(desk)) == 3
    scope = desk.join.documents._scope
    scope.tick_by_text("2020, 2019, LETTER")
    desk.qtbot.waitUntil(lambda: ticked(desk) == ["letter 2019.txt", "letter 2020.txt"])
    scope.tick_by_text("2020")
    desk.qtbot.waitUntil(lambda: ticked(desk) == ["letter 2020.txt"])
    assert chips(desk) == ["letter 2020.txt"]

    indexing.take_out_of_collection("r&d", [entry.id for entry in entries(desk)])
    desk.qtbot.waitUntil(lambda: not any(entry.collections for entry in entries(desk)))


def test_chip_says_why_a_document_is_not_used_and_one_press_unticks(desk: WindowDesk, tmp_path: Path) -> None:
    note = tmp_path / "note.txt"
    note.write_text("The shed is locked.")
    blank = write_pdf(tmp_path / "scan.pdf", [])
    add(desk, note, blank)

    assert chips(desk)[0].startswith("scan.pdf: Not used. No text on 1 of 1 pages")
    assert chips(desk)[1] == "note.txt"
    desk.send("Is the shed locked?")
    desk.qtbot.waitUntil(lambda: bool(desk.client.requests))
    desk.client.requests[0].say("Yes.", 1)
    desk.client.requests[0].finish()
    desk.qtbot.waitUntil(lambda: desk.messages[-1].state == "complete")

    desk.window.chat.findChild(DocumentChips).chosen.emit(entries(desk)[0].id)
    assert ticked(desk) == ["scan.pdf"]


def test_encrypted_file_waits_for_its_password(desk: WindowDesk, tmp_path: Path) -> None:
    writer = pypdf.PdfWriter(clone_from=write_pdf(tmp_path / "plain.pdf", ["The code word is gooseberry."]))
    writer.encrypt("schlüssel", algorithm="RC4-128")
    secret = tmp_path / "secret.pdf"
    writer.write(secret)
    documents = desk.window.sidebar.documents

    (entry,) = add(desk, secret)
    assert entry.state == "locked"
    assert chips(desk) == ["secret.pdf: Not used: it waits for its password"]
    assert "secret.pdf" in desk.window.banner._text.text()
    documents.view.setCurrentIndex(documents.model.index(0))
    assert documents.retry_button.text() == "Enter password…"

    for password, state in (("wrong", "locked"), ("schlüssel", "ready")):
        desk.window.banner.button.click()
        dialog = desk.window.findChildren(QInputDialog)[-1]
        dialog.setTextValue(password)
        dialog.accept()
        desk.qtbot.waitUntil(lambda: entries(desk)[0].state in ("reading", "queued"))
        desk.qtbot.waitUntil(lambda state=state: entries(desk)[0].state == state, timeout=20_000)

    assert chips(desk) == ["secret.pdf"]
    assert desk.window.banner.isHidden()
    with desk.qtbot.waitSignal(desk.window.source.page_requested, raising=False, timeout=5_000):
        documents.open_requested.emit(entries(desk)[0].id)
    desk.qtbot.waitUntil(lambda: not desk.window.source.canvas.is_empty, timeout=20_000)


def test_encoding_is_shown_can_be_changed_and_is_kept(desk: WindowDesk, tmp_path: Path) -> None:
    file = tmp_path / "birds.txt"
    file.write_bytes(RUSSIAN.encode("koi8_r"))
    (entry,) = add(desk, file)
    documents = desk.window.sidebar.documents
    assert (entry.encoding, entry.is_encoding_guessed) == ("koi8_r", True)
    assert documents.model.status(entry) == "Searchable, koi8_r (guessed)"
    menu = documents.menu_of(entry)
    words = next(each for each in menu.actions() if each.text().startswith("Encoding"))
    assert words.text() == "Encoding: koi8_r (guessed)"
    choice = next(each for each in words.menu().actions() if each.text() == "cp866")

    choice.trigger()
    desk.qtbot.waitUntil(lambda: entries(desk)[0].encoding == "cp866", timeout=20_000)

    assert not entries(desk)[0].is_encoding_guessed
    file.write_bytes((RUSSIAN + " И ещё одна.").encode("cp866"))
    desk.drop(file)
    desk.qtbot.waitUntil(
        lambda: (
            desk.application.indexing.documents[0].size_bytes == file.stat().st_size
            and entries(desk)[0].state == "ready"
        ),
        timeout=20_000,
    )
    assert desk.application.indexing.documents[0].chosen_encoding == "cp866"
    assert entries(desk)[0].encoding == "cp866"


def test_of_many_documents_those_that_are_not_used_come_first(qtbot: QtBot, theme: Theme) -> None:
    row = DocumentChips(theme)
    qtbot.addWidget(row)

    row.set_chips(
        [DocumentChip(n, f"a&<b>{n}.txt") for n in range(5)] + [DocumentChip(9, "z.pdf", "Damaged.")]
    )

    assert row.texts == ["z.pdf: Damaged.", "a&&<b>0.txt", "a&&<b>1.txt"]
    assert len(row.texts) == MAX_CHIPS
    assert row._rest.text() == "and 3 more"
    row.set_chips([])
    assert row.isHidden()


def test_chips_stand_above_the_composer_in_its_column(desk: WindowDesk, tmp_path: Path) -> None:
    for number in range(MAX_CHIPS + 2):
        (tmp_path / f"letter {number}.txt").write_text(f"This is {number}.")
    add(desk, *sorted(tmp_path.glob("*.txt")))
    desk.window.resize(1_500, 900)
    chat = desk.window.chat
    row = chat.findChild(DocumentChips)
    rest = row.findChild(PlainLabel)

    desk.qtbot.waitUntil(lambda: row.width() == chat.temporary.maximumWidth())
    left = row.mapTo(chat, QPoint(0, 0)).x()

    assert abs(2 * left + row.width() - chat.width()) <= 2
    assert row.mapTo(chat, QPoint(0, row.height())).y() <= chat.composer.y()
    assert (rest.isVisible(), rest.text()) == (True, "and 2 more")
    assert row.rect().contains(rest.geometry())


def test_what_is_left_of_the_chips_is_never_a_window_of_its_own(qtbot: QtBot, theme: Theme) -> None:
    row = DocumentChips(theme)
    qtbot.addWidget(row)

    row.set_chips([DocumentChip(n, f"letter {n}") for n in range(MAX_CHIPS + 1)])
    row.set_chips([DocumentChip(1, "letter")])

    assert row.findChild(PlainLabel).isHidden()
    assert [widget for widget in QApplication.topLevelWidgets() if isinstance(widget, PlainLabel)] == []


def test_a_new_chat_begins_with_all_documents_and_an_old_one_with_its_own(
    desk: WindowDesk, tmp_path: Path
) -> None:
    for name in ("heron.txt", "mill.txt"):
        (tmp_path / name).write_text(f"This is {name}.")
    shown = add(desk, *sorted(tmp_path.glob("*.txt")))
    desk.window.sidebar.documents.scope_chosen.emit([shown[0].id])
    desk.ask("What is this?", "This is heron.txt.")
    chats = desk.window.sidebar.chats

    desk.window.sidebar.new_chat_requested.emit()
    in_new = ticked(desk)
    chats.activated.emit(chats.model.entries[0].id)
    desk.qtbot.waitUntil(lambda: ticked(desk) == ["heron.txt"])
    desk.window.sidebar.new_chat_requested.emit()

    assert in_new == ticked(desk) == ["heron.txt", "mill.txt"]


def test_a_new_chat_begins_with_none_where_the_settings_say_so(desk: WindowDesk, tmp_path: Path) -> None:
    (tmp_path / "heron.txt").write_text("The heron is grey.")
    add(desk, tmp_path / "heron.txt")
    desk.application.settings.set("documents.ticked_when_added", False)

    desk.window.sidebar.new_chat_requested.emit()

    assert ticked(desk) == []


@pytest.mark.parametrize("name", ["heron.txt", "copy.txt"])
def test_a_file_that_is_dropped_again_is_named_and_asked_about(
    desk: WindowDesk, tmp_path: Path, name: str
) -> None:
    (tmp_path / "heron.txt").write_text("The heron is grey.")
    (tmp_path / name).write_text("The heron is grey.")
    add(desk, tmp_path / "heron.txt")
    desk.window.sidebar.documents.scope_chosen.emit([])
    notices: list[str] = []
    desk.application.indexing.notice.connect(notices.append)

    desk.drop(tmp_path / name)
    desk.qtbot.waitUntil(lambda: ticked(desk) == ["heron.txt"])

    same = "copy.txt has the same content as heron.txt, which is in the list already."
    assert notices == [same if name == "copy.txt" else "heron.txt is in the list already."]
