"""All keys in one dialog: read as help, found by typing, changed by pressing others, put back one by one or all at once.

A key that something else has is named before it is taken. GUI thread only.
"""

from __future__ import annotations

from dataclasses import dataclass

from PySide6.QtCore import Qt
from PySide6.QtGui import QAccessible, QAccessibleAnnouncementEvent
from PySide6.QtWidgets import (
    QDialog,
    QGridLayout,
    QHBoxLayout,
    QLineEdit,
    QPushButton,
    QScrollArea,
    QVBoxLayout,
    QWidget,
)

from inglenook.app.settings_page.form_controls import TickBox
from inglenook.app.text.plain_label import PlainLabel, button
from inglenook.app.window.actions import ACTIONS, translated
from inglenook.app.window.centred_column import SteadyBar
from inglenook.app.window.key_button import KeyButton
from inglenook.app.window.shortcuts import FIXED, Shortcuts, native
from inglenook.app.window.theme import SCROLL_BAR_WIDTH, Theme

# What the field for a question does by itself; it is no action of the window.
_WRITING = (("Send", "Enter"), ("New line", "Shift+Enter"), ("Take back the last question", "Up"))


@dataclass(frozen=True, slots=True)
class _Row:
    menu: str
    text: PlainLabel
    keys: QWidget
    reset: QPushButton | None

    def show(self, is_shown: bool) -> None:
        for widget in (self.text, self.keys):
            widget.setVisible(is_shown)


