"""The dialog in which a model file of one's own is taken in: used where it is, copied, or copied in fewer bits.

It says first what the file is and whether it fits. It imports nothing; it asks by a signal. GUI thread only.
"""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import QCoreApplication, Signal
from PySide6.QtWidgets import QDialog, QHBoxLayout, QVBoxLayout, QWidget

from inglenook.app.settings_page.form_style import form_style
from inglenook.app.settings_page.setting_row import SettingRow
from inglenook.app.settings_table import SettingSpec
from inglenook.app.text.plain_label import PlainLabel, button
from inglenook.app.text.rich_text import label
from inglenook.app.translations.sentences import said
from inglenook.app.window.theme import Theme

REFERENCE, COPY, EIGHT_BITS, FOUR_BITS = "reference", "copy", "qint8", "qint4"


def import_way(*, has_fewer_bits: bool) -> SettingSpec:
    """Return the choice how a file is taken in: as it is, and for a folder of full numbers also in fewer bits."""
    translate = QCoreApplication.translate
    choices = (REFERENCE, COPY, EIGHT_BITS, FOUR_BITS) if has_fewer_bits else (REFERENCE, COPY)
    words = (
        translate("settings", "Use it where it is"),
        translate("settings", "Copy it into the library"),
        translate("settings", "Copy in 8 bits"),
        translate("settings", "Copy in 4 bits"),
    )[: len(choices)]
    return SettingSpec(
        "way", REFERENCE, translate("settings", "How to take it in"), choices=choices, words=words
    )


class ImportDialog(QDialog):
    """Asks how to take a model in. Signals: `chosen(str)`, one of the ways."""

    chosen = Signal(str)

    def __init__(self, theme: Theme, path: Path, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._way = REFERENCE
        self._hints: dict[str, str] = {}
        px = theme.px
        self.setWindowTitle(self.tr("Use a model file"))
        self.setStyleSheet(form_style(theme))
        self.title = PlainLabel(label(path.name, 120), look="heading")
        self.facts = PlainLabel(self.tr("Looking at it…"), look="muted", is_selectable=True)
        self.fit = PlainLabel(look="small", is_selectable=True)
        self.problem = PlainLabel(look="error", is_selectable=True)
        self.problem.hide()
        self.hint = PlainLabel(look="small")
        self.row: SettingRow | None = None
        self.cancel_button = button(self.tr("Cancel"))
        self.cancel_button.clicked.connect(self.reject)
        self.import_button = button(self.tr("Add this model"), "primary_button")
        self.import_button.setDefault(True)
        self.import_button.setEnabled(False)
        self.import_button.clicked.connect(self._on_import)
        self._column = QVBoxLayout()
        self._column.setSpacing(px(4))
        for widget in (self.title, self.facts, self.fit, self.problem):
            self._column.addWidget(widget)
        foot = QHBoxLayout()
        foot.setSpacing(px(8))
        foot.addStretch()
        foot.addWidget(self.cancel_button)
        foot.addWidget(self.import_button)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(px(22), px(18), px(22), px(16))
        layout.setSpacing(px(10))
        layout.addLayout(self._column)
        layout.addWidget(self.hint)
        layout.addStretch()
        layout.addLayout(foot)
        self.resize(px(540), px(280))

    def show_facts(self, facts: str, fit: str, hints: dict[str, str]) -> None:
        """Say what the file is; `hints` has a sentence for each way in which it can be taken in."""
        self.facts.setText(facts)
        self.fit.setText(fit)
        self._hints = hints
        self.row = SettingRow(import_way(has_fewer_bits=EIGHT_BITS in hints), self._theme)
        self.row.reset_button.hide()
        self.row.edited.connect(self._take_way)
        self._column.addWidget(self.row)
        self._take_way("way", REFERENCE)
        self.import_button.setEnabled(True)
        self.row.field.setFocus()

    def show_problem(self, sentence: str) -> None:
        """Say why it cannot be taken in."""
        self.facts.hide()
        self.problem.setText(said(sentence))
        self.problem.show()

    def _take_way(self, _key: str, way: object) -> None:
        self._way = str(way)
        self.hint.setText(self._hints.get(self._way, ""))

    def _on_import(self) -> None:
        self.accept()
        self.chosen.emit(self._way)
