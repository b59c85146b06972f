"""One message with its buttons and citations."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QEvent
from PySide6.QtWidgets import QApplication, QLabel, QPushButton
from pytestqt.qtbot import QtBot

from inglenook.app.chat.message_list_model import Citation, Message
from inglenook.app.chat.message_widget import MessageWidget
from inglenook.app.text.markdown_blocks import StreamingMarkdown
from inglenook.app.window.theme import COLUMN_WIDTH, Theme

SOURCES = (
    Citation(1, "Contract <b>.pdf", "4", "three months", True),
    Citation(2, "A & B.pdf", "", "two weeks", False),
)


@pytest.fixture
def widget(qtbot: QtBot, theme: Theme) -> MessageWidget:
    widget = MessageWidget(theme)
    qtbot.addWidget(widget)
    return widget


def show(widget: MessageWidget, message: Message, *, width: int = 1_000) -> int:
    elements = StreamingMarkdown.of(message.text, is_plain=message.role == "user").elements(0)
    widget.bind(message, elements)
    height = widget.fit(width)
    widget.show()
    QApplication.processEvents()
    return height


def leave(widget: MessageWidget) -> None:
    """Take the mouse away, which a window that has just been shown may have under it."""
    QApplication.sendEvent(widget, QEvent(QEvent.Type.Leave))


def chips(widget: MessageWidget) -> list[QPushButton]:
    return [c for c in widget.controls() if c.objectName() == "chip" and isinstance(c, QPushButton)]


def status(widget: MessageWidget) -> str:
    return " ".join(label.text() for label in widget.findChildren(QLabel) if label.isVisible())


def test_text_of_the_user_is_shown_literally(widget: MessageWidget) -> None:
    show(widget, Message(1, "user", "# x\n<b>a_b_c</b>"))

    assert widget.browser.toPlainText() == "# x\n<b>a_b_c</b>"
    assert widget.accessibleName() == "You, # x <b>a_b_c</b>"


def test_a_reply_is_at_most_as_wide_as_the_column(widget: MessageWidget) -> None:
    show(widget, Message(1, "assistant", "words " * 500), width=2_000)

    assert widget.browser.width() == COLUMN_WIDTH
    assert abs(widget.browser.geometry().center().x() - 1_000) <= 1


def test_long_figures_end_with_the_column_and_the_words_of_the_buttons_begin_with_the_text(
    widget: MessageWidget,
) -> None:
    figures = " · ".join(["12.5 tokens in each second of its writing"] * 6)
    show(widget, Message(1, "assistant", "A hedge.", figures=figures), width=2_000)

    bar, text = widget.actions_bar.geometry(), widget.browser.geometry()

    assert text.right() <= bar.right() <= text.right() + 10
    assert text.left() - 10 <= bar.left() <= text.left()


def test_a_narrow_window_clips_nothing(widget: MessageWidget) -> None:
    for message in (
        Message(1, "assistant", "word " * 50, citations=SOURCES),
        Message(2, "user", "word " * 50),
    ):
        height = show(widget, message, width=320)
        for child in [widget.browser, *widget.controls()]:
            assert child.x() >= 0
            assert child.geometry().right() <= 320
            assert child.geometry().bottom() <= height


def test_sources_are_chips_that_report_their_number(widget: MessageWidget, qtbot: QtBot) -> None:
    show(widget, Message("m", "assistant", "It is three months [1].", citations=SOURCES))

    one, two = chips(widget)
    assert one.text() == "1  Contract <b>.pdf, page 4"
    assert two.text() == "2  A && B.pdf"
    assert one.accessibleName() == "Source 1: Contract <b>.pdf, page 4"
    assert two.accessibleName() == "Source 2: A & B.pdf, not found word for word"
    with qtbot.waitSignal(widget.citation_activated) as activated:
        two.click()
    assert activated.args == ["m", 2]


def test_a_failed_reply_says_why_and_offers_another_try(widget: MessageWidget, qtbot: QtBot) -> None:
    show(
        widget,
        Message("m", "assistant", "Begun", "failed", "The model needs 14.2 GB; 9.1 GB are <i>free</i>."),
    )

    assert status(widget) == "The model needs 14.2 GB; 9.1 GB are <i>free</i>."
    retry = next(c for c in widget.controls() if isinstance(c, QPushButton) and c.text() == "Try again")
    with qtbot.waitSignal(widget.retry_asked) as asked:
        retry.click()
    assert asked.args == ["m"]


@pytest.mark.parametrize(
    ("state", "sentence"),
    [("stopped", "Stopped."), ("interrupted", "Interrupted: the program ended before this reply did."), ("complete", "")],
)  # fmt: skip
def test_the_state_of_a_reply_is_said(widget: MessageWidget, state: str, sentence: str) -> None:
    show(widget, Message(1, "assistant", "text", state))  # type: ignore[arg-type]

    assert status(widget) == sentence


def test_a_streaming_reply_has_no_sources_and_no_buttons_yet(widget: MessageWidget) -> None:
    message = Message(1, "assistant", "text", "streaming", citations=SOURCES)
    show(widget, message)
    assert widget.controls() == []

    show(widget, Message(1, "assistant", "text", citations=SOURCES))

    assert len(chips(widget)) == 2


def test_a_reused_row_shows_nothing_of_the_message_before(widget: MessageWidget) -> None:
    show(widget, Message(1, "assistant", "```py\nx\n```", "failed", "Why", SOURCES))

    height = show(widget, Message(2, "assistant", "plain"))

    assert widget.browser.toPlainText() == "plain"
    assert status(widget) == ""
    names = ["Copy this reply", "Answer again", "More for this reply"]
    assert [c.accessibleName() for c in widget.controls()] == names
    fresh = MessageWidget(widget._theme)
    assert show(fresh, Message(2, "assistant", "plain")) == height


def test_every_control_has_a_name(widget: MessageWidget) -> None:
    show(widget, Message(1, "assistant", "```py\nx\n```\n\ny", "failed", "Why", SOURCES))

    assert len(widget.controls()) == 7
    assert all(c.accessibleName() or getattr(c, "text", str)() for c in widget.controls())


@pytest.mark.parametrize("scale", [0.7, 1.0, 2.0, 3.0])
@pytest.mark.slow
def test_no_text_is_clipped_at_any_scale(widget: MessageWidget, theme: Theme, scale: float) -> None:
    theme.set_scale(scale)
    widget.restyle()
    height = show(widget, Message(1, "assistant", "word " * 90, "failed", "A long reason. " * 9, SOURCES))

    for child in [*widget.controls(), *widget.findChildren(QLabel)]:
        assert child.height() >= min(child.sizeHint().height(), child.heightForWidth(child.width()) or 9_999)
        assert child.geometry().bottom() <= height
    assert widget.browser.document().size().height() <= widget.browser.height()


def test_versions_are_counted_and_asked_for(widget: MessageWidget) -> None:
    show(widget, Message(1, "user", "q", branch=1, num_branches=3))
    leave(widget)
    # Nobody is near, so only the versions are shown.
    assert [c.text() for c in widget.controls() if isinstance(c, QPushButton)] == ["‹", "›"]
    assert status(widget) == "2/3"

    asked: list[tuple[object, str]] = []
    widget.action_asked.connect(lambda id_, name: asked.append((id_, name)))
    for control in widget.controls():
        control.click()  # type: ignore[attr-defined]

    assert asked == [(1, "previous"), (1, "next")]
    show(widget, Message(1, "user", "q", branch=2, num_branches=3))
    leave(widget)
    assert [c.isEnabled() for c in widget.controls()] == [True, False]
    assert widget.controls()[0].accessibleName() == "Earlier version; this is version 3 of 3"


def test_the_message_under_the_keyboard_shows_what_can_be_done_without_moving_anything(
    widget: MessageWidget,
) -> None:
    message = Message(1, "user", "q")
    height = show(widget, message)
    leave(widget)
    assert widget.controls() == []

    widget.set_current(is_current=True)

    assert [c.accessibleName() for c in widget.controls()] == [
        "Copy your message",
        "Edit your message",
        "More for your message",
    ]
    assert widget.fit(widget.width()) == height
    bar = widget.actions_bar
    assert bar.geometry().bottom() <= height
    assert bar.geometry().right() <= widget.width()


def test_the_menu_has_all_that_can_be_done(widget: MessageWidget) -> None:
    show(widget, Message(1, "assistant", "a"))

    words = [action.text() for action in widget.actions_bar.menu().actions() if action.text()]

    assert words == [
        "Copy as Markdown",
        "Copy as plain text",
        "Copy with formatting",
        "Edit this reply…",
        "Answer again",
        "New chat from here",
        "Details of this reply…",
        "Choose several messages",
        "Delete question and answer…",
    ]
