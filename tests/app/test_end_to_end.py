"""The real window, the real engine, the real models: a chat, a document, a citation, a restart, and deaths in between.

Runs on any Qt platform; `QT_QPA_PLATFORM=xcb xvfb-run` shows it on a screen. The two times of Stop are printed, and
checked with a slack that INGLENOOK_TIME_SLACK multiplies on busy machines (1 is an idle one).
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from pytestqt.qtbot import QtBot
from small_pdf import write_pdf
from window_desk import WindowDesk

from inglenook.app.window.theme import Theme
from inglenook.engine.client import EngineClient
from inglenook.engine.model_library import ModelLibrary
from inglenook.storage.database import Database
from inglenook.storage.messages import Messages

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

SLACK = float(os.environ.get("INGLENOOK_TIME_SLACK", "8"))
STOP_TAKEN_S, ENGINE_IDLE_S = 0.100, 0.250
PATIENCE_MS = int(30_000 * SLACK)
FACT = "The outdoor unit holds 1.2 kilograms of the refrigerant R290."
PAGES = [
    [
        f"{number}. {topic}",
        f"This chapter is about {topic.lower()}.",
        f"Its bolts take {18 + number} newton metres.",
    ]
    for number, topic in enumerate(("Safety", "Unpacking", "Siting", "Supply", "Water", "Service"), 1)
]
PAGES.insert(3, ["The refrigerant circuit", FACT, "It must never be topped up."])


def descendants(*, of: str) -> list[psutil.Process]:
    """The processes below this one whose command names the module `of`."""
    return [
        child
        for child in psutil.Process().children(recursive=True)
        if any(of in argument for argument in child.cmdline())
    ]


@pytest.fixture
def profile(tmp_path: Path, smollm2: Path, minilm: Path) -> Path:
    library = ModelLibrary(tmp_path / "data" / "models")
    (tmp_path / "data").mkdir()
    library.add(smollm2, name="smollm2-135m")
    library.add(minilm, name="minilm-l6")
    return tmp_path


@pytest.fixture
def open_window(qtbot: QtBot, theme: Theme, profile: Path) -> Iterator[Callable[[], WindowDesk]]:
    desks: list[WindowDesk] = []

    def open_() -> WindowDesk:
        for desk in desks:
            desk.close()
        desk = WindowDesk(qtbot, theme, profile, EngineClient.child())  # type: ignore[arg-type]
        desks.append(desk)
        desk.start()
        # The likeliest words, and no replies that ramble on.
        desk.application.settings.set("chat.temperature", 0.0)
        desk.application.settings.set("chat.max_tokens", 96)
        wait(desk, lambda: desk.application.bridge.model_state().phase == "ready")
        return desk

    yield open_
    for desk in desks:
        desk.close()


def wait(desk: WindowDesk, condition: Callable[[], bool]) -> None:
    desk.qtbot.waitUntil(condition, timeout=PATIENCE_MS)


def ask(desk: WindowDesk, text: str) -> None:
    """Ask and wait for the first words."""
    num_messages = len(desk.messages)
    desk.send(text)
    wait(desk, lambda: len(desk.messages) == num_messages + 2 and bool(desk.messages[-1].text))


def is_engine_idle(desk: WindowDesk) -> bool:
    return desk.application.answering.active_reply(desk.join.chats.conversation_id or 0) is None


def test_a_chat_a_document_a_restart_and_the_death_of_each_process(
    open_window: Callable[[], WindowDesk], profile: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    desk = open_window()

    # Type, send, tokens arrive, Stop.
    ask(desk, "Write a long story about a lighthouse and its keeper.")
    num_pieces = len(desk.messages[-1].text)
    wait(desk, lambda: len(desk.messages[-1].text) > num_pieces)
    before_s = time.perf_counter()
    QTest.keyClick(desk.window.chat.composer.edit, Qt.Key.Key_Escape)
    taken_s = time.perf_counter() - before_s
    assert desk.messages[-1].state == "stopped"
    wait(desk, lambda: is_engine_idle(desk))
    idle_s = time.perf_counter() - before_s
    with capsys.disabled():
        print(f"\nStop taken after {1000 * taken_s:.1f} ms, engine idle after {1000 * idle_s:.1f} ms")
    assert taken_s <= STOP_TAKEN_S * SLACK
    assert idle_s <= ENGINE_IDLE_S * SLACK
    stopped = desk.messages[-1].text
    assert stopped

    # Drop a PDF, kill the parser while it may be at work, ask, open the citation.
    pdf = write_pdf(profile / "Heat pump manual.pdf", *PAGES)
    desk.window.actions_by_name["new_chat"].trigger()
    desk.drop(pdf)
    documents = desk.application.indexing
    wait(desk, lambda: bool(documents.documents))
    for process in descendants(of="inglenook.storage.parsing"):
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()
    wait(desk, lambda: documents.documents[0].status in ("ready", "failed"))
    if documents.documents[0].status == "failed":
        documents.retry(documents.documents[0].id)
        wait(desk, lambda: documents.documents[0].status == "ready")
    ask(desk, "How many kilograms of the refrigerant R290 does the outdoor unit hold?")
    wait(desk, lambda: desk.messages[-1].state == "complete")
    assert "4" in {citation.page for citation in desk.messages[-1].citations}
    cited = next(citation for citation in desk.messages[-1].citations if citation.page == "4")
    desk.window.chat.view.citation_activated.emit(desk.messages[-1].id, cited.number)
    wait(desk, lambda: not desk.window.source.canvas.is_empty)
    assert desk.window.source.page_label.text() == "p. 4 of 7"
    assert desk.window.source.canvas.marks

    # Kill the engine in the middle of a reply; the window says so, and one button brings it back.
    desk.window.actions_by_name["new_chat"].trigger()
    desk.window.sidebar.documents.ticked.emit(documents.documents[0].id, False)
    ask(desk, "Count slowly from one to five hundred in words.")
    for process in descendants(of="inglenook.engine.homes.process"):
        process.kill()
    wait(desk, lambda: desk.messages[-1].state in ("failed", "interrupted"))
    kept = desk.messages[-1].text
    assert kept
    wait(desk, lambda: desk.window.banner.button.text() == "Start again")
    desk.window.banner.button.click()
    wait(desk, lambda: desk.application.bridge.model_state().phase == "ready")
    ask(desk, "Are you there?")
    wait(desk, lambda: is_engine_idle(desk))

    # Close, reopen, all there.
    titles = desk.titles
    last = [message.text for message in desk.messages]
    again = open_window()
    wait(again, lambda: len(again.messages) == len(last))
    assert [message.text for message in again.messages] == last
    assert again.titles == titles
    assert len(titles) == 3
    assert [document.name for document in again.application.indexing.documents] == ["Heat pump manual.pdf"]
    assert kept in last[1]


_WINDOW = """
import sys, time
from inglenook.app.window import window_start

