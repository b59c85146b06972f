"""Two models on one question, as a person asks them in the whole window."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from pytestqt.qtbot import QtBot
from tiny_gguf import write_tiny_gguf
from window_desk import WindowDesk, put_model

from inglenook.app.models import comparison as module
from inglenook.app.models.comparison import Comparison
from inglenook.app.models.comparison_page import ComparisonPage
from inglenook.app.window.theme import Theme
from inglenook.engine.memory import MemoryState


@pytest.fixture
def desk(qtbot: QtBot, theme: Theme, tmp_path: Path) -> Iterator[WindowDesk]:
    for name, title in (("alpha", "Alpha 1B"), ("beta", "Beta 2B")):
        put_model(tmp_path, name, title=title)
        path = tmp_path / "data" / "models" / name / "model.gguf"
        path.unlink()
        write_tiny_gguf(path)
    desk = WindowDesk(qtbot, theme, tmp_path).start()
    desk.application.use_model(desk.application.models.state.get("alpha"))  # type: ignore[arg-type]
    qtbot.waitUntil(lambda: desk.application.bridge.model_state().name == "alpha")
    qtbot.waitUntil(lambda: desk.application.bridge.model_state().phase == "ready")
    desk.client.loads.clear()
    desk.window.actions_by_name["compare"].trigger()
    yield desk
    desk.close()


@pytest.fixture
def page(desk: WindowDesk) -> ComparisonPage:
    return desk.join.models.comparison.page


@pytest.fixture
def comparison(desk: WindowDesk) -> Comparison:
    return desk.join.models.comparison.comparison


def set_free(monkeypatch: pytest.MonkeyPatch, free_bytes: int) -> None:
    monkeypatch.setattr(module, "memory_state", lambda: MemoryState(64 * 10**9, free_bytes))


def ask(page: ComparisonPage, text: str) -> None:
    page.question.setFocus()
    page.question.setPlainText(text)
    QTest.keyClick(page.question, Qt.Key.Key_Return)


def texts(page: ComparisonPage) -> list[str]:
    return [pane.browser.toPlainText() for pane in page.panes]


def test_two_that_fit_answer_at_the_same_time_beside_each_other(
    desk: WindowDesk, page: ComparisonPage
) -> None:
    assert page.chosen_names == ("alpha", "beta")
    assert page.plan.text().startswith("Both fit: together they need ")

    ask(page, "What is a hedge?")
    desk.qtbot.waitUntil(lambda: len(desk.client.requests) == 2)
    left, right = desk.client.requests

    # The chat's model is not loaded a second time.
    assert [load.slot for load in desk.client.loads] == ["compare-right"]
    assert {left.what.slot, right.what.slot} == {"chat", "compare-right"}
    assert left.what.sampling.seed == right.what.sampling.seed is not None
    left.say("A row of *shrubs*.", 1)
    right.say("A fence that grows.", 1)
    left.finish()
    right.finish()
    desk.qtbot.waitUntil(lambda: texts(page) == ["A row of shrubs.", "A fence that grows."])
    assert page.panes[0].status.text() == "0.25 s to the first word · 20 tokens a second · 2 tokens"
    assert page.ask_button.text() == "Ask both"


def test_two_that_do_not_fit_answer_one_after_the_other_and_it_is_said(
    desk: WindowDesk, page: ComparisonPage, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Each needs about 350 MB.
    set_free(monkeypatch, 400_000_000)
    page.chosen.emit()
    assert "400 MB are free. They answer one after the other." in page.plan.text()

    ask(page, "What is a hedge?")
    desk.qtbot.waitUntil(lambda: len(desk.client.requests) == 1)
    assert page.panes[1].status.text() == "Waits until the other model has answered"
    assert desk.client.loads == []
    desk.client.requests[0].say("A row.", 1)
    desk.client.requests[0].finish()
    desk.qtbot.waitUntil(lambda: len(desk.client.requests) == 2)
    desk.client.requests[1].say("A fence.", 1)
    desk.client.requests[1].finish()

    desk.qtbot.waitUntil(lambda: texts(page) == ["A row.", "A fence."])
    assert desk.client.unloads == ["compare-right"]


def test_the_chats_model_makes_room_and_comes_back_when_the_page_is_left(
    desk: WindowDesk, page: ComparisonPage, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_free(monkeypatch, 100_000_000)
    ask(page, "What is a hedge?")
    desk.qtbot.waitUntil(lambda: len(desk.client.requests) == 1)
    desk.client.requests[0].say("A row.", 1)
    desk.client.requests[0].finish()
    desk.qtbot.waitUntil(lambda: len(desk.client.requests) == 2)
    assert desk.client.unloads == ["chat"]
    desk.client.requests[1].finish()
    desk.qtbot.waitUntil(lambda: not desk.join.models.comparison.comparison.is_running)

    desk.window.show_chat()

    desk.qtbot.waitUntil(lambda: desk.application.bridge.model_state().phase == "ready")
    assert desk.application.bridge.model_state().name == "alpha"
    assert desk.client.forgotten[-1] == "comparison"


def test_leaving_the_page_gives_the_memory_back(desk: WindowDesk, page: ComparisonPage) -> None:
    ask(page, "Why?")
    desk.qtbot.waitUntil(lambda: len(desk.client.requests) == 2)

    desk.window.show_chat()

    assert all(request.is_cancelled for request in desk.client.requests)
    assert desk.client.unloads == ["compare-right"]
    assert desk.application.bridge.model_state().phase == "ready"


def test_one_answer_is_kept_as_a_chat_with_its_model_and_figures(
    desk: WindowDesk, page: ComparisonPage
) -> None:
    ask(page, "What is a hedge?")
    desk.qtbot.waitUntil(lambda: len(desk.client.requests) == 2)
    for request in desk.client.requests:
        request.say(f"From {request.what.slot}.", 1)
        request.finish()
    desk.qtbot.waitUntil(lambda: page.panes[1].keep_button.isVisible())

    QTest.mouseClick(page.panes[1].keep_button, Qt.MouseButton.LeftButton)

    desk.qtbot.waitUntil(lambda: len(desk.messages) == 2 and desk.window.page is desk.window.chat)
    assert [message.text for message in desk.messages] == ["What is a hedge?", "From compare-right."]
    assert desk.messages[1].figures.startswith("0.25 s to the first word")
    desk.qtbot.waitUntil(lambda: desk.application.bridge.model_state().name == "beta")
    assert desk.application.settings.value("model.name") == "beta"


def test_stop_keeps_what_was_written_and_one_that_fails_says_why(
    desk: WindowDesk, page: ComparisonPage, comparison: Comparison
) -> None:
    ask(page, "Why?")
    desk.qtbot.waitUntil(lambda: len(desk.client.requests) == 2)
    left = next(r for r in desk.client.requests if r.what.slot == "chat")
    right = next(r for r in desk.client.requests if r.what.slot == "compare-right")
    left.say("Because", 1)
    right.fail("ContextLengthError", "It is too long.")
    desk.qtbot.waitUntil(lambda: page.panes[1].problem.isVisible())
    assert page.panes[1].problem.text() == "It is too long."
    assert page.ask_button.text() == "Stop"

    QTest.mouseClick(page.ask_button, Qt.MouseButton.LeftButton)

    assert left.is_cancelled
    assert comparison.sides[0].phase == "stopped"
    desk.qtbot.waitUntil(lambda: texts(page)[0] == "Because")
    assert page.panes[0].keep_button.isVisible()


def test_a_model_that_cannot_be_loaded_fails_alone(desk: WindowDesk, page: ComparisonPage) -> None:
    desk.client.loads_at_once = False
    ask(page, "Why?")
    desk.qtbot.waitUntil(lambda: len(desk.client.loads) == 1)
    desk.client.loads[0].fail("NotEnoughMemoryError", "beta needs 14.2 GB, 9.1 GB are free.")

    desk.qtbot.waitUntil(lambda: page.panes[1].problem.isVisible())
    assert page.panes[1].problem.text() == "beta needs 14.2 GB, 9.1 GB are free."
    desk.client.requests[0].say("So.", 1)
    desk.client.requests[0].finish()
    desk.qtbot.waitUntil(lambda: texts(page)[0] == "So.")
    assert page.ask_button.text() == "Ask both"


def test_the_same_model_twice_is_not_asked(page: ComparisonPage) -> None:
    page.question.setPlainText("Why?")
    page.panes[1].choices.setCurrentIndex(page.panes[0].choices.currentIndex())

    assert page.plan.text() == "Choose two different models."
    assert not page.ask_button.isEnabled()


def test_with_one_model_the_page_says_what_is_missing(qtbot: QtBot, theme: Theme, tmp_path: Path) -> None:
    put_model(tmp_path)
    desk = WindowDesk(qtbot, theme, tmp_path).start()
    desk.window.actions_by_name["compare"].trigger()

    page = desk.join.models.comparison.page
    assert page.plan.text().startswith("This needs two models on this computer.")
    assert not desk.window.models.compare_button.isVisibleTo(desk.window.models)
    desk.close()


def test_large_text_sets_the_answers_below_each_other_and_nothing_is_cut(
    desk: WindowDesk, page: ComparisonPage
) -> None:
    left, right = page.panes
    assert left.y() == right.y()

    desk.window.theme.set_scale(2.0)
    desk.window.resize(1_280, 720)
    desk.qtbot.waitUntil(lambda: right.y() > left.y())

    for pane in page.panes:
        assert pane.height() >= pane.minimumSizeHint().height()
        assert pane.width() <= page.width()
