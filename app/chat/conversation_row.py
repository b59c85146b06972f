"""How a row of the side bar looks: the ground of every list there, a folder, and a conversation with its marks.

A conversation that is being answered has a ring that turns (or stands still where motion is not wanted), one with an
answer that was not read a dot, a pinned one a pin.
"""

from __future__ import annotations

import time

from PySide6.QtCore import QModelIndex, QObject, QPersistentModelIndex, QPointF, QRect, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QPainter, QPen, QPolygonF
from PySide6.QtWidgets import QStyle, QStyledItemDelegate, QStyleOptionViewItem, QWidget

from inglenook.app.text.plain_label import draw_line
from inglenook.app.text.rich_text import label
from inglenook.app.window.icons import icon
from inglenook.app.window.theme import Theme

Index = QModelIndex | QPersistentModelIndex
ENTRY_ROLE = int(Qt.ItemDataRole.UserRole)
_DEGREES_A_SECOND = 300
_ARC = 270
_MIDDLE = Qt.AlignmentFlag.AlignVCenter


class ConversationDelegate(QStyledItemDelegate):
    """Paints a row: the title, a mark at its end, and below the words that a search found."""

    def __init__(self, theme: Theme, parent: QObject) -> None:
        super().__init__(parent)
        self._theme = theme

    def sizeHint(self, option: QStyleOptionViewItem, index: Index) -> QSize:
        has_snippet = bool(getattr(index.data(ENTRY_ROLE), "snippet", ""))
        return QSize(self._theme.px(80), self._theme.px(50 if has_snippet else 34))

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        entry = index.data(ENTRY_ROLE)
        if entry is None:
            return
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        paint_row_ground(painter, option, self._theme)
        if hasattr(entry, "num_chats"):
            self._paint_folder(painter, option, index)
        else:
            self._paint_conversation(painter, option, index)
        painter.restore()

    def updateEditorGeometry(self, editor: QWidget, option: QStyleOptionViewItem, index: Index) -> None:
        editor.setGeometry(option.rect.adjusted(2, 1, -2, -1))

    def _paint_folder(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        theme, px, folder = self._theme, self._theme.px, index.data(ENTRY_ROLE)
        whole = option.rect
        middle = QPointF(whole.left() + px(17), whole.center().y() + 0.5)
        size = float(px(4))
        if folder.is_open:
            points = [(-size, -size / 2), (size, -size / 2), (0.0, size * 0.7)]
        else:
            side = -1 if option.direction == Qt.LayoutDirection.RightToLeft else 1
            points = [(-side * size / 2, -size), (-side * size / 2, size), (side * size * 0.7, 0.0)]
        if option.direction == Qt.LayoutDirection.RightToLeft:
            middle.setX(whole.right() - px(17))
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(QColor(theme.colours.muted))
        painter.drawPolygon(QPolygonF([middle + QPointF(x, y) for x, y in points]))
        area = _mirrored(option, whole.adjusted(px(30), 0, -px(34), 0))
        painter.setFont(theme.font(0.94, bold=True))
        painter.setPen(QColor(theme.colours.text))
        name = painter.fontMetrics().elidedText(str(index.data()), Qt.TextElideMode.ElideRight, area.width())
        draw_line(painter, area, name, option.direction)
        end = _mirrored(option, QRect(whole.right() - px(36), whole.top(), px(26), whole.height()))
        if not folder.is_open and (folder.is_busy or folder.is_unread):
            self._paint_mark(painter, QPointF(end.center()), is_busy=folder.is_busy)
            return
        painter.setFont(theme.font(0.82))
        painter.setPen(QColor(theme.colours.muted))
        painter.drawText(end, _MIDDLE | Qt.AlignmentFlag.AlignTrailing, f"{folder.num_chats:n}")

    def _paint_conversation(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        theme, px, entry = self._theme, self._theme.px, index.data(ENTRY_ROLE)
        whole = option.rect
        has_mark = entry.is_busy or entry.is_unread or entry.is_pinned
        start = px(30 if entry.folder and not entry.is_hit else 12)
        area = _mirrored(option, whole.adjusted(start, 0, -px(30 if has_mark else 12), 0))
        if entry.snippet:
            area.setHeight(px(28))
            below = whole.adjusted(px(12), px(26), -px(12), -px(4))
            painter.setFont(theme.font(0.82))
            painter.setPen(QColor(theme.colours.muted))
            words = label(entry.snippet, 200)
            words = painter.fontMetrics().elidedText(words, Qt.TextElideMode.ElideRight, below.width())
            draw_line(painter, below, words, option.direction)
        painter.setFont(theme.font(0.97, bold=entry.is_unread))
        painter.setPen(QColor(theme.colours.text))
        title = painter.fontMetrics().elidedText(str(index.data()), Qt.TextElideMode.ElideRight, area.width())
        draw_line(painter, area, title, option.direction)
        end = _mirrored(option, QRect(whole.right() - px(26), area.top(), px(18), area.height()))
        if entry.is_busy or entry.is_unread:
            self._paint_mark(painter, QPointF(end.center()), is_busy=entry.is_busy)
        elif entry.is_pinned:
            size = px(14)
            place = QRect(end.center().x() - size // 2, end.center().y() - size // 2, size, size)
            icon("pin", theme.colours.muted).paint(painter, place)

    def _paint_mark(self, painter: QPainter, centre: QPointF, *, is_busy: bool) -> None:
        """Paint a ring for what is being answered, a dot for an answer that was not read."""
        theme, colour = self._theme, QColor(self._theme.colours.accent)
        if not is_busy:
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(colour)
            painter.drawEllipse(centre, theme.px(7) / 2, theme.px(7) / 2)
            return
        radius = theme.px(11) / 2
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.setPen(QPen(colour, max(1.5, theme.px(2)), Qt.PenStyle.SolidLine, Qt.PenCapStyle.RoundCap))
        turned = time.monotonic() * _DEGREES_A_SECOND % 360 if theme.has_motion else 45
        square = QRectF(centre.x() - radius, centre.y() - radius, 2 * radius, 2 * radius)
        painter.drawArc(square, round(-turned * 16), _ARC * 16)


def _mirrored(option: QStyleOptionViewItem, area: QRect) -> QRect:
    """Return an area of a row as it lies where rows begin at the right."""
    return QStyle.visualRect(option.direction, option.rect, area)


def paint_row_ground(painter: QPainter, option: QStyleOptionViewItem, theme: Theme) -> None:
    """Paint the rounded ground of a row of the side bar: chosen, under the mouse, or ringed by the keyboard."""
    is_selected = bool(option.state & QStyle.StateFlag.State_Selected)
    is_hovered = bool(option.state & QStyle.StateFlag.State_MouseOver)
    has_focus = bool(option.state & QStyle.StateFlag.State_HasFocus)
    area = QRectF(option.rect).adjusted(1, 1, -1, -1)
    radius = theme.px(8)
    if is_selected or is_hovered:
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(QColor(theme.colours.hover))
        painter.drawRoundedRect(area, radius, radius)
    if has_focus:
        painter.setPen(QPen(QColor(theme.colours.accent), theme.focus_width))
        painter.setBrush(Qt.BrushStyle.NoBrush)
        inset = theme.focus_width / 2
        painter.drawRoundedRect(area.adjusted(inset, inset, -inset, -inset), radius, radius)