class ShortcutsDialog(QDialog):
    """Shows and changes `shortcuts`."""

    def __init__(self, theme: Theme, shortcuts: Shortcuts, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._shortcuts = shortcuts
        self._wanted = ("", "")
        px = theme.px
        self.setWindowTitle(self.tr("Keyboard shortcuts"))
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.search = QLineEdit()
        self.search.setPlaceholderText(self.tr("Find a shortcut"))
        self.search.setAccessibleName(self.tr("Find a shortcut by what it does or by its keys"))
        self.search.setClearButtonEnabled(True)
        self.search.textChanged.connect(self._filter)
        table = QWidget()
        table.setObjectName("page")
        self._grid = QGridLayout(table)
        side = px(20 - SCROLL_BAR_WIDTH)
        self._grid.setContentsMargins(side, px(4), side, px(16))
        self._grid.setHorizontalSpacing(px(12))
        self._grid.setVerticalSpacing(px(4))
        self._grid.setColumnStretch(0, 1)
        self._headings: dict[str, PlainLabel] = {}
        self._rows: dict[str, _Row] = {}
        for spec in ACTIONS:
            self._add(spec.name, spec.menu, spec.text)
        for text, keys in _WRITING:
            self._add_writing(text, keys)
        self._grid.setRowStretch(self._grid.rowCount(), 1)
        scroll = QScrollArea()
        scroll.setObjectName("page_scroll")
        scroll.setWidgetResizable(True)
        scroll.setVerticalScrollBar(SteadyBar())
        SteadyBar.balance(scroll, theme)
        scroll.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        scroll.setWidget(table)
        self.message = PlainLabel(look="caution")
        self.take_button = button(self.tr("Use it here"))
        self.take_button.clicked.connect(self._take)
        said = QHBoxLayout()
        said.setContentsMargins(px(20), 0, px(20), 0)
        said.addWidget(self.message, 1)
        said.addWidget(self.take_button)
        self.switch = TickBox(self.tr("Shortcuts on (Esc, F1 and F10 always work)"))
        self.switch.setChecked(shortcuts.is_on)
        self.switch.toggled.connect(shortcuts.set_on)
        self.reset_all_button = button(self.tr("Reset all"))
        self.reset_all_button.clicked.connect(self._reset_all)
        self.close_button = button(self.tr("Close"))
        self.close_button.clicked.connect(self.reject)
        foot = QHBoxLayout()
        foot.setContentsMargins(px(20), 0, px(20), 0)
        foot.addWidget(self.switch, 1)
        foot.addWidget(self.reset_all_button)
        foot.addWidget(self.close_button)
        top = QHBoxLayout()
        top.setContentsMargins(px(20), 0, px(20), 0)
        top.addWidget(self.search)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, px(16), 0, px(16))
        layout.setSpacing(px(12))
        layout.addLayout(top)
        layout.addWidget(scroll, 1)
        layout.addLayout(said)
        layout.addLayout(foot)
        shortcuts.changed.connect(self._show)
        self._say("")
        self._show()
        self.resize(px(600), px(640))
        self.search.setFocus()

    def key_button(self, name: str) -> KeyButton:
        """The button that shows and takes the keys of an action."""
        keys = self._rows[name].keys
        assert isinstance(keys, KeyButton)
        return keys

    def reset_button(self, name: str) -> QPushButton:
        """The button that puts the keys of an action back."""
        reset = self._rows[name].reset
        assert reset is not None
        return reset

    def _add(self, name: str, menu: str, text: str) -> None:
        self._head(menu)
        what = translated(text).rstrip("…")
        reset: QPushButton | None = None
        keys: QWidget
        if name == FIXED:
            keys = self._fixed("Esc")
        else:
            keys = KeyButton(what, ())
            keys.recorded.connect(lambda key, name=name: self._record(name, key))
            reset = button(
                self.tr("Reset"), "quiet_button", accessible_name=self.tr("Reset {0}").format(what)
            )
            policy = reset.sizePolicy()
            policy.setRetainSizeWhenHidden(True)
            reset.setSizePolicy(policy)
            reset.clicked.connect(lambda _=False, name=name: self._reset(name))
        self._place(name, _Row(menu, PlainLabel(what), keys, reset))

    def _add_writing(self, text: str, keys: str) -> None:
        self._head("Writing")
        self._place(text, _Row("Writing", PlainLabel(translated(text)), self._fixed(keys), None))

    def _fixed(self, keys: str) -> PlainLabel:
        label = PlainLabel(native([keys])[0], look="muted")
        label.setAlignment(Qt.AlignmentFlag.AlignCenter)
        return label

    def _head(self, menu: str) -> None:
        if menu not in self._headings:
            self._headings[menu] = PlainLabel(translated(menu), look="heading")
            self._headings[menu].setContentsMargins(0, 12, 0, 2)
            self._grid.addWidget(self._headings[menu], self._grid.rowCount(), 0, 1, 3)

    def _place(self, name: str, row: _Row) -> None:
        line = self._grid.rowCount()
        self._rows[name] = row
        self._grid.addWidget(row.text, line, 0)
        self._grid.addWidget(row.keys, line, 2)
        if row.reset is not None:
            self._grid.addWidget(row.reset, line, 1)

    def _record(self, name: str, key: str) -> None:
        owner = self._shortcuts.owner(key) if key else ""
        self._wanted = ("", "")
        if key and (fault := self._shortcuts.fault(key)):
            self._say(fault)
        elif owner and owner != name:
            self._wanted = (name, key)
            words = self.tr("{0} is used by “{1}”.")
            self._say(words.format(native([key])[0], self._shortcuts.text(owner)))
        else:
            self._shortcuts.rebind(name, [key] if key else [])
            self._say("")

    def _take(self) -> None:
        name, key = self._wanted
        if name:
            self._wanted = ("", "")
            self._shortcuts.rebind(name, [key])
            self._say("")
            self.key_button(name).setFocus()

    def _reset(self, name: str) -> None:
        self._shortcuts.reset(name)
        self._say("")
        self.key_button(name).setFocus()

    def _reset_all(self) -> None:
        self._shortcuts.reset_all()
        self._say("")

    def _say(self, sentence: str) -> None:
        self.message.setText(sentence)
        self.message.setVisible(bool(sentence))
        self.take_button.setVisible(bool(self._wanted[0]))
        if sentence:
            QAccessible.updateAccessibility(QAccessibleAnnouncementEvent(self, sentence))

    def _show(self) -> None:
        for name, row in self._rows.items():
            if isinstance(row.keys, KeyButton):
                row.keys.set_keys(self._shortcuts.keys(name))
            if row.reset is not None:
                row.reset.setVisible(self._shortcuts.is_chosen(name) and row.text.isVisibleTo(self))
        self._filter(self.search.text())

    def _filter(self, text: str) -> None:
        words = text.casefold().split()
        seen = set()
        for name, row in self._rows.items():
            keys = row.keys.text() if isinstance(row.keys, KeyButton | PlainLabel) else ""
            said = f"{row.text.text()} {keys}".casefold()
            is_found = all(word in said for word in words)
            row.show(is_found)
            if row.reset is not None:
                row.reset.setVisible(is_found and self._shortcuts.is_chosen(name))
            if is_found:
                seen.add(row.menu)
        for menu, heading in self._headings.items():
            heading.setVisible(menu in seen)
