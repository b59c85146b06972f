"""The bridge over a client played by hand, and over real engine processes with a fake core."""

from __future__ import annotations

import functools
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from fake_client import FakeClient
from PySide6.QtCore import QThread
from pytestqt.qtbot import QtBot

from inglenook.app.bridge import EngineBridge, EngineState, ModelState
from inglenook.app.event_reader import TEXT_INTERVAL_S
from inglenook.engine.client import EngineClient
from inglenook.engine.homes.child_home import ChildHome
from inglenook.engine.homes.restarts import MAX_RESTARTS
from inglenook.engine.request import LoadProgress, Request

FAKE_CORE = Path(__file__).parents[1] / "engine" / "fake_core.py"
ASK = Request(prompt="count 3")


class Watch:
    """Keeps all that a bridge tells."""

    def __init__(self, bridge: EngineBridge) -> None:
        self.models: list[ModelState] = []
        self.engine: list[EngineState] = []
        self.texts: list[tuple[int, str, tuple[int, ...]]] = []
        self.times: list[float] = []
        self.threads: set[QThread] = set()
        self.ends: list[tuple[int, object]] = []
        bridge.model_state_changed.connect(self.models.append)
        bridge.engine_state_changed.connect(self.engine.append)
        bridge.reply_text.connect(self._text)
        bridge.reply_finished.connect(lambda *end: self.ends.append(end))
        bridge.reply_failed.connect(lambda *end: self.ends.append(end))

    def _text(self, *text: object) -> None:
        self.texts.append(text)  # type: ignore[arg-type]
        self.times.append(time.monotonic())
        self.threads.add(QThread.currentThread())


@pytest.fixture
def client() -> FakeClient:
    return FakeClient()


@pytest.fixture
def bridge(qtbot: QtBot, client: FakeClient) -> Iterator[EngineBridge]:
    bridge = EngineBridge(client)  # type: ignore[arg-type]
    yield bridge
    bridge.close()


@pytest.fixture
def child(qtbot: QtBot) -> Iterator[EngineBridge]:
    command = (sys.executable, "-I", str(FAKE_CORE))
    bridge = EngineBridge(EngineClient(functools.partial(ChildHome, command=command)))
    yield bridge
    bridge.close()


def test_pieces_that_come_together_are_one_signal_after_the_first(
    qtbot: QtBot, bridge: EngineBridge, client: FakeClient
) -> None:
    watch = Watch(bridge)

    request_id = bridge.submit(ASK)
    started = time.monotonic()
    client.requests[0].say("a", 1)
    qtbot.waitUntil(lambda: len(watch.texts) == 1)
    for token, letter in enumerate("bcdefgh", 2):
        client.requests[0].say(letter, token)
    qtbot.waitUntil(lambda: len(watch.texts) == 2)

    assert watch.texts == [(request_id, "a", (1,)), (request_id, "bcdefgh", (2, 3, 4, 5, 6, 7, 8))]
    # From before the first: a busy machine may tell of that one late.
    assert watch.times[1] - started >= 0.8 * TEXT_INTERVAL_S


def test_the_end_comes_after_all_text_and_once(
    qtbot: QtBot, bridge: EngineBridge, client: FakeClient
) -> None:
    watch = Watch(bridge)

    request_id = bridge.submit(ASK)
    for letter in "abc":
        client.requests[0].say(letter, 1)
    client.requests[0].finish()
    qtbot.waitUntil(lambda: bool(watch.ends))

    assert "".join(text for _, text, _ in watch.texts) == "abc"
    assert [id_ for id_, _ in watch.ends] == [request_id]


def test_signals_are_emitted_on_the_gui_thread_whatever_thread_events_come_from(
    qtbot: QtBot, bridge: EngineBridge, client: FakeClient
) -> None:
    watch = Watch(bridge)
    bridge.submit(ASK)

    thread = threading.Thread(target=client.requests[0].say, args=("x", 1))
    thread.start()
    thread.join()
    qtbot.waitUntil(lambda: bool(watch.texts))

    assert watch.threads == {bridge.thread()}


