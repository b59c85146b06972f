"""The settings page: groups of rows made from the table, a search over them, and a switch for those of experts.

It keeps nothing; it shows the values that it is given and asks by signals. GUI thread only.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from PySide6.QtCore import Qt, QTimer, Signal
from PySide6.QtGui import QResizeEvent, QShowEvent
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLineEdit, QVBoxLayout, QWidget

from inglenook.app.settings_page.form_controls import TickBox
from inglenook.app.settings_page.form_style import form_style
from inglenook.app.settings_page.persona_section import PersonaSection
from inglenook.app.settings_page.setting_row import SettingRow, translated
from inglenook.app.settings_table import CHATS, GROUPS, SETTINGS
from inglenook.app.text.plain_label import PlainLabel, button
from inglenook.app.text.rich_text import label
from inglenook.app.window.centred_column import centred
from inglenook.app.window.theme import Theme


@dataclass(frozen=True, slots=True)
class _Group:
    heading: PlainLabel
    layout: QVBoxLayout
    members: list[tuple[QFrame, SettingRow]]  # with the line above each


class SettingsPage(QWidget):
    """All settings. `rows` by key; `personas` is their section.

    Signals: `edited(key, value)`, `reset_requested(key)`, `reset_all_requested()`, `expert_toggled(bool)`,
    `reload_requested()` of the model, `close_requested()`.
    """

    edited = Signal(str, object)
    reset_requested = Signal(str)
    reset_all_requested = Signal()
    expert_toggled = Signal(bool)
    reload_requested = Signal()
    close_requested = Signal()

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._values: dict[str, Any] = {}
        self._defaults: dict[str, bool] = {}
        self._hints: dict[str, str] = {}
        self.setObjectName("page")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self.setAccessibleName(self.tr("Settings"))
        self._title = PlainLabel(self.tr("Settings"), look="title")
        self.search = QLineEdit()
        self.search.setPlaceholderText(self.tr("Search settings"))
        self.search.setAccessibleName(self.tr("Search settings"))
        self.search.setToolTip(self.tr("Search settings"))
        self.search.setClearButtonEnabled(True)
        self.search.textChanged.connect(self._filter)
        self.expert_box = TickBox(self.tr("Show all settings"))
        self.expert_box.setToolTip(self.tr("Also those that most people never need"))
        self.expert_box.toggled.connect(self.expert_toggled)
        self.expert_box.toggled.connect(self._filter)
        self.reset_all_button = button(self.tr("Reset all…"), "quiet_button")
        self.reset_all_button.setAccessibleName(self.tr("Reset all settings"))
        self.reset_all_button.clicked.connect(self.reset_all_requested)
        self._reload = PlainLabel(look="caution")
        self.reload_button = button("", "plain_button")
        self.reload_button.clicked.connect(self.reload_requested)
        self._nothing = PlainLabel(look="muted")
        self.personas = PersonaSection(theme)
        self._rows: dict[str, SettingRow] = {}
        self._groups: dict[str, _Group] = {}
        self._waiting = [spec for spec in SETTINGS if spec.label]
        self._column = QWidget()
        self._column.setObjectName("page")
        self._layout = QVBoxLayout(self._column)
        self._make_head()
        for group in GROUPS:
            self._make_group(group)
        self._layout.addStretch()
        outer = QVBoxLayout(self)
        outer.setContentsMargins(0, 0, 0, 0)
        self._scroll = centred(self._column, theme)
        outer.addWidget(self._scroll)
        theme.changed.connect(self._restyle)
        self._restyle()
        self.show_reload("")
        self._filter()

    @property
    def rows(self) -> Mapping[str, SettingRow]:
        """All rows by key, made at the first use."""
        while self._waiting:
            self._make_next()
        return self._rows

    def show_values(self, values: Mapping[str, Any], defaults: Mapping[str, bool]) -> None:
        """Show the values in force, by key; `defaults` says which are the default ones."""
        self._values |= values
        self._defaults |= defaults
        for key in values.keys() & self._rows.keys():
            self._rows[key].show_value(values[key], is_default=defaults[key])
        self._filter()

    def show_hint(self, key: str, hint: str) -> None:
        """Show other help with a setting than the table has."""
        self._hints[key] = hint
        if key in self._rows:
            self._rows[key].show_hint(hint)

    def show_resettable(self, *, is_resettable: bool) -> None:
        """Offer to reset all settings, or not."""
        self.reset_all_button.setEnabled(is_resettable)

    def show_expert(self, *, is_expert: bool) -> None:
        """Show the settings of experts too, or not."""
        self.expert_box.setChecked(is_expert)

    def show_reload(self, title: str) -> None:
        """Say that a change counts once the model of that title is loaded again, and offer it; "" takes it away."""
        self._reload.setText(self.tr("This counts from the next time a model is loaded.") if title else "")
        self.reload_button.setText(self.tr("Load {0} again").format(label(title, 40)).replace("&", "&&"))
        self._reload.setVisible(bool(title))
        self.reload_button.setVisible(bool(title))

    def reveal(self, key: str) -> None:
        """Bring a setting into sight and give it the keyboard."""
        self.search.clear()
        if self.rows[key].spec.is_expert:
            self.expert_box.setChecked(True)
        self.rows[key].field.setFocus(Qt.FocusReason.OtherFocusReason)
        self._scroll.ensureWidgetVisible(self.rows[key])

    def reveal_personas(self) -> None:
        """Bring the personas into sight and the keyboard to them."""
        self.search.clear()
        self.personas.new_button.setFocus(Qt.FocusReason.OtherFocusReason)
        # The page may just have come to the front, and is laid out next.
        QTimer.singleShot(0, self, lambda: self._scroll.ensureWidgetVisible(self.personas))

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit_rows()

    @property
    def _is_narrow(self) -> bool:
        return self.width() < self._theme.px(620)

    def _fit_rows(self) -> None:
        for row in self._rows.values():
            row.set_narrow(is_narrow=self._is_narrow)

    def _make_head(self) -> None:
        self._head = QHBoxLayout()
        self._head.addWidget(self._title, 1)
        self._head.addWidget(self.reset_all_button, 0, Qt.AlignmentFlag.AlignVCenter)
        self._find = QHBoxLayout()
        self._find.addWidget(self.search, 1)
        self._find.addWidget(self.expert_box)
        self._again = QHBoxLayout()
        self._again.addWidget(self._reload, 1)
        self._again.addWidget(self.reload_button)
        for line in (self._head, self._find, self._again):
            self._layout.addLayout(line)
        self._layout.addWidget(self._nothing)

    def _make_group(self, name: str) -> None:
        group = self._groups[name] = _Group(PlainLabel(translated(name), look="heading"), QVBoxLayout(), [])
        self._layout.addWidget(group.heading)
        self._layout.addLayout(group.layout)
        if name == CHATS:
            self._layout.addWidget(self.personas)

    def _make_next(self) -> None:
        """Make one row that is not there yet."""
        spec = self._waiting.pop(0)
        row = self._rows[spec.key] = SettingRow(spec, self._theme)
        if spec.key in self._values:
            row.show_value(self._values[spec.key], is_default=self._defaults[spec.key])
        if spec.key in self._hints:
            row.show_hint(self._hints[spec.key])
        row.edited.connect(self.edited)
        row.reset_requested.connect(self.reset_requested)
        line = QFrame()
        line.setObjectName("setting_line")
        group = self._groups[spec.group]
        row.set_narrow(is_narrow=self._is_narrow)
        for widget in (line, row):
            widget.hide()
            group.layout.addWidget(widget)
        group.members.append((line, row))
        if not self._waiting:
            self._filter()

    def showEvent(self, event: QShowEvent) -> None:
        if self._waiting:
            _ = self.rows
        super().showEvent(event)

    def _filter(self) -> None:
        """Show the rows that are wanted, with the headings that have any."""
        words = self.search.text().casefold().strip()
        has_any = False
        if self._waiting:
            return  # it is done once all are there
        for group in self._groups.values():
            shown = [row for _, row in group.members if self._is_wanted(row, words)]
            for line, row in group.members:
                row.setVisible(row in shown)
                line.setVisible(row in shown[1:])
            group.heading.setVisible(bool(shown))
            has_any = has_any or bool(shown)
        is_about_personas = not words or all(word in self._persona_words() for word in words.split())
        self.personas.setVisible(is_about_personas)
        self._nothing.setVisible(not has_any and not is_about_personas)
        self._nothing.setText(
            self.tr("No setting has “{0}” in its name or help. Look for another word.").format(
                self.search.text().strip()
            )
        )

    def _persona_words(self) -> str:
        names = (row.name.text() for row in self.personas.rows)
        return " ".join((self.personas.title.text(), "instructions style", *names)).casefold()

    def _is_wanted(self, row: SettingRow, words: str) -> bool:
        spec = row.spec
        if words:
            return row.has_words(words)
        return (self.expert_box.isChecked() or not spec.is_expert) and self._is_in_force(row)

    def _is_in_force(self, row: SettingRow) -> bool:
        wanted = row.spec.shown_with
        return wanted is None or self._values.get(wanted[0]) == wanted[1]

    def _restyle(self) -> None:
        px = self._theme.px
        self.setStyleSheet(form_style(self._theme))
        self._layout.setContentsMargins(px(24), px(36), px(24), px(36))
        self._layout.setSpacing(0)
        self._head.setContentsMargins(0, 0, 0, px(10))
        self._find.setContentsMargins(0, 0, 0, px(4))
        self._find.setSpacing(px(14))
        self._again.setContentsMargins(0, px(4), 0, px(4))
        self._nothing.setContentsMargins(0, px(24), 0, 0)
        for group in self._groups.values():
            group.heading.setContentsMargins(0, px(24), 0, px(4))
            group.layout.setSpacing(0)
        for row in self._rows.values():
            row.restyle()
        self._fit_rows()
        self.personas.restyle()
        self.personas.setContentsMargins(0, px(24), 0, px(4))
