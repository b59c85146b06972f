"""The source viewer: the page that an answer's sentence rests on, with the passage marked.

Of a PDF it shows the page's picture, which the parser process drew; of a text, the text. It fetches nothing: it asks
for a page by signal and shows whichever of `show_picture`, `show_text` and `show_problem` answers that very page. GUI
thread only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil

from PySide6.QtCore import QPointF, QRectF, QSize, Qt, QTimer, Signal
from PySide6.QtGui import QColor, QImage, QKeyEvent, QPainter, QPaintEvent, QPen, QResizeEvent, QTextCursor
from PySide6.QtWidgets import (
    QFrame,
    QHBoxLayout,
    QPlainTextEdit,
    QScrollArea,
    QSizePolicy,
    QStackedWidget,
    QTextEdit,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from inglenook.app.text.plain_label import ElidedLabel, PlainLabel
from inglenook.app.text.rich_text import displayable, label
from inglenook.app.window.icons import IconName, icon
from inglenook.app.window.theme import Theme

_POINT_HIGHLIGHT = "#ffb700"
_TURN_DELAY_MS = 120
_QUOTE_CHARS = 280


@dataclass(frozen=True, slots=True)
class SourceView:
    """What to open: a place in a document, and the words that were quoted from it.

    `rects` are the passage's rectangles in points of its page; `num_pages` 0 is not known yet.
    """

    document_id: int
    title: str
    page_index: int
    num_pages: int = 0
    page_label: str | None = None
    quote: str = ""
    rects: tuple[tuple[float, float, float, float], ...] = ()


class SourcePanel(QWidget):
    """Shows one source at a time.

    Signals: `page_requested(page_index, pixels_per_point)` for the document of `source`; `close_requested()`.
    """

    page_requested = Signal(int, float)
    close_requested = Signal()

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._source: SourceView | None = None
        self._page_index = 0
        self._num_pages = 0
        self.setObjectName("source_panel")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self.setAccessibleName(self.tr("Source"))
        self._title = ElidedLabel(look="heading")
        self.close_button = self._button("close", self.tr("Close the source (Esc)"), self.tr("Close source"))
        self.close_button.clicked.connect(self.close_requested)
        self.page_label = PlainLabel(look="muted")
        self.page_label.setWordWrap(False)
        self.previous_button = self._button("left", self.tr("Previous page"), self.tr("Previous page"))
        self.previous_button.clicked.connect(lambda: self._turn(-1))
        self.next_button = self._button("right", self.tr("Next page"), self.tr("Next page"))
        self.next_button.clicked.connect(lambda: self._turn(1))
        self.back_button = self._button(
            "page", self.tr("Back to the passage"), self.tr("Back to the passage")
        )
        self.back_button.clicked.connect(self._back)
        self._quote = PlainLabel(look="muted", is_selectable=True)
        self._quote.setObjectName("quote")
        self.canvas = PageCanvas(theme)
        self.canvas.setAccessibleName(self.tr("Page"))
        self._scroll = QScrollArea()
        self._scroll.setObjectName("page_scroll")
        self._scroll.setFrameShape(QFrame.Shape.NoFrame)
        self._scroll.setWidgetResizable(True)
        self._scroll.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self._scroll.setAccessibleName(self.tr("Page of the source"))
        self._scroll.setWidget(self.canvas)
        self.text = QPlainTextEdit(readOnly=True)
        self.text.setFrameShape(QFrame.Shape.NoFrame)
        self.text.setAccessibleName(self.tr("Text of the source"))
        self.text.setTabChangesFocus(True)
        self.text.setTextInteractionFlags(
            Qt.TextInteractionFlag.TextSelectableByMouse | Qt.TextInteractionFlag.TextSelectableByKeyboard
        )
        self._sentence = PlainLabel(look="muted", is_selectable=True)
        self._sentence.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self._stack = QStackedWidget()
        for widget in (self._scroll, self.text, self._sentence):
            self._stack.addWidget(widget)
        self._turn_timer = QTimer(self, singleShot=True, interval=_TURN_DELAY_MS)
        self._turn_timer.timeout.connect(self._ask)
        self._header = QHBoxLayout()
        self._header.addWidget(self._title, 1)
        self._header.addWidget(self.close_button)
        self._pager = QHBoxLayout()
        self._pager.addWidget(self.page_label)
        self._pager.addStretch()
        for made in (self.back_button, self.previous_button, self.next_button):
            self._pager.addWidget(made)
        self._layout = QVBoxLayout(self)
        self._layout.addLayout(self._header)
        self._layout.addLayout(self._pager)
        self._layout.addWidget(self._quote)
        self._layout.addWidget(self._stack, 1)
        theme.changed.connect(self._restyle)
        self._restyle()

    @property
    def source(self) -> SourceView | None:
        """What is open."""
        return self._source

    @property
    def page_index(self) -> int:
        """The page that is shown or asked for, from 0."""
        return self._page_index

    @property
    def focus_target(self) -> QWidget:
        """What the keyboard goes to in this pane: the page, or what closes the pane while there is none."""
        places: dict[QWidget | None, QWidget] = {self._scroll: self._scroll, self.text: self.text}
        return places.get(self._stack.currentWidget(), self.close_button)

    def open(self, source: SourceView) -> None:
        """Show a source: its words at once, its page when it arrives."""
        self._source = source
        self._num_pages = source.num_pages
        self._title.setText(source.title)
        quote = label(source.quote, _QUOTE_CHARS)
        self._quote.setText(f"“{quote}”" if quote else "")
        self._quote.setVisible(bool(quote))
        self._go_to(source.page_index)
        self._ask()

    def clear(self) -> None:
        """Show nothing, for instance after the document was forgotten."""
        self._source = None
        self.canvas.clear()
        self.text.clear()

    def show_picture(
        self,
        page_index: int,
        picture: QImage,
        *,
        scale: float,
        page_label: str | None,
        num_pages: int,
        rects: Sequence[tuple[float, float, float, float]] = (),
    ) -> None:
        """Show a page's picture; `scale` is its pixels per point. Ignored if another page is wanted by now."""
        if self._source is None or page_index != self._page_index:
            return
        self._num_pages = num_pages
        self._show_place(page_label)
        is_passage = page_index == self._source.page_index
        marks = tuple(rects or self._source.rects) if is_passage else ()
        self.canvas.show_page(picture, scale, marks)
        self.canvas.setAccessibleDescription(
            self.tr("{0}, passage marked").format(self.page_label.text()) if marks else self.page_label.text()
        )
        self._stack.setCurrentWidget(self._scroll)
        QTimer.singleShot(0, self, self._show_passage)

    def show_text(
        self, page_index: int, text: str, *, start: int = 0, end: int = 0, place: str = "", num_pages: int = 0
    ) -> None:
        """Show a page of a text with the characters from `start` to before `end` marked; `place` says which lines."""
        if self._source is None or page_index != self._page_index:
            return
        self._num_pages = num_pages or self._num_pages
        self._show_place(None)
        if place:
            self.page_label.setText(label(place, 80))
        self.text.setPlainText(displayable(text))
        cursor = self.text.textCursor()
        cursor.setPosition(_utf16(text, start))
        cursor.setPosition(_utf16(text, end), QTextCursor.MoveMode.KeepAnchor)
        mark = QTextEdit.ExtraSelection()
        mark.cursor = cursor
        ground = QColor(_POINT_HIGHLIGHT)
        ground.setAlpha(90)
        mark.format.setBackground(ground)
        self.text.setExtraSelections([mark] if end > start else [])
        self.text.setTextCursor(QTextCursor(self.text.document().findBlock(_utf16(text, start))))
        self.text.centerCursor()
        self._stack.setCurrentWidget(self.text)

    def show_problem(self, page_index: int, sentence: str) -> None:
        """Say in place of the page why it cannot be shown; the quote stays."""
        if self._source is not None and page_index == self._page_index:
            self._sentence.setText(sentence)
            self._stack.setCurrentWidget(self._sentence)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() == Qt.Key.Key_Escape:
            self.close_requested.emit()
        elif event.key() == Qt.Key.Key_PageDown and event.modifiers() & Qt.KeyboardModifier.ControlModifier:
            self._turn(1)
        elif event.key() == Qt.Key.Key_PageUp and event.modifiers() & Qt.KeyboardModifier.ControlModifier:
            self._turn(-1)
        else:
            super().keyPressEvent(event)

    def _button(self, name: IconName, tip: str, accessible_name: str) -> QToolButton:
        made = QToolButton()
        made.setObjectName("icon_button")
        made.setProperty("icon_name", name)
        made.setToolTip(tip)
        made.setAccessibleName(accessible_name)
        made.setCursor(Qt.CursorShape.PointingHandCursor)
        return made

    def _restyle(self) -> None:
        px, colour = self._theme.px, self._theme.colours.muted
        self._layout.setContentsMargins(px(16), px(10), px(16), px(16))
        self._layout.setSpacing(px(8))
        self._quote.setContentsMargins(px(12), px(8), px(12), px(8))
        for made in (self.close_button, self.previous_button, self.next_button, self.back_button):
            made.setIcon(icon(made.property("icon_name"), colour))
            made.setIconSize(QSize(px(16), px(16)))

    def _turn(self, step: int) -> None:
        page_index = self._page_index + step
        if 0 <= page_index < self._num_pages:
            self._go_to(page_index)
            # Whoever leafs fast waits for one page, not for all between.
            self._turn_timer.start()

    def _back(self) -> None:
        if self._source is not None:
            self._go_to(self._source.page_index)
            self._ask()

    def _go_to(self, page_index: int) -> None:
        self._page_index = page_index
        source = self._source
        is_passage = source is not None and page_index == source.page_index
        self._show_place(source.page_label if source is not None and is_passage else None)
        self._quote.setVisible(is_passage and bool(self._quote.text()))

    def _ask(self) -> None:
        self._turn_timer.stop()
        width = max(200, self._scroll.viewport().width())
        # Enough pixels for a page of usual width as wide as the panel.
        scale = min(4.0, max(1.0, width * self.devicePixelRatioF() / 595))
        self._sentence.setText(self.tr("Opening the page…"))
        if self.canvas.is_empty:
            self._stack.setCurrentWidget(self._sentence)
        self.page_requested.emit(self._page_index, round(scale, 2))

    def _show_place(self, page_label: str | None) -> None:
        number, total = self._page_index + 1, self._num_pages
        if page_label is not None and page_label != str(number):
            words = self.tr("p. {0} ({1} of {2})").format(label(page_label, 16), number, total)
        elif total:
            words = self.tr("p. {0} of {1}").format(number, total)
        else:
            words = self.tr("p. {0}").format(number)
        self.page_label.setText(words)
        self.previous_button.setEnabled(self._page_index > 0)
        self.next_button.setEnabled(self._page_index + 1 < total)
        self.back_button.setVisible(self._source is not None and self._page_index != self._source.page_index)

    def _show_passage(self) -> None:
        bar = self._scroll.verticalScrollBar()
        passage = self.canvas.passage()
        if passage.isEmpty():
            bar.setValue(0)
        else:
            bar.setValue(int(passage.center().y() - self._scroll.viewport().height() / 2.5))


