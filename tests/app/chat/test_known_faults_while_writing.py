"""What users of other chat programs report of typing, scrolling and stopping while a reply is written, tried here."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from PySide6.QtCore import QEvent, QPoint, QPointF, Qt
from PySide6.QtGui import QAccessible, QInputMethodEvent, QTextDocument, QWheelEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QWidget
from window_desk import WindowDesk

from inglenook.app.chat.message_view import MessageView

CODE = "```python\ndef step(x: int) -> int:\n    return x + 1\n```\n\n"


def compose(desk: WindowDesk, preedit: str = "", commit: str = "") -> None:
    event = QInputMethodEvent(preedit, [])
    event.setCommitString(commit)
    QApplication.sendEvent(desk.window.chat.composer.edit, event)


def begin(desk: WindowDesk, text: str = "Long?") -> None:
    """Ask, and let the engine begin with the reply."""
    count = len(desk.client.requests)
    desk.send(text)
    desk.qtbot.waitUntil(lambda: len(desk.client.requests) == count + 1)


def grow(desk: WindowDesk, pieces: Sequence[str]) -> None:
    """Let the reply grow by pieces, each shown before the next."""
    view = desk.window.chat.view
    for piece in pieces:
        before = len(desk.messages[-1].text) if desk.messages else 0
        desk.client.requests[-1].say(piece, 1)
        desk.qtbot.waitUntil(lambda before=before: len(desk.messages[-1].text) > before)  # type: ignore[misc]
        desk.qtbot.waitUntil(lambda: not view._dirty and not view._refresh_timer.isActive())


def wheel(view: MessageView, delta: int) -> None:
    place = QPointF(view.viewport().rect().center())
    event = QWheelEvent(
        place, QPointF(view.viewport().mapToGlobal(place.toPoint())), QPoint(), QPoint(0, delta),
        Qt.MouseButton.NoButton, Qt.KeyboardModifier.NoModifier, Qt.ScrollPhase.NoScrollPhase, False,
    )  # fmt: skip
    QApplication.sendEvent(view.viewport(), event)


def places(view: MessageView) -> dict[tuple[object, int], int]:
    """Where on the screen each row in sight begins."""
    height = view.viewport().height()
    rows = [w for w in view.visible_widgets() if -w.height() < w.y() < height]
    return {(w.message_id, w._part): w.mapToGlobal(QPoint()).y() for w in rows}


@pytest.mark.parametrize("is_writing", [False, True], ids=["idle", "while a reply is written"])
@pytest.mark.parametrize(
    ("key", "modifier"),
    [
        (Qt.Key.Key_Return, Qt.KeyboardModifier.NoModifier),
        (Qt.Key.Key_Enter, Qt.KeyboardModifier.KeypadModifier),
        (Qt.Key.Key_Return, Qt.KeyboardModifier.ControlModifier),
        (Qt.Key.Key_Return, Qt.KeyboardModifier.ShiftModifier),
    ],
)
def test_a1_enter_on_a_candidate_sends_and_queues_nothing(
    desk: WindowDesk, key: Qt.Key, modifier: Qt.KeyboardModifier, is_writing: bool
) -> None:
    if is_writing:
        begin(desk)
    edit = desk.window.chat.composer.edit
    edit.setFocus()
    count = len(desk.client.requests)

    compose(desk, preedit="こんにち")
    QTest.keyClick(edit, key, modifier)
    assert edit.textCursor().block().layout().preeditAreaText() == "こんにち"
    compose(desk, commit="こんにちは")
    assert edit.toPlainText() == "こんにちは"
    assert len(desk.client.requests) == count
    assert desk.window.chat.queue.isHidden()
    QTest.keyClick(edit, Qt.Key.Key_Return)

    if is_writing:
        assert desk.window.chat.queue.chips[0].accessibleName().endswith("こんにちは")
    else:
        desk.qtbot.waitUntil(lambda: len(desk.client.requests) == count + 1)
        assert desk.client.requests[-1].what.messages[-1]["content"] == "こんにちは"


@pytest.mark.parametrize("key", [Qt.Key.Key_Escape, Qt.Key.Key_Up, Qt.Key.Key_Tab])
def test_a1_other_keys_of_a_composition_do_nothing_else_either(desk: WindowDesk, key: Qt.Key) -> None:
    desk.ask("First?", "1")
    desk.window.chat.view.act_on(desk.messages[0].id, "edit")
    desk.window.chat.composer.set_text("")
    edit = desk.window.chat.composer.edit
    compose(desk, preedit="に")

    QTest.keyClick(edit, key)

    assert desk.join.chats.turns.is_editing
    assert edit.hasFocus() or not desk.window.isActiveWindow()
    assert edit.toPlainText() == ""
    assert edit.textCursor().block().layout().preeditAreaText() == "に"


def test_a1_escape_in_a_composition_does_not_stop_the_reply(desk: WindowDesk) -> None:
    begin(desk)
    compose(desk, preedit="に")

    QTest.keyClick(desk.window.chat.composer.edit, Qt.Key.Key_Escape)
    assert not desk.client.requests[-1].is_cancelled
    compose(desk)
    QTest.keyClick(desk.window.chat.composer.edit, Qt.Key.Key_Escape)

    assert desk.client.requests[-1].is_cancelled


def test_a2_one_notch_up_leaves_the_end_while_code_streams(desk: WindowDesk) -> None:
    view = desk.window.chat.view
    begin(desk)
    grow(desk, ["```python\n", *(f"value_{n} = {n}\n" for n in range(40))])
    assert view.is_following

    wheel(view, 120)
    before = places(view)
    assert not view.is_following
    for start in (100, 200):
        grow(desk, ["".join(f"value_{n} = {n}\n" for n in range(start, start + 100))])
        assert places(view) == before
    assert view._jump.isVisible()
    QTest.mouseClick(view._jump, Qt.MouseButton.LeftButton)
    grow(desk, ["value_300 = 300\n"])

    assert view.is_following
    assert view.verticalScrollBar().value() == view.verticalScrollBar().maximum()
    assert not view._jump.isVisible()


@pytest.mark.parametrize("ending", ["stop", "length", "stopped", "failed"])
def test_a3_nothing_moves_when_the_reply_ends(desk: WindowDesk, ending: str) -> None:
    view = desk.window.chat.view
    desk.ask("Before?", "Words. " * 400)
    begin(desk)
    grow(desk, [f"Paragraph {n}. {'More words follow. ' * 20}\n\n" for n in range(20)])
    view.verticalScrollBar().setValue(view.verticalScrollBar().maximum() // 2)
    before, offset = places(view), view.verticalScrollBar().value()

    if ending == "stopped":
        QTest.keyClick(desk.window.chat.composer.edit, Qt.Key.Key_Escape)
        desk.client.requests[-1].finish("cancelled")
    elif ending == "failed":
        desk.client.requests[-1].fail("EngineStoppedError", "The engine ended.")
    else:
        desk.client.requests[-1].finish(ending)
    desk.qtbot.waitUntil(lambda: desk.messages[-1].figures != "" or desk.messages[-1].state == "failed")
    desk.qtbot.waitUntil(lambda: not view._dirty and not view._refresh_timer.isActive())

    assert view.verticalScrollBar().value() == offset
    assert places(view) == before


def test_a26_a_long_reply_neither_gathers_widgets_nor_documents_nor_undo(desk: WindowDesk) -> None:
    for _ in range(3):
        desk.ask("Show me code.", CODE * 8)
    view = desk.window.chat.view
    begin(desk)
    grow(desk, [CODE * 8] * 4)

    def kept() -> tuple[int, int, int, int]:
        QApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)
        documents = view.findChildren(QTextDocument)
        steps = sum(document.availableUndoSteps() for document in documents)
        return len(view.findChildren(QWidget)), len(documents), steps, len(view.visible_widgets())

    # The rows in sight differ from step to step, and each has widgets of its own; after some all kinds have been there.
    numbers = [grow(desk, [CODE * 8]) or kept() for _ in range(32)]

    for early, late in zip(zip(*numbers[:16], strict=True), zip(*numbers[16:], strict=True), strict=True):
        assert max(late) <= max(early)
    assert not any(steps for _, _, steps, _ in numbers)


def test_a27_every_control_of_the_chat_page_has_a_name_and_a_reply_is_read_line_by_line(
    desk: WindowDesk,
) -> None:
    desk.ask("Two lines?", "First line of it.\n\n- second line\n- third line")
    for widget in desk.window.findChildren(QWidget):
        if widget.isVisible() and widget.focusPolicy() & Qt.FocusPolicy.TabFocus:
            assert QAccessible.queryAccessibleInterface(widget).text(QAccessible.Text.Name), widget

    view = desk.window.chat.view
    row = next(w for w in view.visible_widgets() if w.message_id == desk.messages[-1].id)
    spoken = QAccessible.queryAccessibleInterface(row.browser).textInterface()
    view.setFocus()
    QTest.keyClick(view, Qt.Key.Key_End)
    QTest.keyClick(view, Qt.Key.Key_Return)
    heard = []
    for _ in range(3):
        line = row.browser.textCursor().block()
        assert line.position() <= spoken.cursorPosition() <= line.position() + line.length()
        heard.append(spoken.text(line.position(), line.position() + line.length() - 1))
        QTest.keyClick(row.browser, Qt.Key.Key_Down)

    assert heard == ["First line of it.", "second line", "third line"]
