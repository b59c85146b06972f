"""Everything a user can do by menu or key, declared once; the menu, the shortcuts and the help derive from this table.

The main window gives each name its handler. "stop" has Esc, which the window gives to whatever can be ended or closed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from PySide6.QtCore import QCoreApplication, Qt
from PySide6.QtGui import QAction, QActionGroup, QKeySequence
from PySide6.QtWidgets import QDialog, QDialogButtonBox, QGridLayout, QMenu, QScrollArea, QVBoxLayout, QWidget

from inglenook.app.text.plain_label import PlainLabel
from inglenook.app.window.theme import Theme

Menu = Literal["Chat", "Documents", "View", "Appearance", "Help"]


@dataclass(frozen=True, slots=True)
class ActionSpec:
    """One thing to do. `keys` are portable key sequences, the first is shown in menus; `group` makes a choice of one.

    `page` is the page of the centre that it shows and closes; until that page is registered the action is not offered.
    """

    name: str
    menu: Menu
    text: str
    keys: tuple[str, ...] = ()
    group: str = ""
    page: str = ""


ACTIONS: tuple[ActionSpec, ...] = (
    ActionSpec("new_chat", "Chat", "New chat", ("Ctrl+N",)),
    ActionSpec("search_chats", "Chat", "Search chats", ("Ctrl+K", "Ctrl+Shift+F")),
    ActionSpec("find", "Chat", "Find in this chat", ("Ctrl+F",)),
    ActionSpec("find_next", "Chat", "Find later", ("F3",)),
    ActionSpec("find_previous", "Chat", "Find earlier", ("Shift+F3",)),
    ActionSpec("rename_chat", "Chat", "Rename chat", ("Ctrl+Shift+R",)),
    ActionSpec("export_chat", "Chat", "Export chat…", ("Ctrl+E",)),
    ActionSpec("delete_chat", "Chat", "Move chat to the trash", ("Ctrl+Shift+Backspace",)),
    ActionSpec("show_archive", "Chat", "Archive"),
    ActionSpec("show_trash", "Chat", "Trash"),
    ActionSpec("edit_question", "Chat", "Edit last question", ("Ctrl+Shift+E",)),
    ActionSpec("copy_reply", "Chat", "Copy last answer", ("Ctrl+Shift+C",)),
    ActionSpec("regenerate", "Chat", "Answer again", ("Ctrl+R",)),
    ActionSpec("stop", "Chat", "Stop or close", ("Esc",)),
    ActionSpec("add_documents", "Documents", "Add documents…", ("Ctrl+O",)),
    ActionSpec("add_folder", "Documents", "Add a folder…", ("Ctrl+Shift+O",)),
    ActionSpec("models", "View", "Models", ("Ctrl+L",), page="models"),
    ActionSpec("settings", "View", "Settings", ("Ctrl+,",), page="settings"),
    ActionSpec("compare", "View", "Ask two models", ("Ctrl+Shift+M",), page="compare"),
    ActionSpec("privacy", "Help", "Privacy", page="privacy"),
    ActionSpec("focus_composer", "View", "Write a message", ("Ctrl+1",)),
    ActionSpec("focus_chats", "View", "List of chats", ("Ctrl+2",)),
    ActionSpec("focus_documents", "View", "List of documents", ("Ctrl+3",)),
    ActionSpec("next_pane", "View", "Next pane", ("F6",)),
    ActionSpec("previous_pane", "View", "Previous pane", ("Shift+F6",)),
    ActionSpec("sidebar", "View", "Show or hide the side bar", ("Ctrl+B",)),
    ActionSpec("source", "View", "Show or hide the source", ("Ctrl+Shift+B",)),
    ActionSpec("zoom_in", "Appearance", "Larger", ("Ctrl++", "Ctrl+=")),
    ActionSpec("zoom_out", "Appearance", "Smaller", ("Ctrl+-",)),
    ActionSpec("zoom_reset", "Appearance", "Usual size", ("Ctrl+0",)),
    ActionSpec("scheme_system", "Appearance", "Light or dark as the system", group="scheme"),
    ActionSpec("scheme_light", "Appearance", "Light", group="scheme"),
    ActionSpec("scheme_dark", "Appearance", "Dark", group="scheme"),
    ActionSpec("shortcuts", "Help", "Keyboard shortcuts", ("F1", "Ctrl+/")),
    ActionSpec("quit", "Help", "Quit", ("Ctrl+Q",)),
)


def translated(text: str) -> str:
    """Return a text of the table in the user's language."""
    return QCoreApplication.translate("actions", text)