def test_after_cancel_no_text_comes_but_the_end_does(
    qtbot: QtBot, bridge: EngineBridge, client: FakeClient
) -> None:
    watch = Watch(bridge)
    request_id = bridge.submit(ASK)
    client.requests[0].say("seen")
    qtbot.waitUntil(lambda: bool(watch.texts))

    client.requests[0].say("on its way")
    bridge.cancel(request_id)
    client.requests[0].say("late")
    client.requests[0].finish("cancelled")
    qtbot.waitUntil(lambda: bool(watch.ends))

    assert client.requests[0].is_cancelled
    assert [text for _, text, _ in watch.texts] == ["seen"]


def test_a_load_goes_through_its_stages(qtbot: QtBot, bridge: EngineBridge, client: FakeClient) -> None:
    client.loads_at_once = False
    watch = Watch(bridge)

    bridge.load(Path("/models/m.gguf"), name="m")
    client.loads[0].handle.deliver(LoadProgress("Loading", 1, 4))
    qtbot.waitUntil(lambda: bridge.model_state().done == 1)
    client.loaded(client.loads[0])
    qtbot.waitUntil(lambda: bridge.model_state().phase == "ready")

    assert [state.phase for state in watch.models] == ["loading", "loading", "ready"]
    assert bridge.model_state().name == "m"
    assert bridge.model_state().facts is not None
    assert bridge.engine_state.phase == "running"


def test_a_load_that_fails_says_why_and_a_second_load_overtakes_the_first(
    qtbot: QtBot, bridge: EngineBridge, client: FakeClient
) -> None:
    client.loads_at_once = False

    bridge.load(Path("/models/a.gguf"))
    bridge.load(Path("/models/b.gguf"))
    client.loads[0].fail("EngineError", "overtaken")
    client.loads[1].fail("ModelFileError", "b.gguf is damaged.")
    qtbot.waitUntil(lambda: bridge.model_state().phase == "failed")

    assert bridge.model_state().sentence == "b.gguf is damaged."


def test_vectors_come_as_an_array(qtbot: QtBot, bridge: EngineBridge, client: FakeClient) -> None:
    with qtbot.waitSignal(bridge.embedded) as blocker:
        request_id = bridge.embed(["one", "two"])

    assert blocker.args[0] == request_id
    assert blocker.args[1].shape == (2, client.dimension)
    assert blocker.args[1].dtype == np.float32


def test_a_death_is_told_once_and_the_next_request_loads_again(
    qtbot: QtBot, bridge: EngineBridge, client: FakeClient
) -> None:
    watch = Watch(bridge)
    bridge.load(Path("/models/m.gguf"))
    qtbot.waitUntil(lambda: bridge.model_state().phase == "ready")
    bridge.submit(ASK)

    client.die("Ended by signal 9.", client.requests[0])
    qtbot.waitUntil(lambda: bool(watch.ends))

    assert [state.phase for state in watch.engine] == ["running", "stopped"]
    assert bridge.engine_state.can_restart
    assert "signal 9" in bridge.engine_state.sentence
    assert bridge.model_state().phase == "stopped"

    bridge.submit(ASK)
    client.requests[1].say("again")
    qtbot.waitUntil(lambda: bridge.engine_state.phase == "running")

    assert len(client.loads) == 2
    assert bridge.model_state().phase == "ready"


def test_the_button_restarts_and_the_line_says_so(
    qtbot: QtBot, bridge: EngineBridge, client: FakeClient
) -> None:
    bridge.load(Path("/models/m.gguf"))
    qtbot.waitUntil(lambda: bridge.model_state().phase == "ready")
    client.die("Gone.")
    qtbot.waitUntil(lambda: bridge.engine_state.phase == "stopped")

    bridge.restart()

    assert bridge.engine_state.phase == "restarting"
    qtbot.waitUntil(lambda: bridge.engine_state.phase == "running")
    assert bridge.model_state().phase == "ready"


def test_unloading_the_last_model_ends_in_an_idle_engine(
    qtbot: QtBot, bridge: EngineBridge, client: FakeClient
) -> None:
    bridge.load(Path("/models/m.gguf"))
    qtbot.waitUntil(lambda: bridge.model_state().phase == "ready")

    bridge.unload()

    assert bridge.model_state().phase == "unloaded"
    assert bridge.engine_state.phase == "idle"


