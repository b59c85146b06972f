"""The settings of one model and its removal, as a person uses them in the whole window."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QLineEdit, QMessageBox, QPlainTextEdit
from pytestqt.qtbot import QtBot
from tiny_gguf import TEMPLATE, write_tiny_gguf
from window_desk import WindowDesk, put_model

from inglenook.app.models.model_settings_dialog import ModelSettingsDialog
from inglenook.app.window.theme import Theme


@pytest.fixture
def desk(qtbot: QtBot, theme: Theme, tmp_path: Path) -> Iterator[WindowDesk]:
    put_model(tmp_path)
    model = tmp_path / "data" / "models" / "tiny" / "model.gguf"
    model.unlink()
    write_tiny_gguf(model)
    desk = WindowDesk(qtbot, theme, tmp_path).start()
    qtbot.waitUntil(lambda: desk.application.bridge.model_state().phase == "ready")
    desk.window.show_models()
    yield desk
    desk.close()


def open_dialog(desk: WindowDesk) -> ModelSettingsDialog:
    desk.qtbot.waitUntil(lambda: desk.window.models.card("tiny").settings_button.isVisible())
    QTest.mouseClick(desk.window.models.card("tiny").settings_button, Qt.MouseButton.LeftButton)
    (dialog,) = desk.window.findChildren(ModelSettingsDialog)
    desk.qtbot.waitUntil(lambda: bool(dialog.facts.text()))
    return dialog


def write(dialog: ModelSettingsDialog, key: str, text: str) -> None:
    control = dialog.rows[key].field.control
    assert isinstance(control, QLineEdit | QPlainTextEdit)
    if isinstance(control, QLineEdit):
        control.setText(text)
    else:
        control.setPlainText(text)
    dialog.rows[key].field.commit()


def test_a_window_set_for_one_model_loads_it_again_and_is_kept(desk: WindowDesk) -> None:
    dialog = open_dialog(desk)
    assert dialog.facts.text() == "It takes a window of up to 512 tokens."
    assert dialog.fit.text().startswith("Fits: it needs ")
    before = dialog.fit.text()

    write(dialog, "context_length", "256")

    assert dialog.fit.text() != before
    assert dialog.save_button.text() == "Save and load again"
    QTest.mouseClick(dialog.save_button, Qt.MouseButton.LeftButton)
    desk.qtbot.waitUntil(lambda: len(desk.client.loads) == 2)
    assert desk.application.settings.load_options("tiny").context_length == 256
    assert desk.application.settings.load_options("other").context_length is None


def test_a_window_that_is_too_long_for_the_model_is_refused_with_both_numbers(desk: WindowDesk) -> None:
    dialog = open_dialog(desk)
    write(dialog, "context_length", "4096")
    dialog.save_button.click()

    assert dialog.isVisible()
    assert dialog.problem.text() == "The window must be at most 512 tokens for this model, got 4,096."


def test_what_is_reset_is_as_in_the_settings_of_all(desk: WindowDesk) -> None:
    desk.application.settings.set("model.num_threads", 2)
    dialog = open_dialog(desk)
    threads = dialog.rows["num_threads"]
    assert isinstance(threads.field.control, QLineEdit)
    assert threads.field.control.text() == "2"
    assert not threads.reset_button.isVisible()

    write(dialog, "num_threads", "1")
    assert dialog.own == {"num_threads": 1}
    QTest.mouseClick(threads.reset_button, Qt.MouseButton.LeftButton)

    assert dialog.own == {}
    assert threads.field.control.text() == "2"


def test_a_template_that_does_not_work_is_not_kept(desk: WindowDesk) -> None:
    dialog = open_dialog(desk)
    write(dialog, "chat_template", "{% for m in messages %}{{ m.content }}")
    dialog.save_button.click()

    desk.qtbot.waitUntil(lambda: dialog.problem.isVisible(), timeout=20_000)
    assert "chat template is not usable" in dialog.problem.text()
    assert dialog.isVisible()
    assert desk.application.settings.load_options("tiny").chat_template == ""


def test_a_template_that_works_shows_what_it_renders_and_is_used(desk: WindowDesk) -> None:
    dialog = open_dialog(desk)
    QTest.mouseClick(dialog.own_template_button, Qt.MouseButton.LeftButton)
    assert dialog.own["chat_template"] == TEMPLATE
    QTest.mouseClick(dialog.try_button, Qt.MouseButton.LeftButton)
    desk.qtbot.waitUntil(lambda: dialog.sample.isVisible(), timeout=20_000)
    assert "<|im_start|>user\nWhat is a hedge?" in dialog.sample.text()

    dialog.save_button.click()

    desk.qtbot.waitUntil(lambda: len(desk.client.loads) == 2)
    assert desk.application.settings.load_options("tiny").chat_template == TEMPLATE


def test_a_removal_is_asked_first_says_what_it_freed_and_forgets_the_models_settings(
    desk: WindowDesk,
) -> None:
    desk.application.settings.set_model_options("tiny", {"context_length": 128})
    desk.window.models.card("tiny").main_button.click()
    card = desk.window.models.card("tiny")
    desk.qtbot.waitUntil(lambda: card.remove_button.isVisible())
    QTest.mouseClick(card.remove_button, Qt.MouseButton.LeftButton)
    (box,) = desk.window.findChildren(QMessageBox)
    assert box.text() == "Remove Tiny 1M, 1 MB?"
    next(made for made in box.buttons() if made.text() == "Remove").click()

    notice = desk.window.models._notice
    desk.qtbot.waitUntil(lambda: notice.isVisible())
    assert notice.text().startswith("Tiny 1M was removed; ")
    assert notice.text().endswith(" on disk are free again.")
    assert desk.application.settings.value("model.options") == {}


def test_a_file_of_ones_own_is_only_taken_off_the_list(desk: WindowDesk, tmp_path: Path) -> None:
    mine = write_tiny_gguf(tmp_path / "mine.gguf", seed=1)
    desk.application.models.add(mine, name="mine")
    desk.qtbot.waitUntil(lambda: desk.application.models.state.get("mine") is not None)

    desk.window.models.card("mine").remove_button.click()

    notice = desk.window.models._notice
    desk.qtbot.waitUntil(lambda: notice.isVisible())
    assert notice.text() == f"tiny is off the list. Its file stays at {mine}."
    assert mine.is_file()
