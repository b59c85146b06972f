"""One setting on a page: its name and help at the left, its control at the right, and what is wrong with it below."""

from __future__ import annotations

from typing import Any

from PySide6.QtCore import QCoreApplication, Qt, Signal
from PySide6.QtWidgets import QGridLayout, QHBoxLayout, QVBoxLayout, QWidget

from inglenook.app.settings_page.setting_field import SettingField
from inglenook.app.settings_table import SettingSpec
from inglenook.app.text.plain_label import PlainLabel, button
from inglenook.app.translations.sentences import said
from inglenook.app.window.theme import Theme


class SettingRow(QWidget):
    """Shows one setting. Signals: `edited(key, value)`, sound; `reset_requested(key)`."""

    edited = Signal(str, object)
    reset_requested = Signal(str)

    def __init__(self, spec: SettingSpec, theme: Theme) -> None:
        super().__init__()
        self.spec, self._theme = spec, theme
        self._is_narrow = False
        self._beside = Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignRight
        self.name = PlainLabel(translated(spec.label), look="text")
        self.hint = PlainLabel(translated(spec.hint), look="small")
        if not spec.hint:
            self.hint.hide()
        self.problem = PlainLabel(look="error", is_selectable=True)
        self.problem.hide()
        self.field = SettingField(spec, theme)
        self.field.edited.connect(lambda value: self.edited.emit(spec.key, value))
        self.field.faulted.connect(self._show_problem)
        self.name.setBuddy(self.field.control)
        self.reset_button = button(self.tr("Reset"), "quiet_button")
        self.reset_button.setAccessibleName(self.tr("Reset {0}").format(translated(spec.label)))
        self.reset_button.clicked.connect(lambda: self.reset_requested.emit(spec.key))
        self._words = QVBoxLayout()
        self._words.addWidget(self.name)
        self._words.addWidget(self.hint)
        self._side = QHBoxLayout()
        self._side.addWidget(self.reset_button)
        if not self.field.is_wide:
            self._side.addWidget(self.field)
        self._grid = QGridLayout(self)
        self._grid.addLayout(self._words, 0, 0)
        self._grid.addLayout(self._side, 0, 1, self._beside)
        if self.field.is_wide:
            self._grid.addWidget(self.field, 1, 0, 1, 2)
        self._grid.addWidget(self.problem, 2, 0, 1, 2)
        self._grid.setColumnStretch(0, 1)
        self.restyle()

    def show_value(self, value: Any, *, is_default: bool) -> None:
        """Show the value in force."""
        self.field.show_value(value)
        self.reset_button.setVisible(not is_default)

    def show_hint(self, hint: str) -> None:
        """Say more than the table does, for instance which values a style has."""
        self.hint.setText(hint)
        self.hint.setVisible(bool(hint))

    def has_words(self, words: str) -> bool:
        """Whether all of some words, in small letters, are in its name, help or choices."""
        spec = self.spec
        text = " ".join((spec.label, self.hint.text(), *spec.words, spec.group, spec.unit)).casefold()
        return all(word in text for word in words.split())

    def set_narrow(self, *, is_narrow: bool) -> None:
        """Put the control below the words where there is no room beside them."""
        if is_narrow != self._is_narrow and not self.field.is_wide:
            self._is_narrow = is_narrow
            self._grid.removeItem(self._side)
            if is_narrow:
                self._grid.addLayout(self._side, 1, 0, 1, 2, Qt.AlignmentFlag.AlignLeft)
            else:
                self._grid.addLayout(self._side, 0, 1, self._beside)
            self._side.setDirection(
                QHBoxLayout.Direction.RightToLeft if is_narrow else QHBoxLayout.Direction.LeftToRight
            )

    def restyle(self) -> None:
        """Take the theme's distances anew."""
        px = self._theme.px
        self._words.setSpacing(px(2))
        self._side.setSpacing(px(6))
        self._grid.setContentsMargins(0, px(10), 0, px(10))
        self._grid.setHorizontalSpacing(px(20))
        self._grid.setVerticalSpacing(px(6))
        self.field.restyle()

    def _show_problem(self, sentence: str) -> None:
        shown = self.tr("{0} The value before stays in force.").format(said(sentence)) if sentence else ""
        self.problem.setText(shown)
        self.problem.setVisible(bool(sentence))


def translated(text: str) -> str:
    """Return a text of the settings' table in the user's language."""
    return QCoreApplication.translate("settings", text) if text else ""
