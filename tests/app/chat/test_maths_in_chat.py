"""Formulas in the whole window: drawn while a reply comes, copied as LaTeX, and never in a person's own words."""

from __future__ import annotations

from PySide6.QtGui import QGuiApplication
from window_desk import WindowDesk

from inglenook.app.text.maths_object import OBJECT


def shown(desk: WindowDesk, index: int) -> str:
    view = desk.window.chat.view
    rows = [w for w in view.visible_widgets() if w.message_id == desk.messages[index].id]
    return "\n".join(row.browser.document().toPlainText() for row in rows)


def test_a_formula_is_drawn_while_the_reply_goes_on(desk: WindowDesk) -> None:
    desk.send("What is $x^2$? I have $5 and $10.")
    desk.qtbot.waitUntil(lambda: bool(desk.client.requests))
    asked = desk.client.requests[-1]

    asked.say("It is $x$ times", 1)
    desk.qtbot.waitUntil(lambda: shown(desk, 1) == f"It is {OBJECT} times", timeout=20_000)
    asked.say(r" itself:" + "\n\n" + r"\[x \cdot x\]", 2)
    asked.finish()
    desk.qtbot.waitUntil(lambda: shown(desk, 1) == f"It is {OBJECT} times itself:\n{OBJECT}", timeout=20_000)

    assert shown(desk, 0) == "What is $x^2$? I have $5 and $10."
    desk.window.chat.view.copy_last_reply()
    assert QGuiApplication.clipboard().text() == "It is $x$ times itself:\n\n" + r"\[x \cdot x\]"
    assert "$x$" in desk.window.chat.view.visible_widgets()[-1].accessibleName()


def test_the_process_ends_with_the_window(desk: WindowDesk) -> None:
    desk.ask("Why?", "Because $x$.")
    desk.qtbot.waitUntil(lambda: OBJECT in shown(desk, 1), timeout=20_000)
    process = desk.window.chat._maths._process
    assert process is not None
    ended = []
    process.finished.connect(lambda *_: ended.append(True))

    desk.window.close()

    assert desk.window.chat._maths._process is None
    assert ended
