"""The few icons of the window, drawn as lines on a 20 by 20 grid in the colour that the theme gives them.

Nothing is loaded from a file. An icon is a set of strokes; `icon` draws it at any size and pixel ratio.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from PySide6.QtCore import QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QIcon, QIconEngine, QPainter, QPainterPath, QPen, QPixmap

IconName = Literal[
    "attach",
    "chip",
    "close",
    "down",
    "filter",
    "left",
    "lock",
    "more",
    "page",
    "pin",
    "plus",
    "right",
    "search",
    "send",
    "sidebar",
    "stop",
]
_GRID = 20.0


def icon(name: IconName, colour: str) -> QIcon:
    """Return an icon in a colour "#rrggbb", sharp at every size."""
    return QIcon(_Engine(_STROKES[name], QColor(colour)))


class _Engine(QIconEngine):
    def __init__(self, strokes: Callable[[QPainterPath], None], colour: QColor) -> None:
        super().__init__()
        self._strokes, self._colour = strokes, colour

    def clone(self) -> QIconEngine:
        return _Engine(self._strokes, self._colour)

    def paint(self, painter: QPainter, rect: object, mode: QIcon.Mode, state: QIcon.State) -> None:
        path = QPainterPath()
        self._strokes(path)
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        area = QRectF(rect)  # type: ignore[call-overload]  # a QRect
        side = min(area.width(), area.height())
        painter.translate(area.center() - QPointF(side / 2, side / 2))
        painter.scale(side / _GRID, side / _GRID)
        if mode == QIcon.Mode.Disabled:
            painter.setOpacity(0.4)
        pen = QPen(
            self._colour, 1.6, Qt.PenStyle.SolidLine, Qt.PenCapStyle.RoundCap, Qt.PenJoinStyle.RoundJoin
        )
        painter.strokePath(path, pen)
        painter.restore()

    def pixmap(self, size: QSize, mode: QIcon.Mode, state: QIcon.State) -> QPixmap:
        picture = QPixmap(size)
        picture.fill(Qt.GlobalColor.transparent)
        with QPainter(picture) as painter:
            self.paint(painter, picture.rect(), mode, state)
        return picture


def _lines(*lines: tuple[float, ...]) -> Callable[[QPainterPath], None]:
    """Strokes of polylines given as x, y, x, y, ..."""

    def draw(path: QPainterPath) -> None:
        for line in lines:
            path.moveTo(line[0], line[1])
            for x, y in zip(line[2::2], line[3::2], strict=True):
                path.lineTo(x, y)

    return draw


def _search(path: QPainterPath) -> None:
    path.addEllipse(QPointF(8.5, 8.5), 5.0, 5.0)
    path.moveTo(12.2, 12.2)
    path.lineTo(16.5, 16.5)


def _sidebar(path: QPainterPath) -> None:
    path.addRoundedRect(QRectF(2.5, 3.5, 15, 13), 2.5, 2.5)
    path.moveTo(8, 3.5)
    path.lineTo(8, 16.5)


def _chip(path: QPainterPath) -> None:
    path.addRoundedRect(QRectF(5, 5, 10, 10), 2, 2)
    for place in (7.5, 12.5):
        for start, end in ((2.5, 5.0), (15.0, 17.5)):
            path.moveTo(place, start)
            path.lineTo(place, end)
            path.moveTo(start, place)
            path.lineTo(end, place)


def _lock(path: QPainterPath) -> None:
    path.addRoundedRect(QRectF(4.5, 9, 11, 8), 2, 2)
    path.moveTo(7, 9)
    path.lineTo(7, 6.5)
    path.arcTo(QRectF(7, 3.5, 6, 6), 180, -180)
    path.lineTo(13, 9)


def _attach(path: QPainterPath) -> None:
    path.moveTo(13.5, 7)
    path.lineTo(7.6, 12.9)
    path.cubicTo(6.2, 14.3, 8.2, 16.3, 9.6, 14.9)
    path.lineTo(15.8, 8.7)
    path.cubicTo(18.4, 6.1, 14.6, 2.3, 12, 4.9)
    path.lineTo(5.6, 11.3)
    path.cubicTo(1.8, 15.1, 7.4, 20.7, 11.2, 16.9)
    path.lineTo(15.2, 12.9)


def _more(path: QPainterPath) -> None:
    for x in (5.0, 10.0, 15.0):
        path.addEllipse(QPointF(x, 10), 0.7, 0.7)


_STROKES: dict[IconName, Callable[[QPainterPath], None]] = {
    "attach": _attach,
    "send": _lines((10, 16, 10, 4.5), (5, 9.5, 10, 4.5, 15, 9.5)),
    # Squares in each other, so that strokes make it solid.
    "stop": _lines(
        (5.5, 5.5, 14.5, 5.5, 14.5, 14.5, 5.5, 14.5, 5.5, 5.5),
        (7, 7, 13, 7, 13, 13, 7, 13, 7, 7),
        (8.5, 8.5, 11.5, 8.5, 11.5, 11.5, 8.5, 11.5, 8.5, 8.5),
        (10, 10, 10.1, 10),
    ),
    "plus": _lines((10, 4, 10, 16), (4, 10, 16, 10)),
    "search": _search,
    "close": _lines((5, 5, 15, 15), (15, 5, 5, 15)),
    "filter": _lines((3.5, 5.5, 16.5, 5.5), (6, 10, 14, 10), (8.5, 14.5, 11.5, 14.5)),
    "left": _lines((12, 4.5, 6.5, 10, 12, 15.5)),
    "right": _lines((8, 4.5, 13.5, 10, 8, 15.5)),
    "down": _lines((4.5, 8, 10, 13.5, 15.5, 8)),
    "sidebar": _sidebar,
    "page": _lines((5, 3, 12, 3, 15.5, 6.5, 15.5, 17, 5, 17, 5, 3), (12, 3, 12, 6.5, 15.5, 6.5)),
    "pin": _lines(
        (7, 3.5, 13, 3.5), (8.5, 3.5, 8.5, 9, 5.5, 12, 14.5, 12, 11.5, 9, 11.5, 3.5), (10, 12, 10, 17)
    ),
    "chip": _chip,
    "lock": _lock,
    "more": _more,
}
