"""Everything a user can do by menu or key, declared once: menu, shortcuts, palette and help derive from this table.

The main window gives each name its handler. "stop" has Esc, which the window gives to whatever can be ended or closed.
The keys here are the ones a new profile has; `shortcuts.py` keeps those that the user chose instead.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from PySide6.QtCore import QCoreApplication, Qt
from PySide6.QtGui import QAction, QActionGroup, QKeySequence
from PySide6.QtWidgets import QMenu, QWidget

Menu = Literal["Chat", "Documents", "View", "Appearance", "Data", "Help"]


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
    ActionSpec("temporary_chat", "Chat", "New temporary chat", ("Ctrl+Shift+P",)),
    ActionSpec("palette", "Chat", "Go to anything…", ("Ctrl+K",)),
    ActionSpec("search_chats", "Chat", "Search chats", ("Ctrl+Shift+F",)),
    ActionSpec("find", "Chat", "Find in this chat", ("Ctrl+F",)),
    ActionSpec("find_next", "Chat", "Find later", ("F3",)),
    ActionSpec("find_previous", "Chat", "Find earlier", ("Shift+F3",)),
    ActionSpec("rename_chat", "Chat", "Rename chat", ("Ctrl+Shift+R",)),
    ActionSpec("new_folder", "Chat", "New folder", ("Ctrl+Shift+N",)),
    ActionSpec("move_chat", "Chat", "Move chat to a folder…"),
    ActionSpec("export_chat", "Chat", "Export chat…", ("Ctrl+E",)),
    ActionSpec("export_all", "Chat", "Export all chats…"),
    ActionSpec("delete_chat", "Chat", "Move chat to the trash", ("Ctrl+Shift+Backspace",)),
    ActionSpec("show_archive", "Chat", "Archive"),
    ActionSpec("show_trash", "Chat", "Trash"),
    ActionSpec("edit_question", "Chat", "Edit last question", ("Ctrl+Shift+E",)),
    ActionSpec("copy_reply", "Chat", "Copy last answer", ("Ctrl+Shift+C",)),
    ActionSpec("copy_code", "Chat", "Copy last code", ("Ctrl+Shift+;",)),
    ActionSpec("select_messages", "Chat", "Choose several messages", ("Ctrl+Shift+A",)),
    ActionSpec("regenerate", "Chat", "Answer again", ("Ctrl+R",)),
    ActionSpec("stop", "Chat", "Stop or close", ("Esc",)),
    ActionSpec("add_documents", "Documents", "Add documents…", ("Ctrl+O",)),
    ActionSpec("add_folder", "Documents", "Add a folder…", ("Ctrl+Shift+O",)),
    ActionSpec("sample", "Documents", "Add the sample document"),
    ActionSpec("models", "View", "Models", ("Ctrl+L",), page="models"),
    ActionSpec("settings", "View", "Settings", ("Ctrl+,",), page="settings"),
    ActionSpec("compare", "View", "Ask two models", ("Ctrl+Shift+M",), page="compare"),
    ActionSpec("focus_composer", "View", "Write a message", ("Ctrl+1",)),
    ActionSpec("focus_chats", "View", "List of chats", ("Ctrl+2",)),
    ActionSpec("focus_documents", "View", "List of documents", ("Ctrl+3",)),
    ActionSpec("focus_source", "View", "Source of an answer", ("Ctrl+4",)),
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
    ActionSpec("contrast", "Appearance", "High contrast", group="contrast"),
    ActionSpec("back_up", "Data", "Back up everything…"),
    ActionSpec("restore", "Data", "Restore a backup…"),
    ActionSpec("privacy", "Data", "Privacy", page="privacy"),
    ActionSpec("shortcuts", "Help", "Keyboard shortcuts", ("F1", "Ctrl+/")),
    ActionSpec("menu", "Help", "Open this menu", ("F10",)),
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
            group = groups.setdefault(spec.group, QActionGroup(owner))
            group.setExclusionPolicy(QActionGroup.ExclusionPolicy.ExclusiveOptional)
            group.addAction(action)
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
