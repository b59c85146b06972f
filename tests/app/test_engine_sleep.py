"""An engine that nothing is asked of for a while sleeps: the window says so calmly, and the next question wakes it."""

from __future__ import annotations

import functools
import sys
from pathlib import Path

from fake_client import FakeClient
from pytestqt.qtbot import QtBot
from window_desk import WindowDesk

from inglenook.app.bridge import EMBEDDER, EngineBridge
from inglenook.engine.client import EngineClient
from inglenook.engine.homes.child_home import ChildHome
from inglenook.engine.homes.messages import Notice
from inglenook.engine.request import Request

FAKE_CORE = Path(__file__).parents[1] / "engine" / "fake_core.py"


def fall_asleep(desk: WindowDesk) -> None:
    desk.client.sleep()
    desk.qtbot.waitUntil(lambda: desk.application.bridge.model_state().phase == "asleep")


def test_the_window_asks_for_a_quarter_of_an_hour_and_for_what_is_set(desk: WindowDesk) -> None:
    assert desk.client.idle_after_s == 900

    desk.application.settings.set("model.idle_minutes", 2)
    assert desk.client.idle_after_s == 120
    desk.application.settings.set("model.idle_minutes", 0)

    assert desk.client.idle_after_s is None


def test_header_and_card_say_that_the_model_sleeps_and_one_can_go_on_writing(desk: WindowDesk) -> None:
    fall_asleep(desk)

    assert desk.window.model_button.text() == "Tiny 1M · sleeping"
    assert "the next question loads it again" in desk.window.model_button.toolTip()
    assert desk.window.models.card("tiny").fit.text() == "Sleeping"
    assert desk.can_write
    assert desk.window.banner.text == ""


def test_the_next_question_loads_the_model_again_with_its_progress_and_is_answered(desk: WindowDesk) -> None:
    fall_asleep(desk)
    desk.client.loads_at_once = False

    desk.send("Are you there?")
    desk.qtbot.waitUntil(lambda: len(desk.client.loads) == 2)
    assert desk.window.model_button.text() == "Loading Tiny 1M…"
    desk.client.loaded(desk.client.loads[1])
    desk.qtbot.waitUntil(lambda: len(desk.client.requests) == 1)
    desk.client.requests[0].say("Yes.", 1)
    desk.client.requests[0].finish()

    desk.qtbot.waitUntil(lambda: [m.text for m in desk.messages] == ["Are you there?", "Yes."])
    assert desk.window.model_button.text() == "Tiny 1M"


def test_a_model_that_sleeps_can_be_unloaded(desk: WindowDesk) -> None:
    fall_asleep(desk)

    desk.window.models.card("tiny").main_button.click()

    assert desk.application.bridge.model_state().phase == "unloaded"
    assert desk.window.models.card("tiny").main_button.text() == "Use"


def test_news_of_sleep_that_comes_after_a_question_is_late_and_changes_nothing(desk: WindowDesk) -> None:
    bridge = desk.application.bridge

    desk.client.sleep()
    bridge.submit(Request(prompt="Why?"))
    desk.client.requests[0].finish()
    with desk.qtbot.waitSignal(bridge.reply_finished):
        pass

    assert bridge.model_state().phase == "ready"
    assert len(desk.client.loads) == 1


def test_a_shorter_context_is_told_and_shown(desk: WindowDesk) -> None:
    assert desk.client.on_notice is not None

    desk.client.on_notice(Notice("chat", "Memory is short: 512 tokens of context are left.", 512))
    desk.qtbot.waitUntil(lambda: "512 tokens" in desk.window.banner.text)

    assert desk.window.model_button.toolTip().startswith("512 tokens of context")


def test_another_model_loaded_while_all_sleep_wakes_the_encoder_once(qtbot: QtBot) -> None:
    client = FakeClient()
    bridge = EngineBridge(client)  # type: ignore[arg-type]
    bridge.load(Path("/models/m.gguf"))
    bridge.load(Path("/models/e"), slot=EMBEDDER)
    qtbot.waitUntil(lambda: {bridge.model_state(s).phase for s in ("chat", EMBEDDER)} == {"ready"})
    client.sleep()
    qtbot.waitUntil(lambda: bridge.model_state(EMBEDDER).phase == "asleep")

    bridge.load(Path("/models/n.gguf"))
    qtbot.waitUntil(lambda: {bridge.model_state(s).phase for s in ("chat", EMBEDDER)} == {"ready"})
    bridge.close()

    assert [load.what for load in client.loads[2:]] == ["/models/n.gguf", "/models/e"]


def test_a_real_engine_process_ends_in_its_sleep_and_answers_the_next_request(qtbot: QtBot) -> None:
    command = (sys.executable, "-I", str(FAKE_CORE))
    bridge = EngineBridge(EngineClient(functools.partial(ChildHome, command=command)))
    bridge.load(Path("model.gguf"))
    qtbot.waitUntil(lambda: bridge.model_state().phase == "ready")

    bridge.unload_when_idle(0.05)
    qtbot.waitUntil(lambda: bridge.model_state().phase == "asleep")
    bridge.unload_when_idle(None)
    assert bridge.engine_state.phase == "idle"
    with qtbot.waitSignal(bridge.reply_finished, timeout=20_000):
        bridge.submit(Request(prompt="count 3"))

    assert bridge.model_state().phase == "ready"
    bridge.close()
