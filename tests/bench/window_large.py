"""How quick the transcript is when there is much of it. Run by `window.py` in a process of its own; prints one JSON object.

`code_gap_p99_ms`: gaps of the event loop (5 ms timer) while a reply streams at 200 tokens a second into a chat of 60
turns with code. `scroll_p95_ms`: one wheel step with its repaint, over 600 steps through 2,000 messages.
`open_large_s`: until a chat of 300,000 tokens, and one message of 300,000 tokens, is painted; the worse of the two.
A token is counted as four characters. `stream_growth_bytes`: resident memory gained between the first and the last
quarter of the streaming.

With `--minutes N` it only streams, for so long, one reply of half a minute after the other, and also prints what there
is of each kind of object after the first and the last of them (`objects`).
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable
from itertools import count
from typing import Any

STREAM_S = float(os.environ.get("INGLENOOK_BENCH_STREAM_S", "20"))
TOKENS_PER_S = 200
TICK_MS = 5
CODE = "```python\ndef step(x: int) -> int:\n    # add one\n    return x + 1\n\nprint(step(41))\n```\n"
TURN = f"Some words before. {'More of them follow here. ' * 8}\n\n{CODE * 3}\n- one\n- two\n\n| a | b |\n|---|---|\n| 1 | 2 |\n"
LARGE_CHARS = 300_000 * 4
REPLY_S = 30.0


def main() -> int:
    """Measure all and print them."""
    from PySide6.QtWidgets import QApplication

    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--minutes", type=float, metavar="N", help="only stream, for so many minutes")
    minutes = parser.parse_args().minutes
    from inglenook.app.chat.chat_page import ChatPage
    from inglenook.app.window.theme import Theme
    from inglenook.app.window.window_style import window_style

    qt = QApplication([])
    theme = Theme(qt, scheme="light")
    page = ChatPage(theme)
    page.setStyleSheet(window_style(theme))
    page.resize(916, 740)
    page.show()
    turn_until(qt, lambda: page.isVisible())
    if minutes is not None:
        print(json.dumps(measure_stream(qt, page, 60 * minutes)), flush=True)
        return 0
    result = {
        **measure_stream(qt, page, STREAM_S),
        "scroll_p95_ms": measure_scroll(qt, page),
        "open_large_s": max(measure_open(qt, page, large_chat()), measure_open(qt, page, large_message())),
    }
    print(json.dumps(result), flush=True)
    return 0


def measure_stream(qt: Any, page: Any, seconds: float) -> dict[str, Any]:
    """Stream into a chat of 60 turns with code."""
    import psutil
    from PySide6.QtCore import Qt, QTimer

    from inglenook.app.chat.message_list_model import Message

    ids = count(1)
    page.model.replace(
        Message(next(ids), "user" if row % 2 == 0 else "assistant", "Show me code." if row % 2 == 0 else TURN)
        for row in range(120)
    )
    counts: list[dict[str, int]] = []

    def begin_reply() -> int:
        page.model.append(Message(next(ids), "user", "Show me code."))
        page.model.append(Message(reply := next(ids), "assistant", "", "streaming"))
        return reply

    reply = begin_reply()
    gaps: list[float] = []
    memory: list[int] = []
    last = [time.perf_counter()]
    process = psutil.Process()

    def tick() -> None:
        now = time.perf_counter()
        gaps.append(1000 * (now - last[0]))
        last[0] = now

    clock = QTimer(interval=TICK_MS)
    clock.setTimerType(Qt.TimerType.PreciseTimer)
    clock.timeout.connect(tick)
    clock.start()
    began, sent, source = time.perf_counter(), 0, (TURN * 400)
    text, reply_began = "", began
    while time.perf_counter() - began < seconds:
        passed = time.perf_counter() - reply_began
        if passed > REPLY_S:
            page.model.update(reply, state="complete")
            counts.append(objects(qt))
            reply, text, sent, reply_began = begin_reply(), "", 0, time.perf_counter()
            continue
        due = int(passed * TOKENS_PER_S) * 4
        # As the bridge does it: what has come, 30 times a second.
        if due - sent >= TOKENS_PER_S * 4 // 30:
            text += source[sent:due]
            sent = due
            page.model.update_text(reply, text)
            memory.append(process.memory_info().rss)
        qt.processEvents()
    clock.stop()
    quarter = max(1, len(memory) // 4)
    growth = max(memory[-quarter:]) - max(memory[:quarter])
    told: dict[str, Any] = {"code_gap_p99_ms": percentile(gaps, 99), "stream_growth_bytes": growth}
    if len(counts) > 1:
        told |= {
            "replies": len(counts),
            "objects": {k: [counts[0].get(k, 0), n] for k, n in counts[-1].items()},
        }
    return told


def objects(qt: Any) -> dict[str, int]:
    """Count what could gather: widgets, documents and their steps back, timers, and the commonest Python objects."""
    from PySide6.QtCore import QTimer
    from PySide6.QtGui import QTextDocument

    gc.collect()
    widgets = qt.allWidgets()
    documents = [document for widget in widgets for document in widget.findChildren(QTextDocument)]
    kinds = Counter(type(one).__name__ for one in gc.get_objects())
    return {
        "widgets": len(widgets),
        "documents": len(documents),
        "undo_steps": sum(document.availableUndoSteps() for document in documents),
        "timers": sum(len(widget.findChildren(QTimer)) for widget in widgets),
        "python": sum(kinds.values()),
        **{f"python.{name}": number for name, number in kinds.most_common(8)},
    }


def measure_scroll(qt: Any, page: Any) -> float:
    """Turn the wheel 600 times through 2,000 messages, each step with its paint."""
    from PySide6.QtCore import QPoint, QPointF, Qt
    from PySide6.QtGui import QWheelEvent

    from inglenook.app.chat.message_list_model import Message

    page.model.replace(
        Message(row + 1, "user" if row % 2 == 0 else "assistant", "Why?" if row % 2 == 0 else TURN)
        for row in range(2_000)
    )
    settle(qt)
    view, steps = page.view, []
    began_at = view.verticalScrollBar().value()
    centre = QPointF(view.viewport().rect().center())
    for _ in range(600):
        event = QWheelEvent(
            centre, view.viewport().mapToGlobal(centre), QPoint(), QPoint(0, 120),
            Qt.MouseButton.NoButton, Qt.KeyboardModifier.NoModifier, Qt.ScrollPhase.NoScrollPhase, False,
        )  # fmt: skip
        began = time.perf_counter()
        qt.sendEvent(view.viewport(), event)
        view.viewport().repaint()
        steps.append(1000 * (time.perf_counter() - began))
        qt.processEvents()
    if view.verticalScrollBar().value() >= began_at:
        sys.exit("the wheel moved nothing")
    return percentile(steps, 95)


def measure_open(qt: Any, page: Any, messages: list[Any]) -> float:
    """Show messages and wait until their end is painted."""
    page.model.replace([])
    settle(qt)
    began = time.perf_counter()
    page.model.replace(messages)
    # A long message is cut in pieces over several turns of the loop; its end is there after the last one.
    while page.view._refresh_timer.isActive():
        qt.processEvents()
    page.view.viewport().repaint()
    return time.perf_counter() - began


def large_chat() -> list[Any]:
    """A chat of 300,000 tokens."""
    from inglenook.app.chat.message_list_model import Message

    num = LARGE_CHARS // (len(TURN) + 4)
    return [
        m for i in range(num) for m in (Message(2 * i, "user", "Why?"), Message(2 * i + 1, "assistant", TURN))
    ]


def large_message() -> list[Any]:
    """One message of 300,000 tokens."""
    from inglenook.app.chat.message_list_model import Message

    return [Message(1, "user", "Why?"), Message(2, "assistant", TURN * (LARGE_CHARS // len(TURN)))]


def settle(qt: Any) -> None:
    """Let the loop run for a moment."""
    end = time.perf_counter() + 0.3
    while time.perf_counter() < end:
        qt.processEvents()


def turn_until(qt: Any, condition: Callable[[], bool]) -> None:
    """Turn the loop until something is so, ten seconds at most."""
    end = time.perf_counter() + 10
    while not condition() and time.perf_counter() < end:
        qt.processEvents()


def percentile(values: Iterable[float], percent: float) -> float:
    """Return the nearest-rank percentile, to a tenth."""
    ranked = sorted(values)
    return round(ranked[min(len(ranked) - 1, max(0, round(percent / 100 * len(ranked)) - 1))], 1)


if __name__ == "__main__":
    sys.exit(main())
