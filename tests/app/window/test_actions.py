"""What the menus and keys offer."""

from __future__ import annotations

import pytest
from PySide6.QtGui import QKeySequence
from PySide6.QtWidgets import QMenu, QWidget
from pytestqt.qtbot import QtBot

from inglenook.app.window.actions import ACTIONS, ActionSpec, make_actions, make_menu


def test_every_action_is_in_the_menu_with_keys_of_its_own(qtbot: QtBot) -> None:
    owner = QWidget()
    qtbot.addWidget(owner)

    actions = make_actions(owner, {spec.name: lambda: None for spec in ACTIONS})
    menu = make_menu(owner, actions)

    in_menus = [a for sub in menu.findChildren(QMenu) for a in sub.actions() if not a.isSeparator()]
    assert {a.objectName() for a in in_menus} == {spec.name for spec in ACTIONS}
    keys = [k.toString() for action in actions.values() for k in action.shortcuts()]
    assert len(keys) == len(set(keys))
    assert all(QKeySequence(key).toString() for key in keys)


def test_two_actions_with_the_same_keys_are_refused(qtbot: QtBot) -> None:
    owner = QWidget()
    qtbot.addWidget(owner)
    specs = (ActionSpec("a", "Chat", "A", ("Ctrl+N",)), ActionSpec("b", "Chat", "B", ("Ctrl+N",)))

    with pytest.raises(ValueError, match=r"Ctrl\+N belongs to a and to b"):
        make_actions(owner, {"a": lambda: None, "b": lambda: None}, specs)


def test_an_action_calls_its_handler(qtbot: QtBot) -> None:
    owner, called = QWidget(), []
    qtbot.addWidget(owner)
    handlers = {spec.name: lambda name=spec.name: called.append(name) for spec in ACTIONS}

    make_actions(owner, handlers)["zoom_in"].trigger()

    assert called == ["zoom_in"]
