"""Personas in the whole window: made, changed, deleted, chosen for a chat, and kept with what they wrote."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QComboBox, QLineEdit, QMessageBox, QPlainTextEdit, QPushButton
from pytestqt.qtbot import QtBot
from window_desk import WindowDesk

from inglenook.app.settings_page.persona_dialog import PersonaDialog
from inglenook.app.window.theme import Theme
from inglenook.storage.messages import Messages


def add(desk: WindowDesk, name: str, system: str, preset: str = "", **sampling: Any) -> int:
    made: list[int] = []
    desk.application.personas.add(name, system, preset, sampling, made.append, made.append)  # type: ignore[arg-type]
    desk.qtbot.waitUntil(lambda: bool(made))
    return made[0]


def dialog_of(desk: WindowDesk) -> PersonaDialog:
    (dialog,) = [d for d in desk.window.findChildren(PersonaDialog) if d.isVisible()]
    return dialog


def write(dialog: PersonaDialog, key: str, text: str) -> None:
    control = dialog.rows[key].field.control
    assert isinstance(control, QLineEdit | QPlainTextEdit)
    control.setFocus()
    control.selectAll()
    QTest.keyClicks(control, text)


def kept(desk: WindowDesk) -> dict[str, Any]:
    """What the last reply keeps of how it was written."""
    message_id = desk.messages[-1].id
    found: list[dict[str, Any]] = []
    desk.application.tasks.read(lambda db: Messages(db).get(int(message_id)).sampling, found.append)
    desk.qtbot.waitUntil(lambda: bool(found))
    return found[0]


def test_one_is_made_in_a_form_and_listed(desk: WindowDesk) -> None:
    desk.window.actions_by_name["settings"].trigger()
    page = desk.join.settings.page
    QTest.mouseClick(page.personas.new_button, Qt.MouseButton.LeftButton)
    dialog = dialog_of(desk)
    write(dialog, "name", "Editor")
    write(dialog, "system", "Cut what says nothing.")
    style = dialog.rows["preset"].field.control
    assert isinstance(style, QComboBox)
    style.setCurrentIndex(4)
    assert dialog.rows["temperature"].isVisible()
    write(dialog, "temperature", "0.4")
    QTest.mouseClick(dialog.save_button, Qt.MouseButton.LeftButton)

    desk.qtbot.waitUntil(lambda: len(desk.application.personas.personas) == 1)
    persona = desk.application.personas.personas[0]
    assert (persona.name, persona.system, persona.preset) == ("Editor", "Cut what says nothing.", "own")
    assert persona.sampling["temperature"] == 0.4
    assert [row.name.text() for row in page.personas.rows] == ["Editor"]


def test_a_form_that_cannot_be_saved_says_why_and_stays(desk: WindowDesk) -> None:
    add(desk, "Editor", "")
    desk.join.settings.new_persona()
    dialog = dialog_of(desk)
    write(dialog, "name", "editor")
    dialog.save_button.click()

    desk.qtbot.waitUntil(lambda: dialog.problem.isVisible())
    assert dialog.problem.text() == "There is a persona named editor already. Choose another name."
    assert dialog.isVisible()
    write(dialog, "name", "Other")
    dialog.save_button.click()
    desk.qtbot.waitUntil(lambda: len(desk.application.personas.personas) == 2)


def test_an_own_value_out_of_range_keeps_the_form_open_at_its_field(desk: WindowDesk) -> None:
    persona_id = add(desk, "Editor", "", "own", temperature=0.5)
    desk.join.settings.edit_persona(persona_id)
    dialog = dialog_of(desk)
    write(dialog, "temperature", "9")
    dialog.save_button.click()

    assert dialog.isVisible()
    assert dialog.rows["temperature"].problem.text().startswith("Temperature must be from 0 to 2, got 9.")
    assert desk.application.personas.personas[0].sampling == {"temperature": 0.5}


def test_a_persona_chosen_for_a_chat_writes_it_and_its_values_are_kept_with_the_reply(
    desk: WindowDesk,
) -> None:
    persona_id = add(desk, "Editor", "Cut what says nothing.", "precise")
    desk.application.settings.set("chat.system", "Be kind.")
    desk.application.personas.choose(persona_id)

    desk.ask("Why?", "So.")
    desk.application.settings.set("chat.preset", "creative")

    request = desk.client.requests[-1].what
    assert request.messages[0] == {"role": "system", "content": "Cut what says nothing."}
    assert request.sampling.temperature == 0.2
    values = kept(desk)
    assert (values["persona"], values["preset"], values["temperature"]) == ("Editor", "precise", 0.2)
    assert values["system"] == "Cut what says nothing."
    assert values["context_length"] == 2048


def test_each_chat_keeps_its_persona_also_over_a_restart(
    desk: WindowDesk, qtbot: QtBot, theme: Theme, tmp_path: Path
) -> None:
    persona_id = add(desk, "Editor", "Cut.")
    desk.application.personas.choose(persona_id)
    desk.ask("Why?", "So.")
    desk.window.actions_by_name["new_chat"].trigger()
    assert desk.application.personas.current is None
    desk.ask("How?", "Thus.")
    assert desk.client.requests[-1].what.messages[0]["role"] == "user"
    first = next(e.id for e in desk.window.sidebar.chats.model.entries if e.title == "Why?")
    desk.close()

    again = WindowDesk(qtbot, theme, tmp_path).start()
    again.join.chats.open(first)
    qtbot.waitUntil(lambda: again.application.personas.current is not None)
    again.ask("And then?", "Then.")

    assert again.client.requests[-1].what.messages[0] == {"role": "system", "content": "Cut."}
    again.close()


def test_new_chats_begin_with_the_persona_of_the_settings(desk: WindowDesk) -> None:
    persona_id = add(desk, "Editor", "Cut.")
    desk.window.actions_by_name["settings"].trigger()
    row = desk.join.settings.page.personas.rows[0]
    # A page that has just been made is laid out next.
    desk.qtbot.waitUntil(lambda: row.default_button.isVisible() and row.default_button.width() < row.width())
    QTest.mouseClick(row.default_button, Qt.MouseButton.LeftButton)

    desk.qtbot.waitUntil(row.pill.isVisible)
    desk.window.show_chat()
    desk.ask("Why?", "So.")
    assert desk.client.requests[-1].what.messages[0] == {"role": "system", "content": "Cut."}
    assert desk.application.settings.value("chat.persona") == persona_id


def test_a_deleted_persona_leaves_its_chats_to_the_settings(desk: WindowDesk) -> None:
    persona_id = add(desk, "Editor", "Cut.")
    desk.application.settings.set("chat.persona", persona_id)
    desk.ask("Why?", "So.")
    desk.window.actions_by_name["settings"].trigger()
    QTest.mouseClick(desk.join.settings.page.personas.rows[0].delete_button, Qt.MouseButton.LeftButton)
    (box,) = desk.window.findChildren(QMessageBox)
    delete: QPushButton = next(made for made in box.buttons() if made.text() == "Delete")  # type: ignore[assignment]
    delete.click()
    desk.qtbot.waitUntil(lambda: not desk.application.personas.personas)

    desk.window.show_chat()
    desk.ask("And?", "Then.")

    assert desk.client.requests[-1].what.messages[0]["role"] == "user"
    assert desk.application.settings.value("chat.persona") == 0
