"""A read-only browser that shows what a DocumentWriter wrote and can reach nothing: no file, no address, no rich paste.

It paints the boxes of code and the bars of quotes under the text, keeps a copy button on each box, copies selections
as plain text with list marks and LaTeX, and leaves wheel and page keys to the view around it. A link is only reported.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from PySide6.QtCore import QMimeData, QPointF, QRectF, QSize, Qt, QUrl, Signal
from PySide6.QtGui import (
    QBrush,
    QColor,
    QContextMenuEvent,
    QFocusEvent,
    QGuiApplication,
    QImage,
    QKeyEvent,
    QPainter,
    QPaintEvent,
    QPen,
    QTextBlock,
    QTextCursor,
    QTextDocument,
    QWheelEvent,
)
from PySide6.QtWidgets import QFrame, QMenu, QPushButton, QTextBrowser, QWidget

from inglenook.app.text.document_writer import (
    CODE,
    CODE_HEADER,
    CODE_PAD,
    LANGUAGE,
    QUOTE,
    QUOTE_INDENT,
    RULE,
    SPACER,
    DocumentWriter,
)
from inglenook.app.text.maths_drawings import MathsDrawings
from inglenook.app.text.maths_object import text_with_sources
from inglenook.app.text.rich_text import Element, label
from inglenook.app.window.theme import COLUMN_WIDTH, Theme

_WIDEST = 4_000
_SCROLLING_KEYS = {
    Qt.Key.Key_PageUp,
    Qt.Key.Key_PageDown,
    Qt.Key.Key_Escape,
    Qt.Key.Key_Tab,
    Qt.Key.Key_Backtab,
}


@dataclass(frozen=True, slots=True)
class _CodeBox:
    first: QTextBlock
    last: QTextBlock
    info: str
    has_top: bool
    has_bottom: bool


class SafeTextBrowser(QTextBrowser):
    """Shows elements; grows to the height of its text.

    Signals: `link_activated(url)`, nothing is opened; `code_copy_asked(index)` of the box that begins as the
    index-th here; `message_copy_asked()` from the context menu.
    """

    link_activated = Signal(str)
    code_copy_asked = Signal(int)
    message_copy_asked = Signal()

    def __init__(
        self, theme: Theme, parent: QWidget | None = None, maths: MathsDrawings | None = None
    ) -> None:
        super().__init__(parent)
        self._theme = theme
        self._boxes: list[_CodeBox] = []
        self._buttons: list[QPushButton] = []
        self._has_quotes = self._has_caret = False
        self.writer = DocumentWriter(self.document(), theme, maths)
        self.setOpenLinks(False)
        self.setOpenExternalLinks(False)
        self.setAcceptDrops(False)
        self.viewport().setAcceptDrops(False)
        self.setAcceptRichText(False)
        self.setUndoRedoEnabled(False)
        self.setLineWrapMode(QTextBrowser.LineWrapMode.FixedPixelWidth)
        # Text is laid out as it is written; at no width at all each letter would be a line.
        self.setLineWrapColumnOrWidth(theme.px(COLUMN_WIDTH))
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setFocusPolicy(Qt.FocusPolicy.ClickFocus)
        self.setTextInteractionFlags(
            Qt.TextInteractionFlag.TextSelectableByMouse
            | Qt.TextInteractionFlag.TextSelectableByKeyboard
            | Qt.TextInteractionFlag.LinksAccessibleByMouse
        )
        self.viewport().setAutoFillBackground(False)
        self.anchorClicked.connect(lambda url: self.link_activated.emit(url.toString()))

    def show_elements(self, elements: Sequence[Element], *, previous: Element | None = None) -> None:
        """Show `elements`; `previous` is what stands just above this browser."""
        self.writer.show(elements, previous=previous)
        self._find_marks()

    def restyle(self) -> None:
        """Take the theme anew; call `show_elements` next."""
        self.writer.restyle()

    def set_caret(self, *, is_shown: bool) -> None:
        """Show or hide the mark at the end of a text that is still being written."""
        self._has_caret = is_shown
        self.viewport().update()

    def fit(self, width: int) -> int:
        """Lay the text out for a width and return its height."""
        if width != self.lineWrapColumnOrWidth():
            self.setLineWrapColumnOrWidth(width)
        height = max(1, int(self.document().size().height() + 0.99))
        if self._boxes and self._boxes[-1].has_bottom and self._boxes[-1].last == self.document().lastBlock():
            # A document does not count the margin below its last block.
            height += self._theme.px(CODE_PAD)
        self.resize(width, height)
        self._place_buttons()
        return height

    def ideal_width(self) -> int:
        """The width at which no line has to break."""
        self.setLineWrapColumnOrWidth(_WIDEST)
        return int(self.document().idealWidth() + 1.99)

    def copy_buttons(self) -> list[QPushButton]:
        """The visible buttons in reading order."""
        return self._buttons[: sum(box.has_top for box in self._boxes)]

    def selected_text(self) -> str:
        """The selection as plain text: list marks kept, table cells parted by tabs."""
        return _plain_text(self.textCursor())

    # What a text document could load, it gets empty; where it could go, it stays.

    def loadResource(self, kind: int, name: QUrl | str) -> Any:
        if kind == QTextDocument.ResourceType.ImageResource.value:
            nothing = QImage(1, 1, QImage.Format.Format_ARGB32)
            nothing.fill(0)
            return nothing
        return ""

    def doSetSource(self, name: QUrl | str, kind: QTextDocument.ResourceType | None = None) -> None:
        return

    def canInsertFromMimeData(self, source: QMimeData) -> bool:
        return False

    def insertFromMimeData(self, source: QMimeData) -> None:
        return

    def createMimeDataFromSelection(self) -> QMimeData:
        data = QMimeData()
        data.setText(self.selected_text())
        return data

    def wheelEvent(self, event: QWheelEvent) -> None:
        event.ignore()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        is_control = bool(event.modifiers() & Qt.KeyboardModifier.ControlModifier)
        is_far = is_control and event.key() in (Qt.Key.Key_Home, Qt.Key.Key_End)
        is_empty_copy = is_control and event.key() == Qt.Key.Key_C and not self.textCursor().hasSelection()
        if event.key() in _SCROLLING_KEYS or is_far or is_empty_copy:
            event.ignore()
        else:
            super().keyPressEvent(event)

    def focusOutEvent(self, event: QFocusEvent) -> None:
        super().focusOutEvent(event)
        # One selection in sight; a menu is no reason to lose it.
        if event.reason() not in (Qt.FocusReason.PopupFocusReason, Qt.FocusReason.ActiveWindowFocusReason):
            cursor = self.textCursor()
            cursor.clearSelection()
            self.setTextCursor(cursor)

    def contextMenuEvent(self, event: QContextMenuEvent) -> None:
        menu = self.context_menu(event.pos())
        menu.exec(event.globalPos())
        menu.deleteLater()

    def context_menu(self, position: Any) -> QMenu:
        """The menu at a place in the text."""
        menu = QMenu(self)
        copy = menu.addAction(self.tr("Copy"), self.copy)
        copy.setEnabled(self.textCursor().hasSelection())
        menu.addAction(self.tr("Copy message as Markdown"), self.message_copy_asked.emit)
        menu.addAction(self.tr("Select all"), self.selectAll)
        url = self.anchorAt(position)
        if url:
            menu.addSeparator()
            menu.addAction(self.tr("Copy link address"), lambda: QGuiApplication.clipboard().setText(url))
        return menu

    def paintEvent(self, event: QPaintEvent) -> None:
        if self._boxes or self._has_quotes:
            with QPainter(self.viewport()) as painter:
                painter.setRenderHint(QPainter.RenderHint.Antialiasing)
                self._paint_boxes(painter, event.rect())
                if self._has_quotes:
                    self._paint_bars(painter, event.rect())
        super().paintEvent(event)
        if self._has_caret:
            with QPainter(self.viewport()) as painter:
                self._paint_caret(painter)

    def _find_marks(self) -> None:
        self._boxes, self._has_quotes = [], False
        block = self.document().begin()
        first: QTextBlock | None = None
        while block.isValid():
            look = block.blockFormat()
            edge = look.property(CODE)
            if edge:
                if first is None or edge in ("first", "only"):
                    first = block
                following = block.next()
                next_edge = following.blockFormat().property(CODE) if following.isValid() else None
                if edge in ("last", "only") or next_edge not in ("middle", "last"):
                    has_top = first.blockFormat().property(CODE) in ("first", "only")
                    info = str(first.blockFormat().property(LANGUAGE) or "")
                    self._boxes.append(_CodeBox(first, block, info, has_top, edge in ("last", "only")))
                    first = None
            self._has_quotes |= bool(look.property(QUOTE)) or bool(look.property(RULE))
            block = block.next()
        self._place_buttons()

    def _box_rect(self, box: _CodeBox) -> QRectF:
        layout, px = self.document().documentLayout(), self._theme.px
        top = layout.blockBoundingRect(box.first)
        bottom = layout.blockBoundingRect(box.last)
        left = box.first.blockFormat().leftMargin() - px(CODE_PAD)
        left += box.first.blockFormat().indent() * self.document().indentWidth()
        y = top.top() - (px(CODE_HEADER) if box.has_top else 0)
        end = bottom.bottom() + (px(CODE_PAD) if box.has_bottom else 0)
        # The viewport takes its width only when it is shown.
        return QRectF(left + 0.5, y + 0.5, self.width() - left - 1, end - y - 1)

    def _paint_boxes(self, painter: QPainter, dirty: Any) -> None:
        colours, px = self._theme.colours, self._theme.px
        for box in self._boxes:
            rect = self._box_rect(box)
            if not rect.intersects(QRectF(dirty)):
                continue
            painter.save()
            painter.setClipRect(rect.adjusted(-1, -1, 1, 1))
            painter.setPen(QPen(QColor(colours.code_border), 1))
            painter.setBrush(QBrush(QColor(colours.code)))
            # An end that goes on in the next browser lies outside the clip.
            whole = rect.adjusted(0, 0 if box.has_top else -px(20), 0, 0 if box.has_bottom else px(20))
            painter.drawRoundedRect(whole, px(9), px(9))
            if box.has_top:
                painter.setPen(QColor(colours.muted))
                painter.setFont(self._theme.font(0.82))
                header = QRectF(
                    rect.left() + px(CODE_PAD), rect.top() + px(2), rect.width() / 2, px(CODE_HEADER - 4)
                )
                # Code is read from the left in every window.
                left = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignAbsolute
                painter.drawText(header, Qt.AlignmentFlag.AlignVCenter | left, box.info or self.tr("code"))
            painter.restore()

    def _paint_bars(self, painter: QPainter, dirty: Any) -> None:
        layout, px = self.document().documentLayout(), self._theme.px
        block, last_bottom, last_depth = self.document().begin(), 0.0, 0
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(QColor(self._theme.colours.border))
        while block.isValid():
            look, rect = block.blockFormat(), layout.blockBoundingRect(block)
            depth = int(look.property(QUOTE) or 0)
            if look.property(RULE):
                painter.drawRect(QRectF(0, rect.center().y(), self.viewport().width(), 1))
            for level in range(depth):
                top = last_bottom if level < last_depth else rect.top()
                x = level * px(QUOTE_INDENT)
                bar = QRectF(x, top, px(3), rect.bottom() - top)
                if bar.intersects(QRectF(dirty)):
                    painter.drawRect(bar)
            last_bottom, last_depth = rect.bottom(), depth
            block = block.next()

    def _paint_caret(self, painter: QPainter) -> None:
        end = QTextCursor(self.document())
        end.movePosition(QTextCursor.MoveOperation.End)
        place = self.cursorRect(end)
        height = min(place.height(), self._theme.px(18))
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(QColor(self._theme.colours.accent))
        x = min(place.left() + self._theme.px(3), self.viewport().width() - self._theme.px(8))
        top = place.bottom() - height + 1
        painter.drawRoundedRect(QRectF(QPointF(x, top), QSize(self._theme.px(7), height).toSizeF()), 2, 2)

    def _ask_code_copy(self, index: int, _is_checked: bool = False) -> None:
        self.code_copy_asked.emit(index)

    def _place_buttons(self) -> None:
        boxes = [box for box in self._boxes if box.has_top]
        while len(self._buttons) < len(boxes):
            button = QPushButton(self.viewport())
            button.setObjectName("quiet_button")
            button.setCursor(Qt.CursorShape.PointingHandCursor)
            button.clicked.connect(partial(self._ask_code_copy, len(self._buttons)))
            self._buttons.append(button)
        for index, button in enumerate(self._buttons):
            if index >= len(boxes):
                button.hide()
                continue
            box = boxes[index]
            button.setText(self.tr("Copy"))
            button.setFont(self._theme.font(0.82))
            button.setAccessibleName(self.tr("Copy code {0}").format(label(box.info, 40)).strip())
            rect, size = self._box_rect(box), button.sizeHint()
            top = rect.top() + (self._theme.px(CODE_HEADER) - size.height()) / 2
            button.setGeometry(
                int(rect.right() - size.width() - self._theme.px(5)), int(top), size.width(), size.height()
            )
            button.show()


def _plain_text(cursor: QTextCursor) -> str:
    start, end = cursor.selectionStart(), cursor.selectionEnd()
    document = cursor.document()
    if document is None or start == end:
        return ""
    pieces: list[str] = []
    block, last_row = document.findBlock(start), None
    while block.isValid() and block.position() < end:
        text = text_with_sources(block, start, end)
        inside = QTextCursor(block)
        table = inside.currentTable()
        row = (table.firstPosition(), table.cellAt(inside).row()) if table else None
        if not block.blockFormat().property(SPACER):
            if pieces:
                pieces.append("\t" if row is not None and row == last_row else "\n")
            if block.textList() is not None and start <= block.position():
                mark = block.textList().itemText(block)
                pieces.append(
                    "  " * (block.blockFormat().indent() - 1) + (mark if mark[:1].isdigit() else "•") + " "
                )
            pieces.append(text.replace("\u2028", "\n"))
        last_row = row
        block = block.next()
    return "".join(pieces)
