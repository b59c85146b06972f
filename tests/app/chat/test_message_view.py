"""The transcript: which widgets there are, and where it scrolls to."""

from __future__ import annotations

import time
from itertools import pairwise

import pytest
from PySide6.QtCore import QModelIndex, QPoint, QPointF, Qt
from PySide6.QtGui import QAccessible, QGuiApplication, QWheelEvent
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from inglenook.app.chat.message_list_model import Citation, Message, MessageListModel
from inglenook.app.chat.message_view import MessageView
from inglenook.app.text.highlighting import prepare
from inglenook.app.window.theme import Theme

PROSE = "The quick **brown** fox runs along the river bank and back again. "


def conversation(num_messages: int) -> list[Message]:
    return [
        Message(i, "user" if i % 2 == 0 else "assistant", f"message {i}: " + PROSE * (1 + i % 5))
        for i in range(num_messages)
    ]


@pytest.fixture
def model() -> MessageListModel:
    return MessageListModel(conversation(60))


@pytest.fixture
def view(qtbot: QtBot, theme: Theme, model: MessageListModel) -> MessageView:
    view = MessageView(model, theme)
    qtbot.addWidget(view)
    view.resize(900, 600)
    view.show()
    qtbot.waitExposed(view)
    QApplication.processEvents()
    return view


