"""How a row of the side bar looks: the ground of every list there, and a conversation with its dot, pin and snippet."""

from __future__ import annotations

from PySide6.QtCore import QModelIndex, QObject, QPersistentModelIndex, QRect, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QPainter
from PySide6.QtWidgets import QStyle, QStyledItemDelegate, QStyleOptionViewItem, QWidget

from inglenook.app.text.rich_text import label
from inglenook.app.window.icons import icon
from inglenook.app.window.theme import Theme

Index = QModelIndex | QPersistentModelIndex
ENTRY_ROLE = int(Qt.ItemDataRole.UserRole)


class ConversationDelegate(QStyledItemDelegate):
    """Paints a row: the title, a dot while it is answered or has news, a pin, and the words a search found."""

    def __init__(self, theme: Theme, parent: QObject) -> None:
        super().__init__(parent)
        self._theme = theme

    def sizeHint(self, option: QStyleOptionViewItem, index: Index) -> QSize:
        entry = index.data(ENTRY_ROLE)
        return QSize(self._theme.px(80), self._theme.px(50 if entry is not None and entry.snippet else 34))

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        theme, px, entry = self._theme, self._theme.px, index.data(ENTRY_ROLE)
        if entry is None:
            return
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        paint_row_ground(painter, option, theme)
        has_dot = entry.is_busy or entry.is_unread
        has_mark = has_dot or entry.is_pinned
        area = option.rect.adjusted(px(12), 0, -px(28 if has_mark else 12), 0)
        if entry.snippet:
            area.setHeight(px(28))
            below = option.rect.adjusted(px(12), px(26), -px(12), -px(4))
            painter.setFont(theme.font(0.82))
            painter.setPen(QColor(theme.colours.muted))
            words = label(entry.snippet, 200)
            words = painter.fontMetrics().elidedText(words, Qt.TextElideMode.ElideRight, below.width())
            painter.drawText(below, Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeading, words)
        is_selected = bool(option.state & QStyle.StateFlag.State_Selected)
        font = theme.font(0.97, bold=entry.is_unread)
        painter.setFont(font)
        painter.setPen(QColor(theme.colours.text if is_selected or entry.title else theme.colours.muted))
        painter.setPen(QColor(theme.colours.text))
        title = painter.fontMetrics().elidedText(str(index.data()), Qt.TextElideMode.ElideRight, area.width())
        painter.drawText(area, Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeading, title)
        if has_dot:
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(QColor(theme.colours.accent))
            size = px(7)
            centre = QRect(option.rect.right() - px(18), option.rect.center().y() - size // 2, size, size)
            painter.drawEllipse(centre)
        elif entry.is_pinned:
            size = px(14)
            place = QRect(option.rect.right() - px(22), area.center().y() - size // 2, size, size)
            icon("pin", theme.colours.muted).paint(painter, place)
        painter.restore()

    def updateEditorGeometry(self, editor: QWidget, option: QStyleOptionViewItem, index: Index) -> None:
        editor.setGeometry(option.rect.adjusted(2, 1, -2, -1))


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
        painter.setPen(QColor(theme.colours.accent))
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.drawRoundedRect(area, radius, radius)
