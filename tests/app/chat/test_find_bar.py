"""Finding in the chat on screen."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from pytestqt.qtbot import QtBot

from inglenook.app.chat.chat_page import ChatPage
from inglenook.app.chat.message_list_model import Message
from inglenook.app.window.theme import Theme


@pytest.fixture
def page(qtbot: QtBot, theme: Theme) -> ChatPage:
    page = ChatPage(theme)
    qtbot.addWidget(page)
    page.model.replace(
        Message(
            n,
            "user" if n % 2 else "assistant",
            f"Message {n}. " + ("The Needle. " if n in (3, 90) else "x " * 60),
        )
        for n in range(1, 121)
    )
    page.resize(800, 600)
    page.show()
    page.find_bar.begin()
    return page


def seen(page: ChatPage) -> set[object]:
    height = page.view.viewport().height()
    return {w.message_id for w in page.view.visible_widgets() if w.y() < height and w.y() + w.height() > 0}


def test_words_are_found_out_of_sight_and_marked(page: ChatPage, qtbot: QtBot) -> None:
    QTest.keyClicks(page.find_bar.field, "needle")

    assert page.find_bar.count.text() == "2 of 2 messages"
    assert 90 in seen(page)
    QTest.keyClick(page.find_bar.field, Qt.Key.Key_Return)
    assert page.find_bar.count.text() == "1 of 2 messages"
    assert 3 in seen(page)
    marked = [w.browser.textCursor().selectedText() for w in page.view.visible_widgets() if w.message_id == 3]
    assert marked == ["Needle"]


def test_steps_go_round_and_a_growing_reply_is_looked_through_again(page: ChatPage) -> None:
    QTest.keyClicks(page.find_bar.field, "needle")
    page.model.append(Message(200, "assistant", "One more needle", "streaming"))

    page.find_bar.step(1)
    assert page.find_bar.count.text() == "3 of 3 messages"
    page.find_bar.step(1)
    assert page.find_bar.count.text() == "1 of 3 messages"
    page.find_bar.step(-1)

    assert page.find_bar.count.text() == "3 of 3 messages"


def test_nothing_found_is_said_and_the_buttons_rest(page: ChatPage) -> None:
    QTest.keyClicks(page.find_bar.field, "[a-z]+")

    assert page.find_bar.count.text() == "Nothing found"
    assert not page.find_bar.next_button.isEnabled()


def test_closing_gives_the_keyboard_back(page: ChatPage, qtbot: QtBot) -> None:
    with qtbot.waitSignal(page.find_bar.closed):
        page.find_bar.close_button.click()

    assert not page.find_bar.isVisible()