def test_after_close_requests_fail_quietly_and_closing_twice_is_fine(
    qtbot: QtBot, bridge: EngineBridge, client: FakeClient
) -> None:
    watch = Watch(bridge)

    bridge.close()
    bridge.submit(ASK)
    bridge.close()

    assert client.is_closed
    assert not watch.ends


def test_text_that_arrives_after_the_engine_s_end_does_not_make_it_run(
    qtbot: QtBot, bridge: EngineBridge, client: FakeClient
) -> None:
    watch = Watch(bridge)
    bridge.load(Path("/models/m.gguf"))
    qtbot.waitUntil(lambda: bridge.model_state().phase == "ready")
    bridge.submit(ASK)
    asked = client.requests[0]

    asked.say("a")
    asked.say("b")  # held back for the next signal
    client.die("It was ended.", asked)
    qtbot.waitUntil(lambda: bool(watch.ends))

    assert "".join(text for _, text, _ in watch.texts) == "ab"
    qtbot.waitUntil(lambda: bridge.engine_state.phase == "stopped")


def test_a_killed_engine_keeps_the_text_and_comes_back(qtbot: QtBot, child: EngineBridge) -> None:
    watch = Watch(child)
    child.load(Path("model.gguf"))

    child.submit(Request(prompt="kill"))
    qtbot.waitUntil(lambda: bool(watch.ends), timeout=15_000)
    assert "".join(text for _, text, _ in watch.texts) == "so far"
    qtbot.waitUntil(lambda: child.engine_state.phase == "stopped", timeout=15_000)
    child.submit(Request(prompt="count 2"))
    qtbot.waitUntil(lambda: len(watch.ends) == 2, timeout=15_000)

    qtbot.waitUntil(lambda: child.engine_state.phase == "running", timeout=15_000)
    assert child.model_state().phase == "ready"


@pytest.mark.slow
def test_too_many_deaths_are_given_up_with_the_time_to_wait(qtbot: QtBot, child: EngineBridge) -> None:
    watch = Watch(child)
    child.load(Path("model.gguf"))

    for count in range(1, MAX_RESTARTS + 2):
        child.submit(Request(prompt="exit 3"))
        qtbot.waitUntil(lambda count=count: len(watch.ends) == count, timeout=20_000)
    child.submit(Request(prompt="count 1"))
    qtbot.waitUntil(lambda: len(watch.ends) == MAX_RESTARTS + 2, timeout=20_000)

    assert child.engine_state.phase == "gave_up"
    assert "is not started again for" in child.engine_state.sentence
    assert getattr(watch.ends[-1][1], "message", "") == child.engine_state.sentence


@pytest.mark.slow
def test_a_flood_of_tokens_leaves_the_event_loop_free(qtbot: QtBot, child: EngineBridge) -> None:
    watch = Watch(child)
    child.load(Path("model.gguf"))
    qtbot.waitUntil(lambda: child.model_state().phase == "ready", timeout=15_000)
    gaps: list[float] = []

    request_id = child.submit(Request(prompt="flood 50000"))
    while not watch.ends:
        started = time.monotonic()
        qtbot.wait(1)
        gaps.append(time.monotonic() - started)

    assert watch.ends[0][0] == request_id
    assert len("".join(text for _, text, _ in watch.texts)) == 50_000
    assert len(watch.texts) < 1 + (watch.times[-1] - watch.times[0]) / TEXT_INTERVAL_S + 3
    assert sorted(gaps)[int(0.99 * len(gaps))] < 0.5


def test_the_gui_process_never_imports_torch() -> None:
    script = (
        "import sys, inglenook.app.application, inglenook.app.chat.message_list_model\n"
        "assert 'PySide6.QtCore' in sys.modules\n"
        "assert 'torch' not in sys.modules and 'sqlite_utils' not in sys.modules\n"
    )

    subprocess.run([sys.executable, "-c", script], check=True, timeout=60)