@pytest.fixture
def announcements(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    heard: list[str] = []
    monkeypatch.setattr(QAccessible, "updateAccessibility", lambda event: heard.append(event.message()))
    return heard


def take_focus(qtbot: QtBot, view: MessageView) -> None:
    view.activateWindow()
    qtbot.waitUntil(view.isActiveWindow)
    view.setFocus()


def wheel(view: MessageView, delta: int) -> None:
    place = QPointF(view.viewport().rect().center())
    glob = QPointF(view.viewport().mapToGlobal(place.toPoint()))
    phase = Qt.ScrollPhase.NoScrollPhase
    keys, buttons = Qt.KeyboardModifier.NoModifier, Qt.MouseButton.NoButton
    event = QWheelEvent(place, glob, QPoint(), QPoint(0, delta), buttons, keys, phase, False)
    QApplication.sendEvent(view.viewport(), event)


def places(view: MessageView) -> dict[object, int]:
    """Where each message in sight begins."""
    height = view.viewport().height()
    return {w.message_id: w.y() for w in view.visible_widgets() if -w.height() < w.y() < height}


def settle(qtbot: QtBot, view: MessageView) -> None:
    qtbot.waitUntil(lambda: not view._refresh_timer.isActive() and not view._dirty)


def bar_is_at_end(view: MessageView) -> bool:
    bar = view.verticalScrollBar()
    return bar.value() == bar.maximum()


def test_it_opens_at_the_end_with_widgets_only_for_what_is_in_sight(view: MessageView) -> None:
    assert bar_is_at_end(view)
    assert view.is_following
    assert view.visible_widgets()[-1].message_id == 59
    assert len(view.visible_widgets()) < 20
    bottom = view.visible_widgets()[-1].geometry().bottom()
    assert abs(bottom - view.viewport().height()) <= 2


def test_rows_follow_each_other_without_gaps(view: MessageView) -> None:
    for _ in range(40):
        wheel(view, 120)
        widgets = view.visible_widgets()
        assert all(a.y() + a.height() == b.y() for a, b in pairwise(widgets))


def test_the_view_follows_the_end_while_text_streams(
    view: MessageView, model: MessageListModel, qtbot: QtBot
) -> None:
    model.append(Message("r", "assistant", "", "streaming"))
    for _ in range(30):
        model.append_text("r", PROSE)
        settle(qtbot, view)
        assert bar_is_at_end(view)

    assert PROSE.replace("**", "").strip() in view.visible_widgets()[-1].browser.toPlainText()


def test_one_notch_up_stops_following_and_nothing_moves_while_reading(
    view: MessageView, model: MessageListModel, qtbot: QtBot
) -> None:
    model.append(Message("r", "assistant", PROSE * 40, "streaming"))
    settle(qtbot, view)

    wheel(view, 120)
    before = places(view)

    assert not view.is_following
    for _ in range(20):
        model.append_text("r", PROSE + "\n\n")
        settle(qtbot, view)
    assert places(view) == before
    model.update("r", state="complete", citations=(Citation(1, "a.pdf", "1", "q", True),))
    settle(qtbot, view)
    assert places(view) == before
    assert view._jump.isVisible()


def test_following_resumes_only_at_the_end(view: MessageView, model: MessageListModel, qtbot: QtBot) -> None:
    wheel(view, 1_200)
    model.append(Message("r", "assistant", "new", "streaming"))
    settle(qtbot, view)
    assert not bar_is_at_end(view)

    view._jump.click()

    assert view.is_following
    assert bar_is_at_end(view)
    assert not view._jump.isVisible()
    wheel(view, 240)
    assert not view.is_following
    wheel(view, -1_200)
    assert view.is_following


def test_the_users_own_message_brings_the_end_into_sight(view: MessageView, model: MessageListModel) -> None:
    view.verticalScrollBar().setValue(0)

    model.append(Message("q", "user", "my question"))

    assert bar_is_at_end(view)


def test_text_in_sight_stays_while_rows_above_turn_out_higher(view: MessageView) -> None:
    view.verticalScrollBar().setValue(view.verticalScrollBar().maximum() // 2)
    for _ in range(60):
        before = places(view)
        wheel(view, 120)
        after = places(view)
        moved = {after[message] - before[message] for message in before.keys() & after.keys()}
        assert len(moved) <= 1


def test_the_text_stays_in_sight_when_the_window_changes(view: MessageView, qtbot: QtBot) -> None:
    view.show_message(20)
    assert places(view)[20] == 0

    view.resize(500, 600)
    QApplication.processEvents()

    assert places(view)[20] == 0


def test_keys_walk_through_the_messages(view: MessageView, qtbot: QtBot, announcements: list[str]) -> None:
    take_focus(qtbot, view)
    qtbot.keyClick(view, Qt.Key.Key_Home)
    assert view.verticalScrollBar().value() == 0
    assert announcements[-1].startswith("You, message 0:")

    qtbot.keyClick(view, Qt.Key.Key_Down)
    assert announcements[-1].startswith("Assistant, message 1:")
    qtbot.keyClick(view, Qt.Key.Key_PageDown)
    assert view.verticalScrollBar().value() > 300
    qtbot.keyClick(view, Qt.Key.Key_PageUp)
    assert view.verticalScrollBar().value() == 0
    qtbot.keyClick(view, Qt.Key.Key_End)
    assert bar_is_at_end(view)
    for _ in range(300):
        qtbot.keyClick(view, Qt.Key.Key_Up)
    assert view.verticalScrollBar().value() == 0


def test_the_current_message_is_copied_as_it_was_written(view: MessageView, qtbot: QtBot) -> None:
    take_focus(qtbot, view)
    qtbot.keyClick(view, Qt.Key.Key_End)

    qtbot.keyClick(view, Qt.Key.Key_C, Qt.KeyboardModifier.ControlModifier)

    assert QGuiApplication.clipboard().text() == conversation(60)[59].text


def test_tab_reaches_every_button_in_reading_order(qtbot: QtBot, theme: Theme) -> None:
    source = Citation(1, "a.pdf", "1", "q", True)
    text = "```py\nx\n```\n\n```sh\ny\n```\n"
    model = MessageListModel([Message(i, "assistant", text, citations=(source,)) for i in range(2)])
    view = MessageView(model, theme)
    qtbot.addWidget(view)
    view.resize(900, 900)
    view.show()
    take_focus(qtbot, view)
    names = []

    for _ in range(12):
        qtbot.keyClick(QApplication.focusWidget(), Qt.Key.Key_Tab)
        names.append(QApplication.focusWidget().accessibleName())

    buttons = ["Copy this reply", "Answer again", "More for this reply"]
    assert names == ["Copy code py", "Copy code sh", "Source 1: a.pdf, page 1", *buttons] * 2


def test_enter_goes_into_the_text_and_escape_comes_back(view: MessageView, qtbot: QtBot) -> None:
    take_focus(qtbot, view)
    qtbot.keyClick(view, Qt.Key.Key_End)

    qtbot.keyClick(view, Qt.Key.Key_Return)
    inside = QApplication.focusWidget()
    assert inside is view.visible_widgets()[-1].browser
    qtbot.keyClick(inside, Qt.Key.Key_A, Qt.KeyboardModifier.ControlModifier)
    qtbot.keyClick(inside, Qt.Key.Key_C, Qt.KeyboardModifier.ControlModifier)
    assert QGuiApplication.clipboard().text().startswith("message 59: The quick brown fox")
    qtbot.keyClick(inside, Qt.Key.Key_Escape)

    assert view.hasFocus()


def test_begin_and_end_of_a_reply_are_announced_once(
    view: MessageView, model: MessageListModel, qtbot: QtBot, announcements: list[str]
) -> None:
    model.append(Message("r", "assistant", "", "streaming"))
    for _ in range(5):
        model.append_text("r", "word ")
    settle(qtbot, view)
    model.update("r", state="complete")
    model.append(Message("s", "assistant", "", "streaming"))
    model.update("s", state="failed", error="No model is loaded.")

    assert announcements == [
        "The assistant is answering",
        "Answer ready",
        "The assistant is answering",
        "No model is loaded.",
    ]


def test_sources_and_retries_carry_their_message(
    view: MessageView, model: MessageListModel, qtbot: QtBot
) -> None:
    model.append(Message("r", "assistant", "x", "failed", "Why", (Citation(3, "a", "1", "q", True),)))
    widget = view.visible_widgets()[-1]

    with qtbot.waitSignal(view.citation_activated) as activated:
        widget.controls()[0].click()  # type: ignore[attr-defined]
    with qtbot.waitSignal(view.retry_requested) as asked:
        widget.controls()[1].click()  # type: ignore[attr-defined]

    assert activated.args == ["r", 3]
    assert asked.args == ["r"]


def test_code_and_messages_are_copied_exactly(
    view: MessageView, model: MessageListModel, qtbot: QtBot
) -> None:
    code = "\n".join(f"line {i}\t<b>" for i in range(900))
    text = f"Look:\n\n```\n{code}\n```\n\nDone."
    model.append(Message("r", "assistant", text))
    settle(qtbot, view)
    view.show_message("r")

    view.visible_widgets()[0].browser.copy_buttons()
    first = next(w for w in view.visible_widgets() if w.message_id == "r")
    first.browser.copy_buttons()[0].click()
    assert QGuiApplication.clipboard().text() == code
    view.copy_last_reply()
    assert QGuiApplication.clipboard().text() == text


def test_ten_thousand_messages_open_at_once_and_scroll(qtbot: QtBot, theme: Theme) -> None:
    model = MessageListModel(conversation(10_000))
    view = MessageView(model, theme)
    qtbot.addWidget(view)
    view.resize(900, 600)
    began = time.perf_counter()
    view.show()
    QApplication.processEvents()
    opened = time.perf_counter() - began

    for value in range(0, view.verticalScrollBar().maximum(), view.verticalScrollBar().maximum() // 40):
        view.verticalScrollBar().setValue(value)

    assert opened < 2
    assert len(view.viewport().children()) < 60


@pytest.mark.parametrize("role", ["user", "assistant"])
def test_a_reply_of_a_megabyte_is_shown_in_parts(qtbot: QtBot, theme: Theme, role: str) -> None:
    text = (PROSE * 4 + "\n\n") * 3_500 + "the very end"
    model = MessageListModel([Message(0, "user", "hi"), Message(1, role, text)])  # type: ignore[arg-type]
    view = MessageView(model, theme)
    qtbot.addWidget(view)
    view.resize(900, 600)
    view.show()

    settle(qtbot, view)

    assert bar_is_at_end(view)
    assert "the very end" in view.visible_widgets()[-1].browser.toPlainText()
    assert len(view.viewport().children()) < 40
    view.copy_message(1)
    assert QGuiApplication.clipboard().text() == text


def test_theme_and_zoom_apply_to_what_is_shown(view: MessageView, theme: Theme) -> None:
    before = view.visible_widgets()[-1].height()

    theme.set_scale(2.0)

    assert view.visible_widgets()[-1].height() > 1.5 * before
    assert bar_is_at_end(view)


def test_messages_can_be_removed_and_replaced(
    view: MessageView, model: MessageListModel, qtbot: QtBot
) -> None:
    model.remove_from(55)
    assert view.visible_widgets()[-1].message_id == 54

    model.replace([])
    assert view.visible_widgets() == []
    assert view.verticalScrollBar().maximum() == 0
    model.append(Message(1, "user", "first"))
    assert [w.message_id for w in view.visible_widgets()] == [1]


def test_a_message_in_sight_can_shrink_or_change(
    view: MessageView, model: MessageListModel, qtbot: QtBot
) -> None:
    model.append(Message("r", "assistant", (PROSE + "\n\n") * 400, "streaming"))
    settle(qtbot, view)

    model.update_text("r", "short")
    settle(qtbot, view)

    assert view.visible_widgets()[-1].browser.toPlainText() == "short"
    assert bar_is_at_end(view)


HOSTILE = ["x" * 300_000, "\n" * 100_000, "|" * 5_000 + "\n" + "|-" * 4_999 + "|", ">" * 200, "- " * 3_000, "![" * 20_000,
           "a" + "\u0301" * 20_000, "\ufdd0\ufdd1\ufffc\x00\u2028" * 500, "[a](" * 5_000, "\ud800\udfff" * 9]  # fmt: skip


@pytest.mark.parametrize("index", range(len(HOSTILE)))
def test_hostile_text_neither_breaks_nor_stalls_the_view(qtbot: QtBot, theme: Theme, index: int) -> None:
    model = MessageListModel([Message(0, "user", HOSTILE[index]), Message(1, "assistant", HOSTILE[index])])
    view = MessageView(model, theme)
    qtbot.addWidget(view)
    view.resize(900, 600)
    # Of this thread alone, so that other work on the machine does not count.
    began = time.thread_time()
    view.show()

    settle(qtbot, view)
    view.verticalScrollBar().setValue(0)
    view.grab()

    assert time.thread_time() - began < 3


def test_the_first_piece_of_a_reply_waits_for_nothing(
    view: MessageView, model: MessageListModel, qtbot: QtBot
) -> None:
    view._pause_ms = 60_000
    view._refreshed_at = time.perf_counter() - 120
    model.append(Message("r", "assistant", "", "streaming"))

    model.append_text("r", "First")
    QApplication.processEvents()

    assert view.visible_widgets()[-1].browser.toPlainText() == "First"


def test_a_message_may_come_in_between(view: MessageView, model: MessageListModel, qtbot: QtBot) -> None:
    model.update_text(59, "changed")
    model.beginInsertRows(QModelIndex(), 0, 0)
    model._messages.insert(0, Message("new", "user", "an older one"))
    model._rows = {message.id: row for row, message in enumerate(model._messages)}
    model.endInsertRows()
    settle(qtbot, view)

    assert view.visible_widgets()[-1].browser.toPlainText() == "changed"
    qtbot.keyClick(view, Qt.Key.Key_Home)
    assert view.visible_widgets()[0].message_id == "new"


def test_text_and_page_marks_of_other_scripts_keep_their_direction(qtbot: QtBot, theme: Theme) -> None:
    model = MessageListModel(
        [Message(0, "user", "سؤال؟"), Message(1, "assistant", "- جواب\n\n```py\nx = 1\n```")]
    )
    view = MessageView(model, theme)
    qtbot.addWidget(view)
    view.setLayoutDirection(Qt.LayoutDirection.RightToLeft)
    view.resize(900, 600)
    view.show()
    QApplication.processEvents()

    question, answer = view.visible_widgets()
    assert question.browser.geometry().center().x() < 450
    assert answer.browser.document().begin().textDirection() == Qt.LayoutDirection.RightToLeft
    assert answer.browser.document().lastBlock().textDirection() == Qt.LayoutDirection.LeftToRight


@pytest.mark.slow
def test_sixty_pieces_a_second_leave_the_event_loop_free(
    view: MessageView, model: MessageListModel, qtbot: QtBot
) -> None:
    prepare()
    code = "\n```python\n" + "def f(x):\n    return x + 1  # a comment\n\n" * 20 + "```\n\n"
    text = ((PROSE * 4 + "\n\n- one\n- two\n" + code) * 14)[:20_000]
    model.append(Message("r", "assistant", "", "streaming"))
    gaps, last = [], time.perf_counter()

    for end in range(30, len(text) + 30, 30):
        model.update_text("r", text[:end])
        due = time.perf_counter() + 1 / 60
        while time.perf_counter() < due:
            QApplication.processEvents()
            now = time.perf_counter()
            gaps.append(now - last)
            last = now

    assert sorted(gaps)[int(len(gaps) * 0.99)] < 0.05
