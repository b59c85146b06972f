"""Which keys do what: the table, the user's choice, and what stands in its way."""

from __future__ import annotations

import pytest
from PySide6.QtWidgets import QWidget
from pytestqt.qtbot import QtBot

from inglenook.app.window.actions import ACTIONS, make_actions
from inglenook.app.window.shortcuts import FIXED, Shortcuts


@pytest.fixture
def shortcuts(qtbot: QtBot) -> Shortcuts:
    owner = QWidget()
    qtbot.addWidget(owner)
    actions = make_actions(owner, {spec.name: lambda: None for spec in ACTIONS})
    made = Shortcuts(actions, parent=owner)
    made.setProperty("owner", None)
    qtbot.owner = owner  # type: ignore[attr-defined]  # lives as long as the test
    return made


def pressed(shortcuts: Shortcuts, name: str) -> list[str]:
    return [keys.toString() for keys in shortcuts._actions[name].shortcuts()]


def test_no_two_actions_of_the_table_have_the_same_key_and_none_has_one_that_cannot_be_had(
    shortcuts: Shortcuts,
) -> None:
    keys = [key for spec in ACTIONS for key in shortcuts.keys(spec.name)]

    assert len(keys) == len(set(keys))
    assert [shortcuts.fault(key) for key in keys if key != "Esc" and shortcuts.fault(key)] == []


def test_a_key_given_to_another_action_leaves_the_one_that_had_it(shortcuts: Shortcuts) -> None:
    assert shortcuts.owner("ctrl+n") == "new_chat"

    shortcuts.rebind("models", ["Ctrl+N", "F8"])

    assert pressed(shortcuts, "models") == ["Ctrl+N", "F8"]
    assert pressed(shortcuts, "new_chat") == []
    assert shortcuts.owner("Ctrl+N") == "models"
    assert shortcuts.owner("Ctrl+L") == ""


def test_putting_one_back_takes_its_keys_from_whoever_has_them(shortcuts: Shortcuts) -> None:
    shortcuts.rebind("models", ["Ctrl+N"])

    shortcuts.reset("new_chat")

    assert pressed(shortcuts, "new_chat") == ["Ctrl+N"]
    assert pressed(shortcuts, "models") == []
    assert not shortcuts.is_chosen("new_chat")
    assert shortcuts.is_chosen("models")
    shortcuts.reset_all()
    assert pressed(shortcuts, "models") == ["Ctrl+L"]
    assert shortcuts.kept() == {}


@pytest.mark.parametrize(
    ("key", "words"),
    [
        ("A", "alone is needed for writing"),
        ("Shift+1", "alone is needed for writing"),
        ("Space", "alone is needed for writing"),
        ("Tab", "alone is needed for writing"),
        ("Ctrl+C", "needed for writing and editing"),
        ("Ctrl+Shift+Z", "needed for writing and editing"),
        ("Alt+F4", "belongs to the system"),
        ("Meta+L", "belongs to the system"),
        ("Esc", "always stops"),
        ("Ctrl+K, Ctrl+T", "no key"),
        ("", "no key"),
        ("no key at all", "no key"),
    ],
)
def test_keys_that_cannot_be_had_are_refused_in_a_sentence(
    shortcuts: Shortcuts, key: str, words: str
) -> None:
    assert words in shortcuts.fault(key)
    if key:
        with pytest.raises(ValueError, match=r".+"):
            shortcuts.rebind("models", [key if shortcuts.fault(key) else "Esc", "Esc"])


def test_the_keys_of_stop_are_fixed(shortcuts: Shortcuts) -> None:
    with pytest.raises(ValueError, match="fixed"):
        shortcuts.rebind(FIXED, ["Ctrl+J"])


@pytest.mark.parametrize(
    "kept",
    [
        {"no_such_action": ["Ctrl+J"]},
        {"models": "Ctrl+J"},
        {"models": [7, None, "", "Ctrl+C", "nonsense", "A"]},
        {"models": ["Ctrl+J"], "new_chat": ["Ctrl+J"], FIXED: ["Ctrl+J"]},
        {"models": ["Ctrl+N"]},
    ],
)
def test_damaged_and_contradictory_choices_never_leave_one_key_with_two_actions(
    shortcuts: Shortcuts, kept: dict[str, object]
) -> None:
    shortcuts.take(kept)

    keys = [key for spec in ACTIONS for key in pressed(shortcuts, spec.name)]
    assert len(keys) == len(set(keys))
    assert "Esc" in pressed(shortcuts, FIXED)


def test_what_was_kept_comes_back(shortcuts: Shortcuts) -> None:
    shortcuts.rebind("models", ["Ctrl+N"])
    kept = shortcuts.kept()
    shortcuts.reset_all()

    shortcuts.take(kept)

    assert pressed(shortcuts, "models") == ["Ctrl+N"]
    assert pressed(shortcuts, "new_chat") == []


def test_switched_off_only_esc_and_help_and_menu_are_left(shortcuts: Shortcuts) -> None:
    shortcuts.set_on(False)

    left = {spec.name for spec in ACTIONS if pressed(shortcuts, spec.name)}
    assert left == {"stop", "shortcuts", "menu"}
    assert shortcuts.shown("new_chat") == ""
    assert shortcuts.keys("new_chat") == ("Ctrl+N",)
