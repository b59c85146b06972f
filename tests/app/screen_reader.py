"""What a screen reader does, over the real accessibility bus: find the window by its names, ask, and hear the answer.

Run by the system's Python, which has the bindings (`gir1.2-atspi-2.0`, `python3-gi`); prints one JSON object.
"""

from __future__ import annotations

import json
import sys
import time

import gi

gi.require_version("Atspi", "2.0")
from gi.repository import Atspi  # noqa: E402

PATIENCE_S = 60.0
QUESTION = "What is the capital of France?"


def everything(node, depth=0):
    """Yield a node and all below it; one that goes away meanwhile is left out."""
    yield node
    if depth > 40:
        return
    try:
        children = [node.get_child_at_index(i) for i in range(min(node.get_child_count(), 400))]
    except gi.repository.GLib.Error:
        return
    for child in children:
        if child is not None:
            yield from everything(child, depth + 1)


def name_of(node):
    try:
        return node.get_name() or ""
    except gi.repository.GLib.Error:
        return ""


def role_of(node):
    try:
        return node.get_role_name() or ""
    except gi.repository.GLib.Error:
        return ""


def wait_for(find):
    """Return what `find` finds within the patience, or None."""
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end:
        found = find()
        if found:
            return found
        time.sleep(0.2)
    return None


def window():
    desktop = Atspi.get_desktop(0)
    for i in range(desktop.get_child_count()):
        child = desktop.get_child_at_index(i)
        if child is not None and name_of(child) == "inglenook":
            return child
    return None


def by_name(program, name, *roles):
    for node in everything(program):
        if name_of(node) == name and (not roles or role_of(node) in roles):
            return node
    return None


def can_be_pressed(node):
    state = node.get_state_set()
    return state.contains(Atspi.StateType.ENABLED) and state.contains(Atspi.StateType.SHOWING)


def main():
    """Do it, and say what was found."""
    Atspi.init()
    said = {}
    program = wait_for(window)
    said["program"] = program is not None
    if program is None:
        print(json.dumps(said))
        return 1
    field = wait_for(lambda: by_name(program, "Message", "text", "entry"))
    said["names"] = sorted({name_of(node) for node in everything(program)} - {""})
    said["nameless"] = [
        role_of(node)
        for node in everything(program)
        if not name_of(node)
        and role_of(node) in ("push button", "button", "toggle button", "check box", "entry", "list item")
        and can_be_pressed(node)
    ]
    said["field"] = field is not None
    if field is not None:
        wait_for(lambda: field.get_state_set().contains(Atspi.StateType.EDITABLE))
        said["typed"] = Atspi.EditableText.insert_text(field, 0, QUESTION, len(QUESTION))
    send = wait_for(
        lambda: (found := by_name(program, "Send")) is not None and can_be_pressed(found) and found
    )
    said["send"] = send is not None
    if send is not None:
        said["pressed"] = Atspi.Action.do_action(send, 0)

    def answered():
        return next((name_of(n) for n in everything(program) if "Paris" in name_of(n)), "")

    said["answer"] = wait_for(answered) or ""
    said["roles"] = sorted({role_of(node) for node in everything(program)})
    print(json.dumps(said))
    return 0


if __name__ == "__main__":
    sys.exit(main())