def make_actions(
    owner: QWidget, handlers: Mapping[str, Callable[[], object]], specs: tuple[ActionSpec, ...] = ACTIONS
) -> dict[str, QAction]:
    """Make all actions and give their keys to `owner`'s window.

    Raises:
        KeyError: an action has no handler.
        ValueError: two actions have the same keys.
    """
    actions: dict[str, QAction] = {}
    groups: dict[str, QActionGroup] = {}
    owners: dict[str, str] = {}
    for spec in specs:
        action = QAction(translated(spec.text), owner)
        action.setObjectName(spec.name)
        for keys in spec.keys:
            shown = QKeySequence(keys).toString(QKeySequence.SequenceFormat.PortableText)
            if owners.setdefault(shown, spec.name) != spec.name:
                raise ValueError(f"{shown} belongs to {owners[shown]} and to {spec.name}")
        action.setShortcuts([QKeySequence(keys) for keys in spec.keys])
        action.setShortcutContext(Qt.ShortcutContext.WindowShortcut)
        handler = handlers[spec.name]
        action.triggered.connect(lambda _=False, handler=handler: handler())
        if spec.group:
            action.setCheckable(True)
            groups.setdefault(spec.group, QActionGroup(owner)).addAction(action)
        action.setVisible(not spec.page)
        action.setEnabled(not spec.page)
        owner.addAction(action)
        actions[spec.name] = action
    return actions


def make_menu(
    owner: QWidget, actions: Mapping[str, QAction], specs: tuple[ActionSpec, ...] = ACTIONS
) -> QMenu:
    """Make the window's menu: a submenu for each group of the table, in its order."""
    menu = QMenu(owner)
    submenus: dict[str, QMenu] = {}
    for spec in specs:
        if spec.menu not in submenus:
            submenus[spec.menu] = menu.addMenu(translated(spec.menu))
        if spec.name == "scheme_system":
            submenus[spec.menu].addSeparator()
        submenus[spec.menu].addAction(actions[spec.name])
    return menu


class ShortcutsDialog(QDialog):
    """The table of keys, as help."""

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        px = theme.px
        self.setWindowTitle(self.tr("Keyboard shortcuts"))
        table = QWidget()
        table.setObjectName("page")
        grid = QGridLayout(table)
        grid.setContentsMargins(px(20), px(16), px(20), px(16))
        grid.setHorizontalSpacing(px(28))
        grid.setVerticalSpacing(px(7))
        grid.setColumnStretch(0, 1)
        menu = ""
        rows: list[tuple[str, str, tuple[str, ...]]]
        rows = [(spec.menu, spec.text, spec.keys) for spec in ACTIONS if spec.keys]
        rows += [("Writing", "Send", ("Enter",)), ("Writing", "New line", ("Shift+Enter",))]
        for group, text, keys in rows:
            if group != menu:
                menu = group
                heading = PlainLabel(translated(group), look="heading")
                heading.setContentsMargins(0, px(8) if grid.rowCount() > 1 else 0, 0, 0)
                grid.addWidget(heading, grid.rowCount(), 0, 1, 2)
            row = grid.rowCount()
            grid.addWidget(PlainLabel(translated(text)), row, 0)
            native = QKeySequence.SequenceFormat.NativeText
            shown = [QKeySequence(key).toString(native) for key in keys]
            grid.addWidget(PlainLabel(translated(" or ").join(shown), look="muted"), row, 1)
        scroll = QScrollArea()
        scroll.setObjectName("page_scroll")
        scroll.setWidgetResizable(True)
        scroll.setWidget(table)
        buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Close)
        buttons.rejected.connect(self.reject)
        for made in buttons.buttons():
            made.setObjectName("plain_button")
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, px(14), px(12))
        layout.addWidget(scroll)
        layout.addWidget(buttons)
        self.resize(px(480), px(620))
