"""The doctor in the whole window: when it looks, what the card and the line across the top say, and how it is ended."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot
from window_desk import WindowDesk, put_model

from inglenook.app.models.model_check_line import ModelCheckLine
from inglenook.app.window.theme import Theme
from inglenook.engine.client import EngineClient
from inglenook.engine.model_doctor.process import ExaminationEndedError, first_look, records_folder
from inglenook.engine.model_doctor.records import DoctorRecords
from inglenook.engine.model_doctor.report import DoctorReport, Finding
from inglenook.engine.model_library import ModelLibrary
from inglenook.engine.request import Request

FINE = Finding("file", "green", "All tensors are there.")
SLOW = Finding("speed", "amber", "It is slow here.")
BROKEN = Finding("numbers", "red", "Layer 3 gives values that are no numbers.")


class PlayedLook:
    """A doctor that a test plays: each look waits for `say`, or until it is cancelled."""

    def __init__(self) -> None:
        self.looks: list[tuple[Path, bool, threading.Event]] = []
        self._answers: queue.SimpleQueue[DoctorReport | Finding | Exception] = queue.SimpleQueue()

    def say(self, *findings: Finding) -> None:
        self._answers.put(DoctorReport("tiny", findings, 1.0))

    def tell(self, news: Finding | Exception) -> None:
        self._answers.put(news)

    def __call__(
        self,
        path: Path,
        *,
        backend: str,
        again: bool,
        on_finding: Callable[[Finding], None],
        cancelled: threading.Event,
    ) -> DoctorReport:
        self.looks.append((path, again, cancelled))
        while not cancelled.wait(0.005):
            try:
                answer = self._answers.get_nowait()
            except queue.Empty:
                continue
            if isinstance(answer, Exception):
                raise answer
            if isinstance(answer, DoctorReport):
                return answer
            on_finding(answer)
        raise ExaminationEndedError("The examination of tiny was cancelled.")


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))


@pytest.fixture
def doctor() -> PlayedLook:
    return PlayedLook()


@pytest.fixture
def desk(qtbot: QtBot, theme: Theme, tmp_path: Path, doctor: PlayedLook) -> Iterator[WindowDesk]:
    put_model(tmp_path)
    desk = WindowDesk(qtbot, theme, tmp_path, look=doctor).start()
    desk.qtbot.waitUntil(lambda: len(doctor.looks) == 1)
    yield desk
    desk.close()


def check(desk: WindowDesk, name: str = "tiny") -> ModelCheckLine:
    desk.window.show_models()
    return desk.window.models.card(name).check


def wait_for(desk: WindowDesk, words: str) -> ModelCheckLine:
    line = check(desk)
    desk.qtbot.waitUntil(lambda: line.words.text() == words)
    return line


def press(control: object) -> None:
    """Press a button with the keyboard."""
    control.setFocus()  # type: ignore[attr-defined]
    assert QApplication.focusWidget() is control
    QTest.keyClick(control, Qt.Key.Key_Space)  # type: ignore[call-overload]


def test_the_first_load_is_looked_at_once_and_a_sound_model_is_said_so_quietly(
    desk: WindowDesk, doctor: PlayedLook
) -> None:
    assert check(desk).words.text() == "Is being examined…"
    doctor.say(FINE)
    line = wait_for(desk, "Sound")

    desk.application.bridge.load(doctor.looks[0][0], name="tiny")
    desk.qtbot.waitUntil(lambda: len(desk.client.loads) == 2)

    assert desk.window.banner.text == ""
    assert line.words.property("look") == "small"
    assert [again for _, again, _ in doctor.looks] == [False]


def test_remarks_are_counted_and_shown_on_demand_by_the_keyboard(
    desk: WindowDesk, doctor: PlayedLook
) -> None:
    doctor.say(FINE, SLOW)
    line = wait_for(desk, "Check: 1 remark")
    assert line.findings == []

    press(line.details_button)
    assert line.findings == ["Remark · speed: It is slow here.", "Good · file: All tensors are there."]
    assert line.details_button.accessibleName() == "Hide findings on Tiny 1M"
    press(line.details_button)

    assert line.findings == []
    assert line.words.property("look") == "caution"
    assert line.words.accessibleName() == "Soundness of Tiny 1M: Check: 1 remark"


def test_an_unsound_model_stands_across_the_top_with_one_button_to_its_findings(
    desk: WindowDesk, doctor: PlayedLook
) -> None:
    doctor.say(FINE, BROKEN)
    sentence = "Tiny 1M · Unsound: Layer 3 gives values that are no numbers."
    desk.qtbot.waitUntil(lambda: desk.window.banner.text == sentence)

    press(desk.window.banner.button)

    assert desk.window.page is desk.window.models
    line = desk.window.models.card("tiny").check
    assert line.findings[0] == "Fault · numbers: Layer 3 gives values that are no numbers."
    assert line.words.property("look") == "error"
    assert QApplication.focusWidget() is line.details_button


def test_a_warning_that_was_taken_away_stays_so_until_the_model_is_loaded_anew(
    desk: WindowDesk, doctor: PlayedLook
) -> None:
    doctor.say(BROKEN)
    desk.qtbot.waitUntil(lambda: "Unsound" in desk.window.banner.text)

    desk.window.banner.dismiss_button.click()
    desk.application.models.refresh()
    with desk.qtbot.waitSignal(desk.application.models.changed):
        pass
    assert desk.window.banner.text == ""
    desk.window.models.card("tiny").main_button.click()
    desk.qtbot.waitUntil(lambda: desk.application.bridge.model_state().phase == "unloaded")
    desk.window.models.card("tiny").main_button.click()

    desk.qtbot.waitUntil(lambda: "Unsound" in desk.window.banner.text)
    assert len(doctor.looks) == 1


def test_no_look_begins_while_a_reply_is_being_written(
    qtbot: QtBot, theme: Theme, tmp_path: Path, doctor: PlayedLook
) -> None:
    put_model(tmp_path)
    desk = WindowDesk(qtbot, theme, tmp_path, look=doctor)
    desk.client.loads_at_once = False
    desk.application.start()
    qtbot.waitUntil(lambda: len(desk.client.loads) == 1 and desk.can_write)
    bridge = desk.application.bridge
    bridge.submit(Request(prompt="Why?"))
    desk.client.loaded(desk.client.loads[0])
    qtbot.waitUntil(lambda: bridge.model_state().phase == "ready")
    assert doctor.looks == []
    desk.client.requests[0].finish()

    qtbot.waitUntil(lambda: len(doctor.looks) == 1)
    desk.close()


def test_a_model_can_be_examined_again_and_the_examination_stopped(
    desk: WindowDesk, doctor: PlayedLook
) -> None:
    doctor.say(FINE)
    line = wait_for(desk, "Sound")
    assert line.examine_button.accessibleName() == "Examine Tiny 1M"

    press(line.examine_button)
    desk.qtbot.waitUntil(lambda: len(doctor.looks) == 2)
    assert line.examine_button.accessibleName() == "Stop examining Tiny 1M"
    doctor.tell(SLOW)
    desk.qtbot.waitUntil(lambda: not line.details_button.isHidden())
    press(line.examine_button)

    desk.qtbot.waitUntil(lambda: line.words.text() == "Sound")
    assert doctor.looks[1][1]
    assert doctor.looks[1][2].is_set()


@pytest.mark.parametrize("end", ["unload", "another", "close"])
def test_a_look_ends_with_the_model_it_is_about(
    desk: WindowDesk, doctor: PlayedLook, tmp_path: Path, end: str
) -> None:
    bridge, cancelled = desk.application.bridge, doctor.looks[0][2]

    if end == "unload":
        bridge.unload()
    elif end == "another":
        bridge.load(tmp_path / "other.gguf", name="other")
        desk.qtbot.waitUntil(lambda: len(doctor.looks) == 2)
    else:
        desk.close()

    assert cancelled.is_set()


def test_an_examination_that_failed_is_one_sentence_on_the_card(desk: WindowDesk, doctor: PlayedLook) -> None:
    doctor.tell(ExaminationEndedError("The examination of tiny ended without a report (status 1)."))

    line = wait_for(desk, "The examination of tiny ended without a report (status 1).")

    assert desk.window.banner.text == ""
    assert line.examine_button.accessibleName() == "Examine Tiny 1M"


def test_what_was_found_earlier_is_shown_without_a_look(
    qtbot: QtBot, theme: Theme, tmp_path: Path, doctor: PlayedLook
) -> None:
    put_model(tmp_path)
    put_model(tmp_path, "other", title="Other 1M")
    library = ModelLibrary(tmp_path / "data" / "models")
    for model in library.models():
        DoctorRecords(records_folder()).keep(model.path, DoctorReport(model.name, (SLOW,), 1.0))

    desk = WindowDesk(qtbot, theme, tmp_path, look=doctor).start()
    qtbot.waitUntil(lambda: len(doctor.looks) == 1)
    (not_loaded,) = [m.name for m in library.models() if m.path != doctor.looks[0][0]]
    line = check(desk, not_loaded)
    qtbot.waitUntil(lambda: line.words.text() == "Check: 1 remark")

    assert len(doctor.looks) == 1
    desk.close()


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_real_model_is_examined_in_the_window_after_its_first_load(
    qtbot: QtBot, theme: Theme, tmp_path: Path, smollm2: Path
) -> None:
    (tmp_path / "data").mkdir()
    ModelLibrary(tmp_path / "data" / "models").add(smollm2, name="smollm2-135m")
    desk = WindowDesk(qtbot, theme, tmp_path, EngineClient.child(), first_look)  # type: ignore[arg-type]
    try:
        desk.start()
        qtbot.waitUntil(lambda: desk.application.bridge.model_state().phase == "ready", timeout=120_000)
        line = check(desk, "smollm2-135m")
        qtbot.waitUntil(lambda: line.words.text().startswith(("Sound", "Check:", "Unsound")), timeout=240_000)
        press(line.details_button)

        assert not line.words.text().startswith("Unsound"), line.findings
        assert len(line.findings) >= 5
    finally:
        desk.close()