class Session(window_start._Session):
    def _fill(self):
        super()._fill()
        ask = lambda: self._window.chat.composer.send_requested.emit("Write a long story about a lighthouse.")
        answering = self._application.answering
        answering.reply_text.connect(lambda id_, text: print(id_, time.monotonic(), len(text), flush=True))
        answering.reply_ended.connect(lambda _answer: ask())
        self._application.bridge.model_state_changed.connect(
            lambda state: state.phase == "ready" and state.slot == "chat" and ask()
        )

window_start._Session = Session
sys.exit(window_start.run_window())
"""
NUM_PIECES = 60
SAVED_WITHIN_S = 0.5


def test_killing_the_window_loses_at_most_half_a_second_and_leaves_no_process(profile: Path) -> None:
    places = {
        f"XDG_{kind}_HOME": str(profile / "xdg" / kind.lower())
        for kind in ("DATA", "CONFIG", "STATE", "CACHE")
    }
    folder = profile / "xdg" / "data" / "inglenook"
    folder.mkdir(parents=True)
    (profile / "data" / "models").rename(folder / "models")
    command = [sys.executable, "-c", _WINDOW]
    program = subprocess.Popen(command, env={**os.environ, **places}, stdout=subprocess.PIPE, text=True)
    assert program.stdout is not None
    pieces = [program.stdout.readline().split() for _ in range(NUM_PIECES)]
    children = psutil.Process(program.pid).children(recursive=True)

    program.send_signal(signal.SIGKILL)
    killed_s = time.monotonic()
    with program:
        pieces += [line.split() for line in program.stdout.read().splitlines()]
    _, alive = psutil.wait_procs(children, timeout=30 * SLACK)

    assert not alive
    last_id = pieces[-1][0]
    old_enough_s = killed_s - SAVED_WITHIN_S * SLACK
    due = sum(int(length) for id_, at_s, length in pieces if id_ == last_id and float(at_s) < old_enough_s)
    with contextlib.closing(Database.open(folder / "history.db")) as db:
        Messages(db).mark_interrupted()
        reply = Messages(db).get(int(last_id))
    assert reply.status in ("interrupted", "complete")
    assert len(reply.text) >= due
