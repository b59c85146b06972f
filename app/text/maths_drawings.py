"""`MathsDrawings`: formulas as shapes to paint, drawn by a process of its own and kept for reuse.

The process is started with the first formula, asked for a few at a time, killed when one takes too long, and ended
when nothing was drawn for a while. What cannot be drawn is shown as it was typed. GUI thread only.
"""

from __future__ import annotations

import json
import re
import sys
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from PySide6.QtCore import QObject, QPointF, QProcess, QRectF, QTimer, Signal
from PySide6.QtGui import QPainterPath, QPainterPathStroker
from shiboken6 import isValid

from inglenook.app.text.maths_syntax import latex_of

COMMAND = (sys.executable, "-I", "-m", "inglenook.app.text.maths_worker")
MAX_DEPTH = 9
PATIENCE_MS = 3_000
IDLE_MS = 60_000
MAX_KEPT = 600
MAX_WAITING = 400
MAX_DEATHS = 4
_END_MS = 5_000
_FONT_SIZE = 100.0
_NUMBER = re.compile(r"[-+]?\d+(?:\.\d+)?(?:e[-+]?\d+)?")
_STEP = re.compile(r"([MLQCHVZ])([^MLQCHVZ]*)", re.IGNORECASE)
_NUM_NUMBERS = {"M": 2, "L": 2, "Q": 4, "C": 6, "H": 1, "V": 1, "Z": 0}
_NESTS = re.compile(r"\\left\b|\\right\b|\\begin\b|\\end\b|\\.|[{}]", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Drawing:
    """A formula for a font of size 1: what to fill, its width, and how far it reaches above and below the baseline."""

    path: QPainterPath
    width: float
    ascent: float
    descent: float


class MathsDrawings(QObject):
    """Draws formulas by their source, marks included.

    Signals: `drawn()` when some that were asked for are there, or are known to stay text.
    """

    drawn = Signal()

    def __init__(self, parent: QObject | None = None, *, command: Sequence[str] = COMMAND) -> None:
        super().__init__(parent)
        self._command = tuple(command)
        self._kept: OrderedDict[tuple[str, bool], Drawing | None] = OrderedDict()
        self._waiting: OrderedDict[tuple[str, bool], None] = OrderedDict()
        self._asked: tuple[str, bool] | None = None
        self._process: QProcess | None = None
        self._alive: list[QProcess] = []
        # A window may go without a word, from another page; a process that still runs must not be destroyed.
        self.destroyed.connect(partial(_end, self._alive))
        self._num_deaths = 0
        self._patience = QTimer(self, singleShot=True, interval=PATIENCE_MS)
        self._patience.timeout.connect(self._end_process)
        self._idle = QTimer(self, singleShot=True, interval=IDLE_MS)
        self._idle.timeout.connect(self._rest)
        self._telling = QTimer(self, singleShot=True, interval=15)
        self._telling.timeout.connect(self.drawn)

    def get(self, source: str, *, is_display: bool) -> Drawing | None:
        """Return a formula if it is drawn; else ask for it, unless it cannot be."""
        key = (source, is_display)
        if key in self._kept:
            self._kept.move_to_end(key)
            return self._kept[key]
        if not _is_drawable(source) or self._num_deaths >= MAX_DEATHS:
            self._keep(key, None)
            return None
        self._waiting[key] = None
        self._waiting.move_to_end(key)
        if len(self._waiting) > MAX_WAITING:
            # It is asked for again when it comes into sight.
            self._waiting.popitem(last=False)
        self._ask()
        return None

    def is_awaited(self, source: str, *, is_display: bool) -> bool:
        """Say whether a formula may still come."""
        key = (source, is_display)
        return key in self._waiting or key == self._asked

    def close(self) -> None:
        """End the process. Closing twice is fine."""
        self._waiting.clear()
        self._rest()
        _end(self._alive)

    def _ask(self) -> None:
        if self._asked is not None or not self._waiting:
            return
        process = self._process or self._start()
        # The latest first: it is what is being read.
        self._asked, _ = self._waiting.popitem(last=True)
        source, is_display = self._asked
        line = json.dumps({"id": 0, "latex": latex_of(source), "is_display": is_display})
        process.write(line.encode() + b"\n")
        self._idle.stop()
        self._patience.start()

    def _start(self) -> QProcess:
        process = self._process = QProcess(self)
        self._alive[:] = [*filter(isValid, self._alive), process]
        process.setProgram(self._command[0])
        process.setArguments(list(self._command[1:]))
        process.setStandardErrorFile(QProcess.nullDevice())
        process.readyReadStandardOutput.connect(self._read)
        process.finished.connect(self._take_end)
        process.errorOccurred.connect(self._take_error)
        process.start()
        return process

    def _read(self) -> None:
        while self._process is not None and self._process.canReadLine():
            key, self._asked = self._asked, None
            self._patience.stop()
            answer = json.loads(bytes(self._process.readLine().data()))
            if key is not None:
                self._keep(key, _drawing(answer) if "shapes" in answer else None)
                self._telling.start()
        self._ask()
        if self._asked is None:
            self._idle.start()

    def _keep(self, key: tuple[str, bool], drawing: Drawing | None) -> None:
        self._kept[key] = drawing
        while len(self._kept) > MAX_KEPT:
            self._kept.popitem(last=False)

    def _rest(self) -> None:
        process, self._process, self._asked = self._process, None, None
        self._patience.stop()
        self._idle.stop()
        if process is not None:
            process.finished.disconnect(self._take_end)
            process.errorOccurred.disconnect(self._take_error)
            process.finished.connect(process.deleteLater)
            process.kill()

    def _end_process(self) -> None:
        """Give up the formula that takes too long."""
        if self._process is not None:
            self._process.kill()

    def _take_error(self, error: QProcess.ProcessError) -> None:
        if error == QProcess.ProcessError.FailedToStart:
            self._num_deaths = MAX_DEATHS
            self._take_end()

    def _take_end(self) -> None:
        key, self._asked = self._asked, None
        process, self._process = self._process, None
        self._patience.stop()
        if process is not None:
            process.deleteLater()
        self._num_deaths += 1
        if key is not None:
            self._keep(key, None)
        if self._num_deaths >= MAX_DEATHS:
            for waiting in self._waiting:
                self._keep(waiting, None)
            self._waiting.clear()
        self._telling.start()
        self._ask()


def _end(processes: list[QProcess]) -> None:
    """Kill them and wait: at once but on an overloaded computer."""
    for process in filter(isValid, processes):
        process.kill()
        process.waitForFinished(_END_MS)


def _is_drawable(source: str) -> bool:
    """Whether a formula is nested no deeper than people write; the cost grows threefold with each level."""
    depth = 0
    for mark in _NESTS.findall(source):
        if mark in ("{", r"\left", r"\begin"):
            depth += 1
            if depth > MAX_DEPTH:
                return False
        elif mark in ("}", r"\right", r"\end"):
            depth -= 1
    return True


def _drawing(answer: Any) -> Drawing | None:
    left, top, width, height = (number / _FONT_SIZE for number in answer["box"])
    path = QPainterPath()
    path.setFillRule(path.fillRule().WindingFill)
    for kind, *values in answer["shapes"]:
        if kind == "path":
            _add_outline(path, values[0])
        elif kind == "line":
            line = QPainterPath()
            _add_outline(line, values[0])
            path.addPath(_stroked(line, values[1]))
        elif kind == "rect":
            path.addRect(QRectF(*(value / _FONT_SIZE for value in values)))
        elif kind == "frame":
            frame = QPainterPath()
            frame.addRect(QRectF(*(value / _FONT_SIZE for value in values[:4])))
            path.addPath(_stroked(frame, values[4]))
    path.translate(-left, 0)
    if width <= 0 or path.isEmpty():
        return None
    return Drawing(path, width, max(0.0, -top), max(0.0, top + height))


def _stroked(line: QPainterPath, width: float) -> QPainterPath:
    stroker = QPainterPathStroker()
    stroker.setWidth(width / _FONT_SIZE)
    return stroker.createStroke(line)


def _add_outline(path: QPainterPath, steps: str) -> None:
    """Add the steps of an SVG path with absolute coordinates, which are all that ziamath writes."""
    for step, rest in _STEP.findall(steps):
        numbers = [float(number) / _FONT_SIZE for number in _NUMBER.findall(rest)]
        size = _NUM_NUMBERS[step.upper()]
        if not size:
            path.closeSubpath()
            continue
        for start in range(0, len(numbers) - size + 1, size):
            _add_step(path, step.upper(), numbers[start : start + size])


def _add_step(path: QPainterPath, step: str, numbers: list[float]) -> None:
    points = [QPointF(x, y) for x, y in zip(numbers[::2], numbers[1::2], strict=False)]
    if step == "M":
        path.moveTo(points[0])
    elif step == "L":
        path.lineTo(points[0])
    elif step == "Q":
        path.quadTo(points[0], points[1])
    elif step == "C":
        path.cubicTo(points[0], points[1], points[2])
    elif step == "H":
        path.lineTo(numbers[0], path.currentPosition().y())
    else:
        path.lineTo(path.currentPosition().x(), numbers[0])
