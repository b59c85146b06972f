"""The settings page, as a person uses it in the whole window."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QCoreApplication, Qt
from PySide6.QtGui import QAccessible
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QComboBox, QLineEdit, QMessageBox, QPlainTextEdit
from pytestqt.qtbot import QtBot
from window_desk import WindowDesk

from inglenook.app.settings_page.setting_field import SettingField
from inglenook.app.settings_page.settings_page import SettingsPage
from inglenook.app.settings_table import SETTINGS
from inglenook.app.translations.catalogue import Catalogue, catalogue_texts
from inglenook.app.window.theme import Theme


@pytest.fixture
def desk(desk: WindowDesk) -> WindowDesk:
    desk.window.actions_by_name["settings"].trigger()
    return desk


@pytest.fixture
def page(desk: WindowDesk) -> SettingsPage:
    return desk.join.settings.page


def shown(page: SettingsPage) -> list[str]:
    return [key for key, row in page.rows.items() if row.isVisible()]


def field(page: SettingsPage, key: str) -> QLineEdit:
    control = page.rows[key].field.control
    assert isinstance(control, QLineEdit)
    return control


def type_in(page: SettingsPage, key: str, text: str) -> None:
    control = field(page, key)
    control.setFocus()
    control.selectAll()
    QTest.keyClicks(control, text)
    QTest.keyClick(control, Qt.Key.Key_Return)


def test_the_key_opens_it_with_the_search_ready_and_escape_closes_it(desk: WindowDesk) -> None:
    assert desk.window.pages.name == "settings"
    assert desk.join.settings.page.search.hasFocus()

    QTest.keyClick(desk.join.settings.page.search, Qt.Key.Key_Escape)

    assert desk.window.page is desk.window.chat


def test_every_setting_of_the_table_has_a_row_and_those_of_experts_come_on_request(
    desk: WindowDesk, page: SettingsPage
) -> None:
    plain = {spec.key for spec in SETTINGS if spec.label and not spec.is_expert and not spec.shown_with}
    assert set(shown(page)) == plain

    QTest.mouseClick(page.expert_box, Qt.MouseButton.LeftButton)

    assert set(shown(page)) == {spec.key for spec in SETTINGS if spec.label and not spec.shown_with}
    assert desk.application.settings.value("settings.is_expert") is True


def test_a_number_counts_at_once_and_can_be_reset(desk: WindowDesk, page: SettingsPage) -> None:
    type_in(page, "model.idle_minutes", "2")

    assert desk.client.idle_after_s == 120
    row = page.rows["model.idle_minutes"]
    assert row.reset_button.isVisible()
    QTest.mouseClick(row.reset_button, Qt.MouseButton.LeftButton)
    assert desk.client.idle_after_s == 900
    assert field(page, "model.idle_minutes").text() == "15"
    assert not row.reset_button.isVisible()
    assert field(page, "model.idle_minutes").hasFocus()


def test_a_bad_value_is_said_in_a_sentence_and_the_one_before_stays(
    desk: WindowDesk, page: SettingsPage
) -> None:
    type_in(page, "model.idle_minutes", "soon")

    row = page.rows["model.idle_minutes"]
    assert row.problem.isVisible()
    assert row.problem.text() == (
        "Unload a model after must be a whole number, got “soon”. The value before stays in force."
    )
    assert desk.application.settings.value("model.idle_minutes") == 15
    type_in(page, "model.idle_minutes", "never")
    assert not row.problem.isVisible()
    assert desk.client.idle_after_s is None


def test_arrow_keys_step_a_number_within_its_bounds(desk: WindowDesk, page: SettingsPage) -> None:
    minutes, scale = field(page, "model.idle_minutes"), field(page, "appearance.scale")
    minutes.setFocus()

    QTest.keyClick(minutes, Qt.Key.Key_Up)
    assert desk.client.idle_after_s == 1_200
    for _ in range(6):
        QTest.keyClick(minutes, Qt.Key.Key_Down)

    assert minutes.text() == "never"
    assert desk.client.idle_after_s is None
    QTest.keyClick(scale, Qt.Key.Key_Up)
    assert desk.window.theme.scale == 1.1


def test_a_style_says_its_values_and_own_values_show_their_fields(
    desk: WindowDesk, page: SettingsPage
) -> None:
    choices = page.rows["chat.preset"].field.control
    assert isinstance(choices, QComboBox)
    choices.setFocus()

    QTest.keyClick(choices, Qt.Key.Key_Down)
    assert desk.application.settings.value("chat.preset") == "creative"
    assert "temperature 1.1" in page.rows["chat.preset"].hint.text()
    QTest.keyClick(choices, Qt.Key.Key_Down)

    assert "chat.temperature" in shown(page)
    type_in(page, "chat.temperature", "0,3")
    assert desk.application.settings.sampling().temperature == 0.3


def test_search_finds_by_name_help_and_choices_also_those_of_experts(page: SettingsPage) -> None:
    for words, key in [("seed", "chat.seed"), ("half MEMORY", "model.kv_type"), ("creative", "chat.preset")]:
        page.search.setText(words)
        assert key in shown(page), words
    page.search.setText("temperature")
    assert "chat.temperature" in shown(page)

    page.search.setText("zebra")

    assert shown(page) == []
    assert page._nothing.isVisible()
    assert "“zebra”" in page._nothing.text()


def test_a_number_that_search_found_begins_ones_own_style(desk: WindowDesk, page: SettingsPage) -> None:
    desk.application.settings.set("chat.preset", "creative")
    page.search.setText("min p")
    assert field(page, "chat.min_p").text() == "0.05"

    type_in(page, "chat.min_p", "0.1")

    assert desk.application.settings.value("chat.preset") == "own"
    assert desk.application.settings.sampling().temperature == 1.1


def test_instructions_are_kept_when_the_field_is_left_and_are_what_the_model_is_told(
    desk: WindowDesk, page: SettingsPage
) -> None:
    text = page.rows["chat.system"].field.control
    assert isinstance(text, QPlainTextEdit)
    text.setFocus()
    QTest.keyClicks(text, "Be brief.")
    QTest.keyClick(text, Qt.Key.Key_Tab)

    assert desk.application.settings.value("chat.system") == "Be brief."
    desk.window.show_chat()
    desk.ask("Why?", "So.")
    messages = desk.client.requests[-1].what.messages
    assert messages[0] == {"role": "system", "content": "Be brief."}


def test_a_setting_that_counts_from_the_next_load_offers_to_load_again(
    desk: WindowDesk, page: SettingsPage
) -> None:
    page.expert_box.click()
    type_in(page, "model.context_length", "1024")

    assert page.reload_button.isVisible()
    assert page.reload_button.text() == "Load Tiny 1M again"
    QTest.mouseClick(page.reload_button, Qt.MouseButton.LeftButton)

    desk.qtbot.waitUntil(lambda: len(desk.client.loads) == 2)
    assert desk.application.settings.load_options("tiny").context_length == 1024
    assert not page.reload_button.isVisible()


def test_resetting_all_is_asked_first_and_says_how_many(desk: WindowDesk, page: SettingsPage) -> None:
    desk.application.settings.reset(*desk.application.settings.shown_keys())
    assert not page.reset_all_button.isEnabled()
    desk.application.settings.set("chat.preset", "precise")
    desk.application.settings.set("chat.figures", False)

    QTest.mouseClick(page.reset_all_button, Qt.MouseButton.LeftButton)
    (box,) = desk.window.findChildren(QMessageBox)
    assert box.text() == "2 settings go back to the default."
    next(made for made in box.buttons() if made.text() == "Reset").click()

    assert desk.application.settings.value("chat.preset") == "balanced"
    assert desk.application.settings.value("chat.figures") is True
    assert not page.reset_all_button.isEnabled()


def test_tab_reaches_every_control_in_the_order_of_the_page_and_each_has_a_name(
    desk: WindowDesk, page: SettingsPage
) -> None:
    page.search.setFocus()
    reached = []
    for _ in range(80):
        focus = QApplication.focusWidget()
        if focus is None or not page.isAncestorOf(focus):
            break
        reached.append(focus)
        name = QAccessible.queryAccessibleInterface(focus).text(QAccessible.Text.Name)
        assert name, type(focus)
        QTest.keyClick(focus, Qt.Key.Key_Tab)

    controls = [row.field.control for row in page.rows.values() if row.isVisible()]
    assert [widget for widget in reached if widget in controls] == controls
    assert len(set(map(id, reached))) == len(reached)
    for key, row in page.rows.items():
        assert row.field.control.accessibleName() == row.spec.label, key


def test_nothing_is_cut_at_twice_the_size(desk: WindowDesk, page: SettingsPage) -> None:
    desk.window.theme.set_scale(2.0)
    desk.window.resize(1280, 720)
    page.expert_box.click()
    QApplication.processEvents()

    for key, row in page.rows.items():
        if row.isVisible():
            control = row.field.control
            assert control.height() >= control.minimumSizeHint().height(), key
            assert row.name.height() >= row.name.heightForWidth(row.name.width()), key
            assert row.width() <= page._scroll.viewport().width(), key


def test_what_zero_is_called_is_written_and_read_in_the_users_language(qtbot: QtBot, theme: Theme) -> None:
    spec = next(spec for spec in SETTINGS if spec.key == "chat.max_tokens")
    german = Catalogue(catalogue_texts("de"))
    QCoreApplication.installTranslator(german)
    try:
        field = SettingField(spec, theme)
    finally:
        QCoreApplication.removeTranslator(german)
    qtbot.addWidget(field)
    field.show_value(500)
    assert isinstance(field.control, QLineEdit)

    field.control.setText("Ohne Grenze")
    with qtbot.waitSignal(field.edited) as edited:
        field.commit()

    assert edited.args == [0]
    assert field.control.text() == "ohne Grenze"
