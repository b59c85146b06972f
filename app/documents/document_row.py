"""How a row of the documents looks, and how its tick is toggled by mouse or space bar. GUI thread only."""

from __future__ import annotations

from typing import Any

from PySide6.QtCore import QEvent, QObject, QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QKeyEvent, QMouseEvent, QPainter, QPen
from PySide6.QtWidgets import QStyledItemDelegate, QStyleOptionViewItem

from inglenook.app.chat.conversation_row import ENTRY_ROLE, Index, paint_row_ground
from inglenook.app.documents.document_list_model import DocumentEntry, DocumentListModel
from inglenook.app.text.plain_label import draw_line
from inglenook.app.text.rich_text import label
from inglenook.app.window.theme import Theme


class DocumentRow(QStyledItemDelegate):
    """Paints a row and toggles its tick."""

    def __init__(self, theme: Theme, parent: QObject) -> None:
        super().__init__(parent)
        self._theme = theme

    def sizeHint(self, option: QStyleOptionViewItem, index: Index) -> QSize:
        return QSize(self._theme.px(80), self._theme.px(48))

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        theme, px, entry = self._theme, self._theme.px, index.data(ENTRY_ROLE)
        model = index.model()
        if not isinstance(entry, DocumentEntry) or not isinstance(model, DocumentListModel):
            return
        colours = theme.colours
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        paint_row_ground(painter, option, theme)
        self._paint_tick(painter, self._tick_rect(option), is_ticked=entry.is_ticked)
        width = option.rect.width() - px(48)
        area = _mirrored(option, QRectF(px(38), px(6), width, px(19)))
        painter.setFont(theme.font(0.97))
        painter.setPen(QColor(colours.text))
        elide = Qt.TextElideMode.ElideMiddle
        name = painter.fontMetrics().elidedText(str(index.data()), elide, int(width))
        draw_line(painter, area, name, option.direction)
        area.translate(0, px(18))
        painter.setFont(theme.font(0.82))
        painter.setPen(QColor(colours.error if entry.state in ("failed", "locked") else colours.muted))
        status = painter.fontMetrics().elidedText(
            label(model.status(entry), 300), Qt.TextElideMode.ElideRight, int(area.width())
        )
        draw_line(painter, area, status, option.direction)
        if entry.is_busy and entry.total:
            bar = _mirrored(option, QRectF(px(38), option.rect.height() - px(5), width, px(2)))
            self._paint_bar(
                painter, bar, entry, is_mirrored=option.direction == Qt.LayoutDirection.RightToLeft
            )
        painter.restore()

    def editorEvent(self, event: QEvent, model: Any, option: QStyleOptionViewItem, index: Index) -> bool:
        is_toggle = False
        if isinstance(event, QMouseEvent) and event.type() == QEvent.Type.MouseButtonRelease:
            reach = self._tick_rect(option).adjusted(-8, -8, 8, 8)
            is_toggle = event.button() == Qt.MouseButton.LeftButton and reach.contains(event.position())
        elif isinstance(event, QKeyEvent) and event.type() == QEvent.Type.KeyPress:
            is_toggle = event.key() == Qt.Key.Key_Space
        if not is_toggle:
            return False
        is_ticked = index.data(Qt.ItemDataRole.CheckStateRole) == Qt.CheckState.Checked
        other = Qt.CheckState.Unchecked if is_ticked else Qt.CheckState.Checked
        return bool(model.setData(index, other, Qt.ItemDataRole.CheckStateRole))

    def _tick_rect(self, option: QStyleOptionViewItem) -> QRectF:
        size = self._theme.px(16)
        return _mirrored(option, QRectF(self._theme.px(12), (option.rect.height() - size) / 2, size, size))

    def _paint_tick(self, painter: QPainter, box: QRectF, *, is_ticked: bool) -> None:
        colours, unit = self._theme.colours, box.width() / 16
        painter.setPen(QPen(QColor(colours.accent if is_ticked else colours.muted), 1.2))
        painter.setBrush(QColor(colours.accent if is_ticked else colours.window))
        painter.drawRoundedRect(box, 4 * unit, 4 * unit)
        if is_ticked:
            painter.setPen(
                QPen(QColor(colours.on_accent), 1.8 * unit, Qt.PenStyle.SolidLine, Qt.PenCapStyle.RoundCap)
            )
            points = [(4, 8.3), (7, 11.2), (12.2, 5)]
            painter.drawPolyline([QPointF(box.left() + x * unit, box.top() + y * unit) for x, y in points])

    def _paint_bar(self, painter: QPainter, area: QRectF, entry: DocumentEntry, *, is_mirrored: bool) -> None:
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(QColor(self._theme.colours.border))
        painter.drawRoundedRect(area, 1, 1)
        painter.setBrush(QColor(self._theme.colours.accent))
        done = QRectF(area)
        done.setWidth(area.width() * min(1.0, entry.done / entry.total))
        if is_mirrored:
            done.moveRight(area.right())
        painter.drawRoundedRect(done, 1, 1)


def _mirrored(option: QStyleOptionViewItem, place: QRectF) -> QRectF:
    """Return where a place of a row lies, in whose own corner it is given; mirrored where one reads from the right."""
    row = option.rect
    is_mirrored = option.direction == Qt.LayoutDirection.RightToLeft
    left = row.width() - place.right() if is_mirrored else place.left()
    return QRectF(row.left() + left, row.top() + place.top(), place.width(), place.height())
