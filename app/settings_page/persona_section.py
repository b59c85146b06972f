"""The personas on the settings page: one line each, with what can be done, and which one new chats begin with."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QFrame, QHBoxLayout, QVBoxLayout, QWidget

from inglenook.app.text.plain_label import ElidedLabel, PlainLabel, button, plain_button_text
from inglenook.app.text.rich_text import label
from inglenook.app.window.theme import Theme
from inglenook.storage.personas import Persona


class PersonaSection(QWidget):
    """Shows all personas. Signals: `new_requested()`, and with a persona's id `edit_requested`, `delete_requested`,
    `default_requested` (0: new chats begin without one)."""

    new_requested = Signal()
    edit_requested = Signal(int)
    delete_requested = Signal(int)
    default_requested = Signal(int)

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._rows: list[_PersonaRow] = []
        self.title = PlainLabel(self.tr("Personas"), look="heading")
        self.new_button = button(self.tr("New persona"))
        self.new_button.clicked.connect(self.new_requested)
        self._hint = PlainLabel(
            self.tr(
                "Instructions and a style under a name, for instance “Editor” or “Spanish teacher”. "
                "Each chat can have its own; choose it below the field you write in."
            ),
            look="small",
        )
        self._head = QHBoxLayout()
        self._head.addWidget(self.title, 1)
        self._head.addWidget(self.new_button)
        self._list = QVBoxLayout()
        self._layout = QVBoxLayout(self)
        self._layout.addLayout(self._head)
        self._layout.addWidget(self._hint)
        self._layout.addLayout(self._list)
        self.restyle()

    @property
    def rows(self) -> Sequence[_PersonaRow]:
        """The lines, by name."""
        return self._rows

    def show_personas(self, personas: Sequence[Persona], default_id: int) -> None:
        """Show these, one of which new chats begin with."""
        while len(self._rows) > len(personas):
            self._rows.pop().deleteLater()
        while len(self._rows) < len(personas):
            row = _PersonaRow(self._theme)
            row.edit_requested.connect(self.edit_requested)
            row.delete_requested.connect(self.delete_requested)
            row.default_requested.connect(self.default_requested)
            self._rows.append(row)
            self._list.addWidget(row)
        for row, persona in zip(self._rows, personas, strict=True):
            row.show_persona(persona, is_default=persona.id == default_id)

    def restyle(self) -> None:
        """Take the theme's distances anew."""
        px = self._theme.px
        self._layout.setContentsMargins(0, 0, 0, px(6))
        self._layout.setSpacing(px(6))
        self._list.setSpacing(px(8))
        for row in self._rows:
            row.restyle()


class _PersonaRow(QFrame):
    edit_requested = Signal(int)
    delete_requested = Signal(int)
    default_requested = Signal(int)

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._persona = Persona(0, "")
        self._is_default = False
        self.setObjectName("card")
        self.name = ElidedLabel(look="strong")
        self.words = ElidedLabel(look="small")
        self.pill = PlainLabel(self.tr("For new chats"), look="pill")
        self.pill.setWordWrap(False)
        self.default_button = button("", "quiet_button")
        self.default_button.clicked.connect(
            lambda: self.default_requested.emit(0 if self._is_default else self._persona.id)
        )
        self.edit_button = button(self.tr("Edit"), "quiet_button")
        self.edit_button.clicked.connect(lambda: self.edit_requested.emit(self._persona.id))
        self.delete_button = button(self.tr("Delete"), "quiet_button")
        self.delete_button.clicked.connect(lambda: self.delete_requested.emit(self._persona.id))
        self._texts = QVBoxLayout()
        self._texts.addWidget(self.name)
        self._texts.addWidget(self.words)
        self._line = QHBoxLayout(self)
        self._line.addLayout(self._texts, 1)
        for widget in (self.pill, self.default_button, self.edit_button, self.delete_button):
            self._line.addWidget(widget, 0, Qt.AlignmentFlag.AlignVCenter)
        self.restyle()

    def show_persona(self, persona: Persona, *, is_default: bool) -> None:
        """Show a persona."""
        self._persona, self._is_default = persona, is_default
        name = label(persona.name, 60)
        self.name.setText(persona.name)
        self.words.setText(persona.system or self.tr("No instructions of its own"))
        self.pill.setVisible(is_default)
        default = self.tr("Not for new chats") if is_default else self.tr("Use for new chats")
        self.default_button.setText(plain_button_text(default))
        self.default_button.setAccessibleName(f"{default}: {name}")
        self.edit_button.setAccessibleName(self.tr("Edit {0}").format(name))
        self.delete_button.setAccessibleName(self.tr("Delete {0}").format(name))

    def restyle(self) -> None:
        """Take the theme's distances anew."""
        px = self._theme.px
        self._texts.setSpacing(px(2))
        self._line.setContentsMargins(px(14), px(9), px(10), px(9))
        self._line.setSpacing(px(4))
