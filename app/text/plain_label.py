"""Labels and buttons that show what they are given, letter by letter: no rich text, no mnemonics, no hidden characters.

Titles, file names, model names and error sentences come from outside. A label whose `look` is set takes its colour and
size from `window_style`; `ElidedLabel` keeps to one line and ends it with an ellipsis.
"""

from __future__ import annotations

import html
import unicodedata
from typing import Literal

from PySide6.QtCore import QEvent, QRect, QRectF, QSize, Qt
from PySide6.QtGui import QPainter, QPaintEvent, QPalette, QResizeEvent
from PySide6.QtWidgets import QLabel, QPushButton, QSizePolicy, QStyle, QStyleOptionButton, QWidget

from inglenook.app.text.rich_text import displayable, label

Look = Literal["text", "muted", "small", "title", "heading", "strong", "error", "caution", "pill"]
_LONGEST = 2_000
_RIGHT_TO_LEFT = "\u200f"
_AT_RIGHT = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignAbsolute


class PlainLabel(QLabel):
    """A label of plain text that breaks its lines and can be selected with the mouse where that is of use."""

    _shown = ""

    def __init__(
        self,
        text: str = "",
        *,
        look: Look = "text",
        is_selectable: bool = False,
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self.setTextFormat(Qt.TextFormat.PlainText)
        self.setWordWrap(True)
        self.setProperty("look", look)
        # A height that follows the width, so that no line is cut in a layout.
        policy = QSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Minimum)
        policy.setHeightForWidth(True)
        self.setSizePolicy(policy)
        flag = Qt.TextInteractionFlag.TextSelectableByMouse
        self.setTextInteractionFlags(flag if is_selectable else Qt.TextInteractionFlag.NoTextInteraction)
        self.setText(text)

    def text(self) -> str:
        """What it was given, as far as it is shown."""
        return self._shown

    def setText(self, text: str) -> None:
        self._shown = displayable(text[:_LONGEST])
        self._turn()

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() == QEvent.Type.LayoutDirectionChange:
            self._turn()

    def _turn(self) -> None:
        """Begin at the side where one begins to read in this window; Qt would go by the text's first letter."""
        is_mirrored = self.isRightToLeft()
        mark = _RIGHT_TO_LEFT if is_mirrored and reads_from_the_right(self._shown) else ""
        super().setText(mark + self._shown)
        across = self.alignment() & Qt.AlignmentFlag.AlignHorizontal_Mask
        if across in (Qt.AlignmentFlag.AlignLeft, _AT_RIGHT):
            upright = self.alignment() & Qt.AlignmentFlag.AlignVertical_Mask
            self.setAlignment(upright | (_AT_RIGHT if is_mirrored else Qt.AlignmentFlag.AlignLeft))

    def set_look(self, look: Look) -> None:
        """Take another colour and size."""
        if self.property("look") != look:
            self.setProperty("look", look)
            self.style().unpolish(self)
            self.style().polish(self)


class ElidedLabel(QWidget):
    """One line of plain text, shortened at its end where room is lacking; the tooltip has all of it.

    Of parts that have `between` between them the last ones go first, whole.
    """

    def __init__(
        self, text: str = "", *, look: Look = "text", between: str = "", parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self._text, self._between = "", between
        self.setProperty("look", look)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setText(text)

    def text(self) -> str:
        """The whole text."""
        return self._text

    def setText(self, text: str) -> None:
        """Show another text."""
        self._text = label(text, 400)
        self.setAccessibleName(self._text)
        self.setToolTip(plain_tooltip(self._text))
        self.updateGeometry()
        self.update()

    def shown_text(self) -> str:
        """What there is room for."""
        metrics, between = self.fontMetrics(), self._between
        parts = self._text.split(between) if between else [self._text]
        while len(parts) > 1 and metrics.horizontalAdvance(between.join(parts)) > self.width():
            parts.pop()
        return metrics.elidedText(between.join(parts), Qt.TextElideMode.ElideRight, self.width())

    def sizeHint(self) -> QSize:
        metrics = self.fontMetrics()
        return QSize(metrics.horizontalAdvance(self._text) + 2, metrics.height())

    def minimumSizeHint(self) -> QSize:
        return QSize(self.fontMetrics().averageCharWidth() * 4, self.fontMetrics().height())

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() in (QEvent.Type.FontChange, QEvent.Type.StyleChange):
            self.updateGeometry()

    def paintEvent(self, event: QPaintEvent) -> None:
        with QPainter(self) as painter:
            painter.setPen(self.palette().color(QPalette.ColorRole.WindowText))
            draw_line(painter, self.rect(), self.shown_text(), self.layoutDirection())


class ElidedButton(QPushButton):
    """A button whose text is shortened to the room there is; its accessible name has all of it."""

    def __init__(self, text: str, name: str) -> None:
        super().__init__()
        self._whole = ""
        self.setObjectName(name)
        self.setAutoDefault(False)
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)
        self.set_whole_text(text)

    def set_whole_text(self, text: str) -> None:
        """Show another text."""
        self._whole = label(text)
        self.setAccessibleName(self._whole)
        self._fit()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit()

    def _fit(self) -> None:
        option = QStyleOptionButton()
        self.initStyleOption(option)
        option.text = ""
        inside = self.style().subElementRect(QStyle.SubElement.SE_PushButtonContents, option, self)
        room = inside.width() - self.iconSize().width() - self.fontMetrics().averageCharWidth()
        shown = self.fontMetrics().elidedText(self._whole, Qt.TextElideMode.ElideRight, max(40, room))
        self.setText(shown.replace("&", "&&"))


def button(text: str, name: str = "plain_button", *, tip: str = "", accessible_name: str = "") -> QPushButton:
    """Make a button of one of the kinds of `window_style`: "primary_button", "plain_button", "quiet_button"."""
    made = QPushButton(plain_button_text(text))
    made.setObjectName(name)
    made.setAutoDefault(False)
    made.setCursor(Qt.CursorShape.PointingHandCursor)
    made.setAccessibleName(accessible_name or text)
    if tip:
        made.setToolTip(plain_tooltip(tip))
    return made


def reads_from_the_right(text: str) -> bool:
    """Whether some of a text is written from right to left."""
    return any(unicodedata.bidirectional(letter) in ("R", "AL") for letter in text)


def draw_line(painter: QPainter, area: QRect | QRectF, text: str, direction: Qt.LayoutDirection) -> None:
    """Draw one line at the side of an area where a window of that direction begins to be read.

    A text that has no letter from right to left keeps its own order there, its full stop at its end.
    """
    is_mirrored = direction == Qt.LayoutDirection.RightToLeft
    is_turned = is_mirrored and reads_from_the_right(text)
    before = painter.layoutDirection()
    if is_mirrored:
        painter.setLayoutDirection(direction if is_turned else Qt.LayoutDirection.LeftToRight)
    side = _AT_RIGHT if is_mirrored else Qt.AlignmentFlag.AlignLeft
    painter.drawText(
        QRectF(area), int(side | Qt.AlignmentFlag.AlignVCenter | Qt.TextFlag.TextSingleLine), text
    )
    painter.setLayoutDirection(before)


def plain_button_text(text: str) -> str:
    """Write a text for a button, menu or tab, where "&" would mark a key."""
    return label(text).replace("&", "&&")


def plain_tooltip(text: str) -> str:
    """Write a text for a tooltip, which would guess whether it is rich text."""
    return f"<p style='white-space:pre-wrap'>{html.escape(label(text, 1_000))}</p>" if text else ""
