"""One row of the transcript: a message, or one part of a long one, with its sources, its state and its buttons.

Rows are pooled: `bind` shows another message, `fit` lays it out for a width and returns the height. The row keeps
nothing of the conversation and asks for everything by signals.
"""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QRect, QRectF, Qt, QTimer, Signal
from PySide6.QtGui import QColor, QEnterEvent, QMouseEvent, QPainter, QPainterPath, QPaintEvent, QPen
from PySide6.QtWidgets import QLabel, QPushButton, QWidget

from inglenook.app.chat.message_actions import MessageActions
from inglenook.app.chat.message_list_model import Message, accessible_name
from inglenook.app.chat.selection_cover import SelectionCover
from inglenook.app.chat.source_chips import SourceChips, chip_button
from inglenook.app.chat.thought_header import ThoughtHeader, ThoughtLine
from inglenook.app.text.maths_drawings import MathsDrawings
from inglenook.app.text.rich_text import Element, label
from inglenook.app.text.sentence_marks import plain_sentence, sentence_marks
from inglenook.app.text.text_browser import SafeTextBrowser
from inglenook.app.translations.sentences import said
from inglenook.app.window.theme import COLUMN_WIDTH, Theme

_SIDE = 24
_BUBBLE_PAD_X, _BUBBLE_PAD_Y = 14, 9
_BUBBLE_SHARE = 0.82
_ACTIONS_HEIGHT = 30
_COPIED_MS = 1_500


