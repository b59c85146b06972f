"""The dialog in which a persona is made or changed: its name, its instructions, its style, and own values.

It saves nothing; it asks by `saved` and stays open until told that it worked. GUI thread only.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from PySide6.QtCore import QCoreApplication, Qt, Signal
from PySide6.QtWidgets import QDialog, QHBoxLayout, QVBoxLayout, QWidget

from inglenook.app.settings_page.form_controls import lay_out_form
from inglenook.app.settings_page.form_style import form_style
from inglenook.app.settings_page.setting_row import SettingRow
from inglenook.app.settings_presets import OWN, PRESETS, PresetValues, preset_values, values_in_words
from inglenook.app.settings_table import OWN_STYLE_KEYS, SETTINGS, SettingSpec
from inglenook.app.text.plain_label import PlainLabel, button
from inglenook.app.translations.sentences import said, said_list
from inglenook.app.window.theme import Theme
from inglenook.storage.personas import MAX_NAME_CHARACTERS, MAX_SYSTEM_CHARACTERS, Persona

_BY_KEY = {spec.key: spec for spec in SETTINGS}
_OWN = tuple(replace(_BY_KEY[key], key=key.removeprefix("chat.")) for key in OWN_STYLE_KEYS)


def persona_fields() -> tuple[SettingSpec, ...]:
    """Return what a persona has besides values of its own, for the form."""
    translate = QCoreApplication.translate
    words = (
        translate("settings", "As in the settings"),
        translate("settings", "Precise"),
        translate("settings", "Balanced"),
        translate("settings", "Creative"),
        translate("settings", "Values of its own"),
    )
    return (
        SettingSpec(
            "name",
            "",
            translate("settings", "Name"),
            translate("settings", "For instance what it is for."),
            maximum=MAX_NAME_CHARACTERS,
        ),
        SettingSpec(
            "system",
            "",
            translate("settings", "Instructions"),
            translate(
                "settings",
                "What the model is told before each conversation. Empty takes those of the settings.",
            ),
            maximum=MAX_SYSTEM_CHARACTERS,
            is_long=True,
        ),
        SettingSpec(
            "preset",
            "",
            translate("settings", "Style of answers"),
            choices=("", *PRESETS, OWN),
            words=words,
        ),
    )


class PersonaDialog(QDialog):
    """A form for one persona; id 0 for a new one. Signals: `saved(Persona)` asks to save; then call `accept` or `show_problem`."""

    saved = Signal(object)

    def __init__(
        self, theme: Theme, persona: Persona, style: PresetValues, parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self._persona = persona
        self._values: dict[str, Any] = {
            "name": persona.name,
            "system": persona.system,
            "preset": persona.preset if persona.preset in (*PRESETS, OWN) else "",
        }
        own = preset_values(OWN, persona.sampling) if persona.preset == OWN else style
        self._values |= {spec.key: getattr(own, spec.key) for spec in _OWN}
        px = theme.px
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowTitle(self.tr("Edit persona") if persona.id else self.tr("New persona"))
        self.setStyleSheet(form_style(theme))
        self.rows = {spec.key: SettingRow(spec, theme) for spec in (*persona_fields(), *_OWN)}
        layout = QVBoxLayout()
        layout.setSpacing(0)
        for key, row in self.rows.items():
            row.show_value(self._values[key], is_default=True)
            row.reset_button.hide()
            row.edited.connect(self._take)
            layout.addWidget(row)
        name = self.rows["name"].field.control
        name.setFixedWidth(px(260))
        layout.addStretch()
        self.problem = PlainLabel(look="error", is_selectable=True)
        self.problem.hide()
        self.save_button = button(self.tr("Save"), "primary_button")
        self.save_button.setDefault(True)
        self.save_button.clicked.connect(self._save)
        self.cancel_button = button(self.tr("Cancel"))
        self.cancel_button.clicked.connect(self.reject)
        foot = QHBoxLayout()
        foot.addWidget(self.problem, 1)
        foot.addStretch()
        foot.addWidget(self.cancel_button)
        foot.addWidget(self.save_button)
        lay_out_form(self, layout, foot, theme)
        self._show_style()
        self.resize(px(560), px(520))
        name.setFocus()

    def show_problem(self, sentence: str) -> None:
        """Say why it could not be saved."""
        self.problem.setText(said(sentence))
        self.problem.setVisible(bool(sentence))
        self.save_button.setEnabled(True)

    def _take(self, key: str, value: object) -> None:
        self._values[key] = value
        self._show_style()

    def _show_style(self) -> None:
        preset = self._values["preset"]
        for spec in _OWN:
            self.rows[spec.key].setVisible(preset == OWN)
        words = said_list(values_in_words(PRESETS[preset])) if preset in PRESETS else ""
        self.rows["preset"].show_hint(f"{words[:1].upper()}{words[1:]}." if words else "")

    def _save(self) -> None:
        for row in self.rows.values():
            row.field.commit()
        faulty = next((row for row in self.rows.values() if not row.isHidden() and row.problem.text()), None)
        if faulty is not None:
            faulty.field.setFocus()
            return
        self.show_problem("")
        self.save_button.setEnabled(False)
        values = self._values
        own = {spec.key: values[spec.key] for spec in _OWN} if values["preset"] == OWN else {}
        self.saved.emit(Persona(self._persona.id, values["name"], values["system"], values["preset"], own))
