"""A model file of one's own is taken in: looked at first, used where it is, copied, or made smaller in a process."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QComboBox
from tiny_folders import write_tiny_folder
from tiny_gguf import write_tiny_gguf
from window_desk import WindowDesk

from inglenook.app.models.import_dialog import ImportDialog
from inglenook.app.models.import_join import ImportJoin


@pytest.fixture
def desk(desk: WindowDesk) -> WindowDesk:
    desk.window.show_models()
    return desk


@pytest.fixture
def imports(desk: WindowDesk) -> ImportJoin:
    return desk.join.models.imports


def dialog_of(desk: WindowDesk, path: Path) -> ImportDialog:
    desk.join.models.imports.ask(path)
    (dialog,) = [d for d in desk.window.findChildren(ImportDialog) if d.isVisible()]
    desk.qtbot.waitUntil(lambda: dialog.row is not None or dialog.problem.isVisible())
    return dialog


def choose(dialog: ImportDialog, words: str) -> None:
    assert dialog.row is not None
    choices = dialog.row.field.control
    assert isinstance(choices, QComboBox)
    choices.setCurrentIndex(choices.findText(words))


def test_a_file_says_what_it_is_and_is_used_where_it_is(desk: WindowDesk, tmp_path: Path) -> None:
    mine = write_tiny_gguf(tmp_path / "mine.gguf")
    dialog = dialog_of(desk, mine)
    assert dialog.facts.text().startswith("Language model, 0.00 billion parameters, ")
    assert dialog.fit.text().startswith("Fits: it needs ")
    assert dialog.hint.text() == "Takes no room. The file has to stay where it is."

    QTest.mouseClick(dialog.import_button, Qt.MouseButton.LeftButton)

    desk.qtbot.waitUntil(lambda: desk.application.models.state.get("mine") is not None)
    model = desk.application.models.state.get("mine")
    assert model is not None
    assert model.is_reference


def test_a_copy_stands_in_the_library(desk: WindowDesk, tmp_path: Path) -> None:
    dialog = dialog_of(desk, write_tiny_gguf(tmp_path / "mine.gguf"))
    choose(dialog, "Copy it into the library")
    dialog.import_button.click()

    desk.qtbot.waitUntil(lambda: desk.application.models.state.get("mine") is not None)
    model = desk.application.models.state.get("mine")
    assert model is not None
    assert not model.is_reference


def test_a_file_that_is_no_model_is_refused_in_a_sentence(desk: WindowDesk, tmp_path: Path) -> None:
    (tmp_path / "bad.gguf").write_bytes(b"GGUF")

    dialog = dialog_of(desk, tmp_path / "bad.gguf")

    assert dialog.problem.text()
    assert not dialog.import_button.isEnabled()


def test_fewer_bits_are_offered_for_a_folder_of_full_numbers_alone(desk: WindowDesk, tmp_path: Path) -> None:
    folder = write_tiny_folder(tmp_path / "full")
    dialog = dialog_of(desk, folder / "model.safetensors")
    assert dialog.row is not None
    assert dialog.row.spec.choices == ("reference", "copy", "qint8", "qint4")
    dialog.reject()
    desk.qtbot.waitUntil(lambda: not [d for d in desk.window.findChildren(ImportDialog) if d.isVisible()])

    other = dialog_of(desk, write_tiny_gguf(tmp_path / "mine.gguf"))

    assert other.row is not None
    assert other.row.spec.choices == ("reference", "copy")


def test_a_cancelled_making_leaves_nothing(desk: WindowDesk, imports: ImportJoin, tmp_path: Path) -> None:
    dialog = dialog_of(desk, write_tiny_folder(tmp_path / "full"))
    choose(dialog, "Copy in 8 bits")
    dialog.import_button.click()
    desk.qtbot.waitUntil(lambda: "full-qint8" in imports.running)
    card = desk.window.models.card("full-qint8")
    assert card.facts.text() == "Reading the model…"

    QTest.mouseClick(card.main_button, Qt.MouseButton.LeftButton)

    assert not imports.running
    assert "full-qint8" not in [c.name for c in desk.join.models._cards()]


@pytest.mark.slow
def test_eight_bits_are_made_in_a_process_and_the_cost_is_said(desk: WindowDesk, tmp_path: Path) -> None:
    dialog = dialog_of(desk, write_tiny_folder(tmp_path / "full"))
    choose(dialog, "Copy in 8 bits")
    dialog.import_button.click()

    desk.qtbot.waitUntil(lambda: desk.application.models.state.get("full-qint8") is not None, timeout=120_000)
    notice = desk.window.models._notice.text()
    assert "is in the library: " in notice
    assert "the perplexity went from " in notice or "was not measured" in notice


def shown_dialogs(desk: WindowDesk) -> list[ImportDialog]:
    return [dialog for dialog in desk.window.findChildren(ImportDialog) if dialog.isVisible()]


def test_dropped_models_are_asked_about_one_after_the_other_and_shards_are_one(
    desk: WindowDesk, tmp_path: Path
) -> None:
    mine, folder = write_tiny_gguf(tmp_path / "mine.gguf"), write_tiny_folder(tmp_path / "full")
    (folder / "more.safetensors").write_bytes(b"another shard")

    desk.drop(mine, folder / "model.safetensors", folder / "more.safetensors")
    desk.qtbot.waitUntil(lambda: [d.title.text() for d in shown_dialogs(desk)] == ["mine.gguf"])
    assert desk.application.models.state.get("mine") is None
    desk.qtbot.waitUntil(shown_dialogs(desk)[0].import_button.isEnabled)
    shown_dialogs(desk)[0].import_button.click()
    desk.qtbot.waitUntil(lambda: [d.title.text() for d in shown_dialogs(desk)] == ["full"])
    shown_dialogs(desk)[0].reject()
    desk.qtbot.waitUntil(lambda: not shown_dialogs(desk))

    desk.qtbot.waitUntil(lambda: desk.application.models.state.get("mine") is not None)
    assert desk.application.models.state.get("full") is None
    desk.drop(folder / "model.safetensors")
    desk.qtbot.waitUntil(lambda: [d.title.text() for d in shown_dialogs(desk)] == ["full"])
    shown_dialogs(desk)[0].reject()


@pytest.mark.parametrize("lost", [1_024, 1])
def test_d10_a_file_that_was_cut_short_is_refused_by_name_and_not_added(
    desk: WindowDesk, tmp_path: Path, lost: int
) -> None:
    whole = write_tiny_gguf(tmp_path / "cut.gguf").read_bytes()
    (tmp_path / "cut.gguf").write_bytes(whole[:-lost])

    desk.drop(tmp_path / "cut.gguf")
    desk.qtbot.waitUntil(lambda: bool(shown_dialogs(desk)) and shown_dialogs(desk)[0].problem.text() != "")

    assert "cut.gguf" in shown_dialogs(desk)[0].problem.text()
    assert not shown_dialogs(desk)[0].import_button.isEnabled()
    shown_dialogs(desk)[0].reject()


def test_d10_of_several_shards_the_damaged_one_is_named(desk: WindowDesk, tmp_path: Path) -> None:
    folder = write_tiny_folder(tmp_path / "full")
    shard = folder / "model.safetensors"
    shard.write_bytes(shard.read_bytes()[:-1_024])

    desk.drop(shard)
    desk.qtbot.waitUntil(lambda: bool(shown_dialogs(desk)) and shown_dialogs(desk)[0].problem.text() != "")

    assert "model.safetensors" in shown_dialogs(desk)[0].problem.text()
    shown_dialogs(desk)[0].reject()
