"""How quick the window is: time to its first paint, to the paint of a reply's first word, and gaps of its event loop.

    python tests/bench/window.py [--json] [--runs 5] [--models FOLDER]

Each run is a process of its own with a fresh profile, SmolLM2-135M and MiniLM. `start_to_window_s` is from just before
the process is started to the end of the first paint. `first_paint_ms` is from the engine's stamp of a reply's first
token (made in the engine's process, by the clock that both share) to the end of the paint that shows it; p95 over the
replies of all runs. Gaps are those between the ticks of a 5 ms timer while the engine loads, prefills, streams and
embeds; p99 of each, and `gap_p99_ms` is the worst of the four. `fill_gap_ms` is the longest one between the first paint
and the load, while everything behind the window is imported and made. Medians over the runs.
The keys of long chats are those of `window_large.py`. Measure on an idle machine.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

PHASES = ("load", "prefill", "stream", "embed")
TICK_MS = 5
REPLIES = 6
LONG_PROMPT = "The keeper wrote the weather, the ships and the birds of each day into a long book. " * 60


def main() -> int:
    """Run the benchmark; the last line is one JSON object with --json."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--runs", type=int, default=5)
    default = os.environ.get("INGLENOOK_TEST_MODELS", Path.home() / ".cache" / "inglenook-test-models")
    parser.add_argument("--models", type=Path, default=Path(default))
    parser.add_argument("--child", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        return measure(options.child)
    runs = [one_run(options.models) for _ in range(options.runs)]
    gaps = {phase: statistics.median(run["gap_p99_ms"][phase] for run in runs) for phase in PHASES}
    first_paints = [ms for run in runs for ms in run["first_paint_ms"]]
    result = {
        "benchmark": "window",
        "start_to_window_s": round(statistics.median(run["start_to_window_s"] for run in runs), 3),
        "first_paint_ms": round(percentile(first_paints, 95), 1),
        "gap_p99_ms": round(max(gaps.values()), 1),
        "gap_p99_ms_by_phase": {phase: round(gap, 1) for phase, gap in gaps.items()},
        "fill_gap_ms": round(statistics.median(run["fill_gap_ms"] for run in runs), 1),
        "runs": options.runs,
        "replies": len(first_paints),
        "model": "SmolLM2-135M-Instruct.Q4_1.gguf",
        "platform": os.environ.get("QT_QPA_PLATFORM", "offscreen"),
        "machine": f"{platform.processor() or platform.machine()}, {os.cpu_count()} CPUs, load {os.getloadavg()[0]:.1f}",
    }
    result |= large()
    for key, value in result.items():
        print(f"{key:22} {value}")
    if options.json:
        print(json.dumps(result))
    return 0


def large() -> dict[str, Any]:
    """Measure the transcript when there is much of it; see `window_large.py`."""
    script = Path(__file__).with_name("window_large.py")
    environment = {"QT_QPA_PLATFORM": "offscreen", **os.environ}
    command = [sys.executable, str(script)]
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    measured = json.loads(done.stdout.splitlines()[-1])
    return {**measured, "open_large_s": round(measured["open_large_s"], 3)}


def one_run(models: Path) -> dict[str, Any]:
    """Measure in a fresh process and profile."""
    from inglenook.engine.model_library import ModelLibrary

    with tempfile.TemporaryDirectory(prefix="inglenook-window-") as folder:
        data = Path(folder, "data", "inglenook")
        data.mkdir(parents=True)
        library = ModelLibrary(data / "models")
        library.add(models / "SmolLM2-135M-Instruct.Q4_1.gguf", name="smollm2-135m")
        library.add(models / "all-MiniLM-L6-v2", name="minilm-l6")
        places = {
            f"XDG_{kind}_HOME": str(Path(folder, kind.lower()))
            for kind in ("DATA", "CONFIG", "STATE", "CACHE")
        }
        environment = {"QT_QPA_PLATFORM": "offscreen", **os.environ, **places}
        environment["INGLENOOK_BENCH_START_NS"] = str(time.monotonic_ns())
        command = [sys.executable, str(Path(__file__).resolve()), "--child", folder]
        done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=False)
        if done.returncode or not done.stdout:
            raise SystemExit("the run failed; what it said stands above")
        return json.loads(done.stdout.splitlines()[-1])


def measure(folder: Path) -> int:
    """The child: open the window, use it, print what was measured."""
    started_ns = int(os.environ["INGLENOOK_BENCH_START_NS"])
    from inglenook.app.window import window_start

    class Session(window_start._Session):
        """Goes through the phases once the window has been painted and filled."""

        def _prepare(self) -> None:
            if self._import is None:
                self._run = Run(self._window, (time.monotonic_ns() - started_ns) / 1e9, folder)
            super()._prepare()

        def _fill(self) -> None:
            super()._fill()
            assert self._application is not None
            self._run.join(self._application)

    window_start._Session = Session  # type: ignore[misc]
    return window_start.run_window()


