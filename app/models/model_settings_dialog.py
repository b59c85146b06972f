"""The settings of one model: its window, how keys and values are kept, threads, back end and chat template.

What is not set here is as in the settings of all. A changed template is tried on the model before it is kept. The
dialog loads and saves nothing; it asks by signals. GUI thread only.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from PySide6.QtCore import Qt, QTimer, Signal
from PySide6.QtWidgets import QDialog, QHBoxLayout, QVBoxLayout, QWidget

from inglenook.app.settings_page.form_controls import lay_out_form
from inglenook.app.settings_page.form_style import form_style
from inglenook.app.settings_page.setting_row import SettingRow
from inglenook.app.settings_table import MODEL_SETTINGS
from inglenook.app.text.plain_label import PlainLabel, button
from inglenook.app.text.rich_text import label
from inglenook.app.translations import figures
from inglenook.app.translations.sentences import said
from inglenook.app.window.theme import Theme
from inglenook.engine.library.model_details import ModelDetails, TemplateCheck

TEMPLATE = "chat_template"


class ModelSettingsDialog(QDialog):
    """A form for one model.

    Signals: `changed(dict)` after each change, with what is set for this model alone; `template_check_requested(str)`;
    `saved(dict)`. `common` are the values of the settings of all.
    """

    changed = Signal(dict)
    template_check_requested = Signal(str)
    saved = Signal(dict)

    def __init__(
        self,
        theme: Theme,
        title: str,
        own: Mapping[str, Any],
        common: Mapping[str, Any],
        *,
        is_loaded: bool,
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self._own, self._common = dict(own), dict(common)
        self._details: ModelDetails | None = None
        self._checked = own.get(TEMPLATE, "")
        self._is_saving = False
        px = theme.px
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowTitle(self.tr("Settings of {0}").format(label(title, 60)))
        self.setStyleSheet(form_style(theme))
        self.title = PlainLabel(label(title, 80), look="heading")
        self.facts = PlainLabel(look="muted", is_selectable=True)
        self.fit = PlainLabel(look="small", is_selectable=True)
        self.rows = {spec.key: SettingRow(spec, theme) for spec in MODEL_SETTINGS}
        layout = QVBoxLayout()
        layout.setSpacing(px(2))
        for widget in (self.title, self.facts, self.fit, *self.rows.values()):
            layout.addWidget(widget)
        for key, row in self.rows.items():
            row.edited.connect(self._take)
            row.reset_requested.connect(self._reset)
            self._show(key)
        self.own_template_button = button(self.tr("Begin with the model's own"), "quiet_button")
        self.own_template_button.setEnabled(False)
        self.own_template_button.clicked.connect(self._copy_template)
        self.try_button = button(self.tr("Try it"))
        self.try_button.setAccessibleName(self.tr("Try the chat template"))
        self.try_button.clicked.connect(self._try)
        line = QHBoxLayout()
        line.setSpacing(px(8))
        line.addWidget(self.own_template_button)
        line.addStretch()
        line.addWidget(self.try_button)
        layout.addLayout(line)
        self.problem = PlainLabel(look="error", is_selectable=True)
        self.remark = PlainLabel(look="caution", is_selectable=True)
        self.sample = PlainLabel(look="small", is_selectable=True)
        for made in (self.problem, self.remark, self.sample):
            made.hide()
            layout.addWidget(made)
        layout.addStretch()
        self.cancel_button = button(self.tr("Cancel"))
        self.cancel_button.clicked.connect(self.reject)
        words = self.tr("Save and load again") if is_loaded else self.tr("Save")
        self.save_button = button(words, "primary_button")
        self.save_button.setDefault(True)
        self.save_button.clicked.connect(self._save)
        foot = QHBoxLayout()
        foot.addStretch()
        foot.addWidget(self.cancel_button)
        foot.addWidget(self.save_button)
        self._scroll = lay_out_form(self, layout, foot, theme)
        self.resize(px(620), px(620))
        self.rows["context_length"].field.setFocus()

    @property
    def own(self) -> dict[str, Any]:
        """What is set for this model alone, as far as it was taken."""
        return dict(self._own)

    def show_details(self, details: ModelDetails) -> None:
        """Say what the model's file says of it."""
        self._details = details
        self.facts.setText(
            self.tr("It takes a window of up to {0} tokens.").format(figures.count(details.context_length))
        )
        self.own_template_button.setEnabled(bool(details.chat_template))

    def show_fit(self, sentence: str) -> None:
        """Say what the model needs with these settings, and what is free."""
        self.fit.setText(sentence)

    def show_check(self, template: str, check: TemplateCheck) -> None:
        """Say what came of trying a template; goes on with saving if that waits for it."""
        self.try_button.setEnabled(True)
        self.save_button.setEnabled(True)
        self._say(check.problem, check.remark)
        shown = self.tr("A short chat becomes {0} tokens:\n{1}").format(check.num_tokens, check.sample)
        self.sample.setText(shown if check.sample and not check.problem else check.sample)
        self.sample.setVisible(bool(check.sample))
        QTimer.singleShot(0, self, self._reveal_check)
        is_waiting, self._is_saving = self._is_saving, False
        if not check.problem:
            self._checked = template
            if is_waiting:
                self._save()

    def _reveal_check(self) -> None:
        """Bring what came of trying a template into sight."""
        said = (self.problem, self.remark, self.sample)
        for label_ in reversed([one for one in said if not one.isHidden()]):
            self._scroll.ensureWidgetVisible(label_)

    def _say(self, problem: str, remark: str = "") -> None:
        self.problem.setText(said(problem))
        self.problem.setVisible(bool(problem))
        self.remark.setText(said(remark))
        self.remark.setVisible(bool(remark))

    def _take(self, key: str, value: object) -> None:
        if (key != TEMPLATE and value == self._common.get(key)) or (
            key == TEMPLATE and not str(value).strip()
        ):
            self._own.pop(key, None)
        else:
            self._own[key] = value
        self.rows[key].reset_button.setVisible(key in self._own)
        self.changed.emit(self.own)

    def _reset(self, key: str) -> None:
        self._own.pop(key, None)
        self._show(key)
        self.rows[key].field.setFocus()
        self.changed.emit(self.own)

    def _show(self, key: str) -> None:
        value = self._own.get(key, self._common.get(key, self.rows[key].spec.default))
        self.rows[key].show_value(value, is_default=key not in self._own)

    def _copy_template(self) -> None:
        if self._details is not None:
            self._own[TEMPLATE] = self._details.chat_template
            self._show(TEMPLATE)
            self.rows[TEMPLATE].field.setFocus()
            self.changed.emit(self.own)

    def _try(self) -> None:
        self.rows[TEMPLATE].field.commit()
        template = self._own.get(TEMPLATE, "")
        if not template:
            self._say("", self.tr("The model's own template is in force; there is nothing to try."))
            return
        self._say("", self.tr("Trying it…"))
        self.try_button.setEnabled(False)
        self.template_check_requested.emit(template)

    def _save(self) -> None:
        for row in self.rows.values():
            row.field.commit()
        faulty = next((row for row in self.rows.values() if row.problem.text()), None)
        if faulty is not None:
            faulty.field.setFocus()
            return
        longest = self._details.context_length if self._details is not None else 0
        wanted = self._own.get("context_length", 0)
        if longest and wanted > longest:
            self._say(
                self.tr("The window must be at most {0} tokens for this model, got {1}.").format(
                    figures.count(longest), figures.count(wanted)
                )
            )
            self.rows["context_length"].field.setFocus()
            return
        template = self._own.get(TEMPLATE, "")
        if template and template != self._checked:
            self._is_saving = True
            self.save_button.setEnabled(False)
            self._say("", self.tr("Trying the template…"))
            self.template_check_requested.emit(template)
            return
        self.saved.emit(self.own)
