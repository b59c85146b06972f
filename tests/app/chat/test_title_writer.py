"""Chats named by the model: behind every question, cancelled by the next one, and never over a title of the user's."""

from __future__ import annotations

from pathlib import Path

import pytest
from fake_client import FakeClient
from pytestqt.qtbot import QtBot
from window_desk import WindowDesk, put_model

from inglenook.app.chat.title_writer import ASKED, clean_title
from inglenook.app.window.theme import Theme
from inglenook.engine.tokenizer.reasoning import ReasoningTags


@pytest.fixture
def desk(desk: WindowDesk) -> WindowDesk:
    desk.application.settings.set("chat.titles", True)
    return desk


def asked(desk: WindowDesk, count: int = 2) -> None:
    desk.qtbot.waitUntil(lambda: len(desk.client.requests) == count)


def test_a_first_turn_is_named_by_a_request_that_goes_on_from_its_prompt(desk: WindowDesk) -> None:
    desk.ask("Why is the sky blue?", "It scatters light.")
    asked(desk)
    request = desk.client.requests[-1].what

    assert [m["content"] for m in request.messages] == ["Why is the sky blue?", "It scatters light.", ASKED]
    assert request.priority > desk.client.requests[0].what.priority
    assert request.reply_token_ids == {1: (1, 2)}
    assert request.owner == desk.client.requests[0].what.owner
    assert request.reply_begin == ""
    desk.client.requests[-1].say('"The blue sky."', 5)
    desk.client.requests[-1].finish()
    desk.qtbot.waitUntil(lambda: desk.titles == ["The blue sky"])
    assert desk.window.windowTitle().startswith("The blue sky")


def test_the_next_question_cancels_it(desk: WindowDesk) -> None:
    desk.ask("One?", "1")
    asked(desk)

    desk.send("Two?")
    desk.qtbot.waitUntil(lambda: len(desk.client.requests) == 3)

    assert desk.client.requests[1].is_cancelled
    desk.client.requests[1].say("Late title", 5)
    desk.client.requests[1].finish("cancelled")
    desk.client.requests[2].say("2", 6)
    desk.client.requests[2].finish()
    desk.qtbot.waitUntil(lambda: len(desk.messages) == 4 and desk.messages[-1].state == "complete")
    assert desk.titles == ["One?"]


def test_a_title_of_the_users_stays(desk: WindowDesk) -> None:
    desk.ask("One?", "1")
    asked(desk)
    desk.window.sidebar.chats.rename_requested.emit(desk.join.chats.conversation_id, "Mine")
    desk.qtbot.waitUntil(lambda: desk.titles == ["Mine"])

    desk.client.requests[-1].say("Theirs", 5)
    desk.client.requests[-1].finish()
    desk.ask("Two?", "2")

    assert desk.titles == ["Mine"]


@pytest.mark.parametrize("fail", [True, False])
def test_a_failed_or_empty_title_leaves_the_question(desk: WindowDesk, fail: bool) -> None:
    desk.ask("One?", "1")
    asked(desk)

    if fail:
        desk.client.requests[-1].fail("ContextLengthError", "too long")
    else:
        desk.client.requests[-1].finish()
    desk.ask("Two?", "2")

    assert desk.titles == ["One?"]
    assert len(desk.client.requests) == 3


def test_a_model_that_thinks_is_asked_not_to(qtbot: QtBot, theme: Theme, tmp_path: Path) -> None:
    put_model(tmp_path)
    for tags, begin in (
        (ReasoningTags("<think>", "</think>"), "<think>\n\n</think>\n\n"),
        (ReasoningTags("<think>", "</think>", is_open=True), "\n</think>\n\n"),
    ):
        desk = WindowDesk(qtbot, theme, tmp_path, FakeClient(reasoning=tags)).start()
        desk.application.settings.set("chat.titles", True)
        desk.join.chats.new()
        desk.ask("One?", "<think>x</think>1")
        asked(desk)
        assert desk.client.requests[-1].what.reply_begin == begin
        desk.close()


def test_switched_off_nothing_is_asked_and_a_temporary_chat_is_never_named(desk: WindowDesk) -> None:
    desk.application.settings.set("chat.titles", False)
    desk.ask("One?", "1")
    desk.application.settings.set("chat.titles", True)
    desk.window.actions_by_name["temporary_chat"].trigger()
    desk.ask("Two?", "2")
    desk.ask("Three?", "3")

    assert len(desk.client.requests) == 3


@pytest.mark.parametrize(
    ("reply", "title"),
    [
        ('"Blue sky"', "Blue sky"),
        ("Title: **Blue sky**\nMore", "Blue sky"),
        ("<think>\nhm\n</think>\n\nBlue sky.", "Blue sky"),
        ("青い空", "青い空"),
        ("<think>never ends", ""),
        ("", ""),
        ("***", ""),
        ("word " * 20, ""),
        ("Answer with the title alone.", ""),
    ],
)
def test_only_a_title_is_taken(reply: str, title: str) -> None:
    assert clean_title(reply) == title