class Run:
    """One run's phases, each begun by the end of the one before; "fill" begins with the end of the first paint."""

    def __init__(self, window: Any, painted_s: float, folder: Path) -> None:
        from PySide6.QtCore import Qt, QTimer

        self._window, self._folder = window, folder
        self._app: Any = None
        self._result: dict[str, Any] = {"start_to_window_s": painted_s, "first_paint_ms": []}
        self._gaps: dict[str, list[float]] = {phase: [] for phase in ("fill", *PHASES)}
        self._phase = "fill"
        self._last_s = self._started_s = time.perf_counter()
        self._made_s = 0.0
        self._replies_left = REPLIES
        self._timer = QTimer(window, interval=TICK_MS)
        self._timer.setTimerType(Qt.TimerType.PreciseTimer)
        self._timer.timeout.connect(self._tick)
        self._timer.start()
        self._watch = _paint_watch(window, self._painted)
        QTimer.singleShot(600_000, window, lambda: sys.exit("the run took more than ten minutes"))

    def join(self, application: Any) -> None:
        """Take what is behind the window; the first model is being loaded from now on."""
        self._app = application
        application.settings.set("chat.max_tokens", 48)
        application.settings.set("chat.temperature", 0.0)
        self._stamp_first_tokens()
        application.bridge.model_state_changed.connect(self._take_model)
        application.answering.reply_ended.connect(self._take_end)
        application.indexing.embedding_changed.connect(self._take_embedding)

    def _stamp_first_tokens(self) -> None:
        """Take the engine's stamp of a reply's first token, on the thread that reads it."""
        from inglenook.engine.request import TokenText

        client = self._app.bridge._client
        submit = client.submit

        def stamped(request: Any, on_event: Callable[[Any], None]) -> Any:
            self._made_s = 0.0

            def take(event: Any) -> None:
                if isinstance(event, TokenText) and event.text and not self._made_s:
                    self._made_s = event.made_s
                on_event(event)

            return submit(request, take)

        client.submit = stamped

    def _tick(self) -> None:
        now_s = time.perf_counter()
        self._gaps[self._phase].append(1000 * (now_s - self._last_s))
        self._last_s = now_s

    def _begin(self, phase: str) -> None:
        print(f"{phase} begins after {time.perf_counter() - self._started_s:.1f} s", file=sys.stderr)
        self._phase = phase

    def _take_model(self, state: Any) -> None:
        if state.slot == "chat" and state.phase == "loading" and self._phase == "fill":
            self._begin("load")
        elif state.slot == "chat" and state.phase == "ready" and self._phase == "load":
            self._ask()

    def _ask(self) -> None:
        self._begin("prefill")
        self._watch.is_armed = True
        text = LONG_PROMPT if self._replies_left == REPLIES else "Say something about lighthouses."
        self._window.actions_by_name["new_chat"].trigger()
        self._window.chat.composer.set_text(text)
        self._window.chat.composer.send_button.click()

    def _painted(self) -> None:
        if self._made_s and self._phase == "prefill":
            self._watch.is_armed = False
            self._result["first_paint_ms"].append(1000 * (time.monotonic() - self._made_s))
            self._begin("stream")

    def _take_end(self, answer: Any) -> None:
        if answer.reply.status != "complete":
            sys.exit(f"a reply failed: {answer.reply.error}")
        self._replies_left -= 1
        if self._replies_left:
            self._ask()
            return
        self._begin("embed")
        path = self._folder / "log.txt"
        lines = (
            f"On day {day} the keeper saw {day % 7} ships and wrote about the weather." for day in range(3000)
        )
        path.write_text("\n".join(lines), encoding="utf-8")
        self._window.files_dropped.emit([path])

    def _take_embedding(self, done: int, total: int) -> None:
        if self._phase == "embed" and total and (done == total or done >= 96):
            self._timer.stop()
            self._result["fill_gap_ms"] = max(self._gaps["fill"], default=0.0)
            self._result["gap_p99_ms"] = {phase: percentile(self._gaps[phase], 99) for phase in PHASES}
            self._window.close()
            print(json.dumps(self._result), flush=True)


def _paint_watch(window: Any, painted: Callable[[], None]) -> Any:
    """Watch for the end of a paint of a reply that has text, while armed."""
    from PySide6.QtCore import QEvent, QObject, QTimer
    from PySide6.QtWidgets import QApplication

    from inglenook.app.text.text_browser import SafeTextBrowser

    class Watch(QObject):
        is_armed = False

        def eventFilter(self, watched: QObject, event: QEvent) -> bool:  # noqa: N802
            if self.is_armed and event.type() == QEvent.Type.Paint:
                messages = window.chat.model.messages
                browser = watched.parent()
                if (
                    isinstance(browser, SafeTextBrowser)
                    and messages
                    and messages[-1].role == "assistant"
                    and messages[-1].text
                ):
                    # The next turn of the loop comes when everything has been painted.
                    QTimer.singleShot(0, self, painted)
            return False

    watch = Watch(window)
    QApplication.instance().installEventFilter(watch)  # type: ignore[union-attr]
    return watch


def percentile(values: list[float], percent: float) -> float:
    """Return the nearest-rank percentile; NaN of nothing."""
    if not values:
        return float("nan")
    ranked = sorted(values)
    return ranked[min(len(ranked) - 1, max(0, round(percent / 100 * len(ranked)) - 1))]


if __name__ == "__main__":
    sys.exit(main())
