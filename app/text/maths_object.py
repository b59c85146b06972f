"""`MathsObject`: paints a formula in a line of a text document, in the colour of the text and on its baseline.

A formula stands in the document as one object character, whose format carries the source and whether it stands alone.
One that is wider than the text is made smaller.
"""

from __future__ import annotations

from PySide6.QtCore import QRect, QRectF, QSizeF, Qt
from PySide6.QtGui import (
    QFont,
    QFontMetricsF,
    QPainter,
    QPyTextObject,
    QTextBlock,
    QTextCharFormat,
    QTextDocument,
    QTextFormat,
)

from inglenook.app.text.maths_drawings import Drawing, MathsDrawings

MATHS_TYPE = QTextFormat.ObjectTypes.UserObject + 1
SOURCE = QTextFormat.Property.UserProperty + 20
IS_DISPLAY = SOURCE + 1
PIXELS = SOURCE + 2
OBJECT = "\ufffc"

# The font of formulas is smaller on the body than one without serifs.
_ENLARGED = 1.12
_SMALLEST = 0.5


class MathsObject(QPyTextObject):
    """Paints what `drawings` has; a formula gets into a document only when it is drawn."""

    def __init__(self, drawings: MathsDrawings) -> None:
        super().__init__()
        self._drawings = drawings

    def intrinsicSize(self, document: QTextDocument, position: int, look: QTextFormat) -> QSizeF:
        drawing = _drawing(self._drawings, look)
        if drawing is None:
            return QSizeF(0, 0)
        pixels = _pixels(drawing, look, document)
        descent = _descent(look)
        return QSizeF(drawing.width * pixels + 2, drawing.ascent * pixels + descent + 1)

    def drawObject(
        self,
        painter: QPainter,
        rect: QRectF | QRect,
        document: QTextDocument,
        position: int,
        look: QTextFormat,
    ) -> None:
        drawing = _drawing(self._drawings, look)
        if drawing is None:
            return
        rect = QRectF(rect)
        characters = look.toCharFormat()
        pixels = _pixels(drawing, look, document)
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        if characters.background().style() != Qt.BrushStyle.NoBrush:
            painter.fillRect(rect, characters.background())
        painter.translate(rect.left() + 1, rect.bottom() - _descent(look))
        painter.scale(pixels, pixels)
        painter.fillPath(drawing.path, characters.foreground())
        painter.restore()


def maths_format(
    look: QTextCharFormat, font: QFont, drawing: Drawing, source: str, *, is_display: bool
) -> QTextCharFormat:
    """Return the format of the object character of a formula in text that looks like `look`."""
    pixels = QFontMetricsF(font).height() * 0.8 * _ENLARGED
    made = QTextCharFormat(look)
    # An object on the baseline reaches as far below it as its font does, so it gets a font that reaches as far.
    sized = QFont(font)
    ratio = QFontMetricsF(font).descent() / max(
        1.0, font.pixelSize() if font.pixelSize() > 0 else font.pointSizeF()
    )
    wanted = max(1.0, drawing.descent * pixels / max(0.01, ratio))
    if font.pixelSize() > 0:
        sized.setPixelSize(max(1, round(wanted)))
    else:
        sized.setPointSizeF(wanted)
    made.setFont(sized)
    made.setObjectType(MATHS_TYPE)
    made.setVerticalAlignment(QTextCharFormat.VerticalAlignment.AlignBaseline)
    made.setProperty(SOURCE, source)
    made.setProperty(IS_DISPLAY, is_display)
    made.setProperty(PIXELS, pixels)
    return made


def text_with_sources(block: QTextBlock, start: int, end: int) -> str:
    """Return the text of a block between two places of the document, formulas as their sources."""
    text = block.text()[max(0, start - block.position()) : end - block.position()]
    if OBJECT not in text:
        return text
    pieces = []
    fragments = block.begin()
    while not fragments.atEnd():
        fragment = fragments.fragment()
        begin = max(0, start - fragment.position())
        piece = fragment.text()[begin : max(begin, end - fragment.position())]
        source = fragment.charFormat().property(SOURCE)
        pieces.append(piece.replace(OBJECT, str(source)) if source else piece)
        fragments += 1
    return "".join(pieces)


def _drawing(drawings: MathsDrawings, look: QTextFormat) -> Drawing | None:
    return drawings.get(str(look.property(SOURCE)), is_display=bool(look.property(IS_DISPLAY)))


def _pixels(drawing: Drawing, look: QTextFormat, document: QTextDocument) -> float:
    """The size of a formula's font: smaller where it would be wider than the text."""
    pixels, width = float(look.property(PIXELS)), document.textWidth()
    return pixels if width <= 0 else min(pixels, max(1.0, (width - 4) / drawing.width))


def _descent(look: QTextFormat) -> float:
    return float(QFontMetricsF(look.toCharFormat().font()).descent())