class MessageWidget(QWidget):
    """Shows one part of one message.

    Signals carry the message's id: `action_asked(id, name)` of `message_actions.ActionName`, `code_copy_asked(id, part,
    index)`, `retry_asked(id)`, `citation_activated(id, number)`, `pressed(id)`, `thought_toggled(id)`,
    `room_changed(id)`; `link_activated(url)`.
    """

    action_asked = Signal(object, str)
    code_copy_asked = Signal(object, int, int)
    retry_asked = Signal(object)
    citation_activated = Signal(object, int)
    pressed = Signal(object)
    thought_toggled = Signal(object)
    room_changed = Signal(object)
    link_activated = Signal(str)

    def __init__(
        self, theme: Theme, parent: QWidget | None = None, maths: MathsDrawings | None = None
    ) -> None:
        super().__init__(parent)
        self._theme = theme
        self._message = Message(0, "user", "")
        self._part, self._is_first, self._is_last = 0, True, True
        self._is_current = self._is_hovered = self._is_after_thought = False
        self._bubble = QRect()
        self.browser = SafeTextBrowser(theme, self, maths)
        self.browser.link_activated.connect(self.link_activated)
        self.browser.message_copy_asked.connect(lambda: self._ask("copy"))
        self.browser.code_copy_asked.connect(self._copy_code)
        self.thought = ThoughtHeader(theme, self)
        self.thought.clicked.connect(lambda: self.thought_toggled.emit(self._message.id))
        self.chips = SourceChips(theme, self)
        self.chips.activated.connect(lambda number: self.citation_activated.emit(self._message.id, number))
        self.chips.folded.connect(lambda: self.room_changed.emit(self._message.id))
        self._status = QLabel(self)
        self._status.setObjectName("message_status")
        self._status.setTextFormat(Qt.TextFormat.PlainText)
        self._status.setWordWrap(True)
        self._status.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self._retry = chip_button(self, "plain_button", self.tr("Try again"))
        self._retry.clicked.connect(self._ask_retry)
        self.actions_bar = MessageActions(theme, self)
        self.actions_bar.asked.connect(self._ask)
        self.cover = SelectionCover(theme, self)
        self.cover.clicked.connect(
            lambda: self.action_asked.emit(
                self._message.id, "select_to" if self.cover.is_range_wanted() else "select"
            )
        )
        self._flash = QTimer(self, singleShot=True, interval=_COPIED_MS)
        self._flash.timeout.connect(self._end_flash)
        self._flashing: QPushButton | None = None

    @property
    def message_id(self) -> int | str:
        """The id of the message shown."""
        return self._message.id

    def bind(
        self,
        message: Message,
        elements: Sequence[Element],
        *,
        part: int = 0,
        num_parts: int = 1,
        previous: Element | None = None,
        thought: ThoughtLine | None = None,
        num_thought_parts: int = 0,
    ) -> None:
        """Show a part of a message, under the line that folds its `thought` if it has one; call `fit` next.

        The first `num_thought_parts` parts are the thought's.
        """
        if (message.id, part) != (self._message.id, self._part):
            self._end_flash()
            self.browser.writer.clear()
        self.chips.set_citations((*message.citations, *message.others))
        self._message, self._part = message, part
        self._is_first, self._is_last = part == 0, part == num_parts - 1
        self._is_after_thought = 0 < num_thought_parts == part
        self.browser.writer.set_quiet(part < num_thought_parts)
        self.browser.show_elements(elements, previous=None if self._is_after_thought else previous)
        self.thought.show_for(message, thought)
        self.browser.set_caret(is_shown=message.state == "streaming" and self._is_last)
        name = label(accessible_name(message, self.tr("You"), self.tr("Assistant")), 400)
        self.setAccessibleName(name)
        self.browser.setAccessibleName(name)
        self.setAccessibleDescription(self._unfound_words())
        marks = sentence_marks(self.browser.document(), message.unfound, self._theme.colours.caution)
        self.browser.setExtraSelections(marks)
        self._set_status()
        self._show_controls()

    def restyle(self) -> None:
        """Take the theme anew; call `bind` next."""
        self.browser.restyle()
        self.thought.restyle()
        self.actions_bar.restyle()
        self.chips.restyle()

    def set_current(self, *, is_current: bool) -> None:
        """Draw or remove the ring of the message that the keyboard is at."""
        if is_current != self._is_current:
            self._is_current = is_current
            self._show_controls()
            self.update()

    def set_chosen(self, is_chosen: bool | None) -> None:
        """Cover the row with a check box, or with none while messages are not chosen."""
        self.cover.setVisible(is_chosen is not None)
        self.cover.setChecked(bool(is_chosen))
        self.cover.setAccessibleName(self.accessibleName())
        self.cover.setGeometry(self.rect())
        self.cover.raise_()

    def controls(self) -> list[QWidget]:
        """Everything that Tab reaches here, in reading order."""
        buttons = [
            self.thought,
            *self.browser.copy_buttons(),
            *self.chips.controls(),
            self._retry,
            *self.actions_bar.controls(),
        ]
        return [button for button in buttons if not button.isHidden()]

    def fit(self, width: int) -> int:
        """Lay everything out for `width`; return the height needed."""
        px = self._theme.px
        # The row of buttons asks for its room.
        self.resize(width, self.height())
        left, column = self._column()
        # The buttons' row of a question above is room enough.
        y = (12 if self._message.role == "user" else 4) if self._is_first else 0
        y = px(y)
        if self._message.role == "user":
            y = self._fit_bubble(left, column, y)
        else:
            y = self.thought.fit(left, column, y) + (px(14) if self._is_after_thought else 0)
            y += self.browser_height(left, y, column)
        if self._is_last:
            y = self._fit_footer(left, column, y)
        self.resize(width, y)
        self.cover.setGeometry(self.rect())
        self.update()
        return y

    def browser_height(self, left: int, top: int, width: int) -> int:
        """Place the text and return its height."""
        height = self.browser.fit(width)
        self.browser.move(left, top)
        return height

    def paintEvent(self, event: QPaintEvent) -> None:
        with QPainter(self) as painter:
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            if self._message.role == "user":
                painter.setPen(Qt.PenStyle.NoPen)
                painter.setBrush(QColor(self._theme.colours.bubble))
                painter.drawPath(self._bubble_path())
            if self._message.state == "failed" and self._is_last:
                pad = self._theme.px(10)
                box = self._status.geometry().united(self._retry.geometry()).adjusted(-pad, -pad, pad, pad)
                painter.setPen(Qt.PenStyle.NoPen)
                painter.setBrush(QColor(self._theme.colours.error_ground))
                painter.drawRoundedRect(box, self._theme.px(9), self._theme.px(9))
            if self._is_current:
                painter.setPen(QPen(QColor(self._theme.colours.accent), 2))
                painter.setBrush(Qt.BrushStyle.NoBrush)
                around = self._bubble if self._message.role == "user" else self.browser.geometry()
                grow = 3 if self._message.role == "user" else self._theme.px(8)
                ring = around.adjusted(-grow, -grow, grow, grow)
                # A row ends where the next one begins.
                ring = ring.intersected(self.rect().adjusted(1, 1, -1, -1))
                painter.drawRoundedRect(ring, 10, 10)

    def enterEvent(self, event: QEnterEvent) -> None:
        self._is_hovered = True
        self._show_controls()
        super().enterEvent(event)

    def leaveEvent(self, event: object) -> None:
        self._is_hovered = False
        self._show_controls()

    def mousePressEvent(self, event: QMouseEvent) -> None:
        self.pressed.emit(self._message.id)
        super().mousePressEvent(event)

    @property
    def _has_chips(self) -> bool:
        return self._is_last and self._message.state != "streaming"

    def _fit_bubble(self, left: int, column: int, top: int) -> int:
        px = self._theme.px
        pad_x = px(_BUBBLE_PAD_X)
        widest = int(column * _BUBBLE_SHARE) - 2 * pad_x
        is_whole = self._is_first and self._is_last
        width = min(widest, max(px(24), self.browser.ideal_width())) if is_whole else widest
        is_mirrored = self.layoutDirection() == Qt.LayoutDirection.RightToLeft
        x = left if is_mirrored else left + column - width - 2 * pad_x
        above = px(_BUBBLE_PAD_Y) if self._is_first else 0
        below = px(_BUBBLE_PAD_Y) if self._is_last else 0
        height = self.browser_height(x + pad_x, top + above, width)
        self._bubble = QRect(x, top, width + 2 * pad_x, above + height + below)
        return self._bubble.bottom() + 1

    def _fit_footer(self, left: int, column: int, y: int) -> int:
        px = self._theme.px
        y = self.chips.fit(left, column, y)
        if self._status.text():
            y = self._fit_status(left, column, y + px(10))
        # The room is kept while the buttons are not there, so that nothing moves when they come.
        self._place_actions(y + px(4))
        return y + max(px(_ACTIONS_HEIGHT), self.actions_bar.height() + px(4)) + px(4)

    def _fit_status(self, left: int, column: int, y: int) -> int:
        px = self._theme.px
        pad = px(10) if self._message.state == "failed" else 0
        retry = self._retry.sizeHint()
        has_retry = not self._retry.isHidden()
        width = column - 2 * pad - (retry.width() + px(12) if has_retry else 0)
        height = max(self._status.heightForWidth(width), retry.height() if has_retry else 0)
        self._status.setGeometry(left + pad, y + pad, width, height)
        if has_retry:
            x = left + column - pad - retry.width()
            self._retry.setGeometry(
                x, y + pad + (height - retry.height()) // 2, retry.width(), retry.height()
            )
        return y + height + 2 * pad

    def _bubble_path(self) -> QPainterPath:
        """A rounded box, square where the message goes on in the next row."""
        radius = self._theme.px(14)
        body = QRectF(self._bubble)
        path = QPainterPath()
        path.addRoundedRect(body, radius, radius)
        path.setFillRule(Qt.FillRule.WindingFill)
        if not self._is_first:
            path.addRect(QRectF(body.left(), body.top(), body.width(), body.height() / 2))
        if not self._is_last:
            path.addRect(QRectF(body.left(), body.center().y(), body.width(), body.height() / 2))
        return path

    def _set_status(self) -> None:
        sentence = {
            "stopped": self.tr("Stopped."),
            "cut": self.tr("Cut off: it reached the longest length of a reply."),
            "repeated": self.tr("It began to repeat itself and was stopped after {0} words."),
            "interrupted": self.tr("Interrupted: the program ended before this reply did."),
            "failed": label(said(self._message.error), 1_000) or self.tr("This reply failed."),
        }.get(self._message.state, "")
        if self._message.state == "repeated":
            sentence = sentence.format(self.locale().toString(len(self._message.text.split())))
        unfound = self._message.unfound
        if unfound:
            one = self.tr("1 sentence, underlined, was not found in the documents. Check it.")
            many = self.tr("{0} sentences, underlined, were not found in the documents. Check them.")
            sentence = f"{sentence} {one if len(unfound) == 1 else many.format(len(unfound))}".strip()
        self._status.setText(sentence if self._is_last else "")
        self._status.setAccessibleDescription(self._unfound_words())
        failed = "true" if self._message.state == "failed" else "false"
        if self._status.property("failed") != failed:
            self._status.setProperty("failed", failed)
            self._status.style().unpolish(self._status)
            self._status.style().polish(self._status)

    def _unfound_words(self) -> str:
        """Name the sentences that were not found, for who cannot see the lines under them."""
        if not self._message.unfound:
            return ""
        sentences = "; ".join(plain_sentence(sentence) for sentence in self._message.unfound)
        return self.tr("Not found in the documents: {0}").format(label(sentences, 1_000))

    def _show_controls(self) -> None:
        is_done = self._is_last and self._message.state != "streaming"
        is_quiet = self._message.role == "user" and not (self._is_hovered or self._is_current)
        self.chips.set_visible(self._has_chips)
        self._status.setVisible(bool(self._status.text()))
        can_go_on = self._message.can_go_on
        self._retry.setText(self.tr("Continue") if can_go_on else self.tr("Try again"))
        has_retry = can_go_on or self._message.state in ("failed", "interrupted")
        self._retry.setVisible(self._is_last and has_retry)
        self._retry.setFont(self._theme.font(0.86))
        self.actions_bar.show_for(self._message, is_done=is_done, is_quiet=is_quiet)
        self._place_actions(self.actions_bar.y())

    def _column(self) -> tuple[int, int]:
        """Where the column begins, and how wide it is."""
        width = max(80, min(self._theme.px(COLUMN_WIDTH), self.width() - 2 * self._theme.px(_SIDE)))
        return (self.width() - width) // 2, width

    def _place_actions(self, top: int) -> None:
        """Fit the buttons' row to what is in it now, at the side where it stands."""
        (left, column), size = self._column(), self.actions_bar.sizeHint()
        # Their words, not their edges, stand in line with the text.
        inset = self._theme.px(8) + 1
        width = min(size.width(), column + 2 * inset)
        is_mirrored = self.layoutDirection() == Qt.LayoutDirection.RightToLeft
        is_at_right = is_mirrored != (self._message.role == "user")
        x = left + column - width + inset if is_at_right else left - inset
        self.actions_bar.setGeometry(x, top, width, size.height())

    def _ask_retry(self) -> None:
        if self._message.can_go_on:
            self.action_asked.emit(self._message.id, "continue")
        else:
            self.retry_asked.emit(self._message.id)

    def _ask(self, name: str) -> None:
        self.action_asked.emit(self._message.id, name)
        if name.startswith("copy"):
            self._end_flash()
            self.actions_bar.begin_flash()

    def _copy_code(self, index: int) -> None:
        self.code_copy_asked.emit(self._message.id, self._part, index)
        self._begin_flash(self.browser.copy_buttons()[index])

    def _begin_flash(self, button: QPushButton) -> None:
        self._end_flash()
        self._flashing = button
        button.setText(self.tr("Copied"))
        self._flash.start()

    def _end_flash(self) -> None:
        self.actions_bar.end_flash()
        self._flash.stop()
        if self._flashing is not None:
            self._flashing.setText(self.tr("Copy"))
            self._flashing = None