class PageCanvas(QWidget):
    """A page's picture at the width there is, with rectangles marked."""

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._picture = QImage()
        self._scale = 1.0
        self._rects: tuple[tuple[float, float, float, float], ...] = ()
        policy = QSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setSizePolicy(policy)

    @property
    def is_empty(self) -> bool:
        """Whether no page has been shown yet."""
        return self._picture.isNull()

    @property
    def marks(self) -> tuple[tuple[float, float, float, float], ...]:
        """The rectangles marked, in points of the page."""
        return self._rects

    def show_page(
        self, picture: QImage, scale: float, rects: tuple[tuple[float, float, float, float], ...]
    ) -> None:
        """Show a picture of `scale` pixels per point with rectangles in points."""
        self._picture, self._scale, self._rects = picture, scale, rects
        self._fit()

    def clear(self) -> None:
        """Show no page."""
        self.show_page(QImage(), 1.0, ())

    def passage(self) -> QRectF:
        """Where the marked rectangles lie in this widget; empty without any."""
        if not self._rects:
            return QRectF()
        united = QRectF()
        for rect in self._rects:
            united = united.united(self._place(rect))
        return united

    def sizeHint(self) -> QSize:
        return QSize(300, self._height())

    def resizeEvent(self, event: QResizeEvent) -> None:
        self._fit()

    def paintEvent(self, event: QPaintEvent) -> None:
        if self._picture.isNull():
            return
        with QPainter(self) as painter:
            painter.setRenderHint(QPainter.RenderHint.SmoothPixmapTransform)
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            area = QRectF(0, 0, self.width(), self._height())
            painter.fillRect(area, QColor("white"))
            painter.drawImage(area, self._picture)
            # As a marker pen does: the words stay as dark as they are.
            painter.setCompositionMode(QPainter.CompositionMode.CompositionMode_Multiply)
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(QColor("#ffe08a"))
            for rect in self._rects:
                painter.drawRoundedRect(self._place(rect).adjusted(-2, -1, 2, 1), 2, 2)
            painter.setCompositionMode(QPainter.CompositionMode.CompositionMode_SourceOver)
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.setPen(QPen(QColor(self._theme.colours.border), 1))
            painter.drawRect(area.adjusted(0.5, 0.5, -0.5, -0.5))
            passage = self.passage()
            if not passage.isEmpty():
                painter.setPen(QPen(QColor("#a4471a"), 3))
                x = max(2.0, passage.left() - 7)
                painter.drawLine(QPointF(x, passage.top()), QPointF(x, passage.bottom()))

    def _place(self, rect: tuple[float, float, float, float]) -> QRectF:
        left, top, right, bottom = rect
        factor = self._scale * self.width() / max(1, self._picture.width())
        return QRectF(left * factor, top * factor, (right - left) * factor, (bottom - top) * factor)

    def _height(self) -> int:
        if self._picture.isNull():
            return 0
        return ceil(self._picture.height() * self.width() / self._picture.width())

    def _fit(self) -> None:
        self.setFixedHeight(self._height())
        self.updateGeometry()
        self.update()


def _utf16(text: str, position: int) -> int:
    """Return where a character stands as Qt counts: in units of UTF-16."""
    return len(text[:position].encode("utf-16-le", "surrogatepass")) // 2
