"""The first five minutes: what this computer is, the sample with its questions, privacy, and clear words."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from PySide6.QtCore import QMimeData
from PySide6.QtGui import QImage
from PySide6.QtWidgets import QMessageBox
from pytestqt.qtbot import QtBot
from window_desk import WindowDesk

from inglenook.app.text.plain_label import PlainLabel
from inglenook.app.window.computer_words import Computer, this_computer
from inglenook.app.window.sample_document import QUESTIONS, SAMPLE_NAME, sample_path

GB = 1_000_000_000


@pytest.mark.parametrize(
    ("computer", "words"),
    [
        (
            Computer(8, 24 * GB, 16 * GB),
            "8 processor cores, 24.0 GB of memory, of which 16.0 GB are free, no NVIDIA",
        ),
        (
            Computer(8, 24 * GB, 16 * GB),
            "up to 14 billion parameters fit; up to 8 billion answer as fast as one reads.",
        ),
        (
            Computer(2, 24 * GB, 16 * GB),
            "up to 14 billion parameters fit; up to 3 billion answer as fast as one reads.",
        ),
        (Computer(8, 24 * GB, 16 * GB, "NVIDIA L4"), "up to 14 billion parameters fit, at 4 bits each."),
        (Computer(16, 8 * GB, 4 * GB), "up to 4 billion parameters fit, at 4 bits each."),
        (Computer(1, 4 * GB, 1 * GB, "NVIDIA H200"), "one processor core, 4.0 GB of memory"),
        (Computer(1, 4 * GB, 1 * GB, "NVIDIA H200"), "NVIDIA H200. Models of up to half a billion"),
        (Computer(2, 4 * GB, GB // 2), "smallest models only"),
    ],
)
def test_the_computer_is_told_in_words(desk: WindowDesk, computer: Computer, words: str) -> None:
    assert words in desk.join.welcome.words(computer)
    assert "This computer: " in desk.window.welcome._computer.text()


def test_a_card_is_named_as_its_driver_does(tmp_path: Path) -> None:
    place = tmp_path / "proc/driver/nvidia/gpus/0000:01:00.0"
    place.mkdir(parents=True)
    (place / "information").write_text("Model: \t\t NVIDIA GeForce RTX 4070\nIRQ: 77\n")

    assert this_computer(GB, GB, tmp_path).graphics == "NVIDIA GeForce RTX 4070"
    assert this_computer(GB, GB, tmp_path / "elsewhere").graphics == ""


def test_a_first_start_has_the_sample_read_with_three_questions_before_it(desk: WindowDesk) -> None:
    desk.join.sample.begin()

    entries = desk.window.sidebar.documents.model
    desk.qtbot.waitUntil(
        lambda: bool(entries.entries) and entries.entries[0].state == "ready", timeout=20_000
    )
    assert entries.entries[0].name == SAMPLE_NAME
    examples = desk.window.chat.greeting.examples
    desk.qtbot.waitUntil(lambda: [example.text() for example in examples] == list(QUESTIONS))
    examples[0].click()
    assert desk.window.chat.composer.text() == QUESTIONS[0]


def test_a_profile_that_is_in_use_gets_no_sample(desk: WindowDesk, qtbot: QtBot) -> None:
    desk.ask("A question", "An answer.")

    with qtbot.assertNotEmitted(desk.window.files_dropped):
        desk.join.sample.begin()
        done: list[int] = []
        desk.application.tasks.read(lambda _db: 1, done.append)
        desk.qtbot.waitUntil(lambda: bool(done))


def test_the_sample_is_in_the_program_and_holds_the_answers() -> None:
    import pypdfium2

    document = pypdfium2.PdfDocument(sample_path())
    text = " ".join(" ".join(page.get_textpage().get_text_range().split()) for page in document)

    assert len(document) == 6
    for answer in ("17:40 on weekdays", "boiled for three minutes", "Sweep the room"):
        assert answer in text


def shown(desk: WindowDesk) -> str:
    return " ".join(found.text() for found in desk.join.privacy.page.findChildren(PlainLabel))


def test_the_privacy_page_says_what_lies_where_and_how_much(desk: WindowDesk) -> None:
    desk.window.actions_by_name["privacy"].trigger()
    assert desk.window.page is desk.join.privacy.page

    desk.qtbot.waitUntil(lambda: "kB" in shown(desk) or "KiB" in shown(desk))

    assert str(desk.folders.data / "history.db") in shown(desk)
    assert "no telemetry" in shown(desk)


def test_everything_is_forgotten_only_when_it_is_meant(desk: WindowDesk, tmp_path: Path) -> None:
    desk.ask("My secret marmalade", "A secret answer.")
    note = tmp_path / "note.txt"
    note.write_text("Another quince secret.")
    desk.drop(note)
    entries = desk.window.sidebar.documents.model
    desk.qtbot.waitUntil(
        lambda: bool(entries.entries) and entries.entries[0].state == "ready", timeout=20_000
    )
    answers: list[Callable[[QMessageBox], object]] = [
        lambda box: box.button(QMessageBox.StandardButton.Cancel).click(),
        lambda box: next(b for b in box.buttons() if b.text() == "Forget everything").click(),
    ]
    for answer in answers:
        assert desk.titles == ["My secret marmalade"]
        desk.join.privacy.ask_forget()
        answer(desk.window.findChildren(QMessageBox)[-1])

    desk.qtbot.waitUntil(lambda: desk.titles == [] and not entries.entries)
    assert not desk.messages
    history = desk.folders.data / "history.db"
    desk.close()
    assert b"marmalade" not in history.read_bytes()
    assert b"quince" not in history.read_bytes()
    assert note.exists()


def test_a_pasted_picture_is_answered_in_words(desk: WindowDesk) -> None:
    data, picture = QMimeData(), QImage(4, 4, QImage.Format.Format_RGB32)
    picture.fill(0)
    data.setImageData(picture)
    edit = desk.window.chat.composer.edit

    assert edit.canInsertFromMimeData(data)
    edit.insertFromMimeData(data)

    assert "the picture was not pasted" in desk.window.banner.text
    assert edit.toPlainText() == ""
    data.setText("A table")
    edit.insertFromMimeData(data)
    assert edit.toPlainText() == "A table"
