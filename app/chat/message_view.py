"""The transcript: a scroll area with a pool of rows for what is in sight, over any number of messages.

A message is one row, a long one several parts with a row each. Heights are estimated until a row has been laid out;
an anchor (a row and an offset in it) keeps the text that is being read where it is, whatever grows above or below.
Only while the reader is at the end does the view follow the end. Text that arrives is gathered and shown as often as
rendering leaves the event loop three quarters of its time. GUI thread only.
"""

from __future__ import annotations

import time

from PySide6.QtCore import QEvent, QModelIndex, Qt, QTimer, Signal
from PySide6.QtGui import QGuiApplication, QResizeEvent
from PySide6.QtWidgets import QFrame, QPushButton, QWidget

from inglenook.app.chat.message_list_model import MessageListModel
from inglenook.app.chat.message_selection import MessageSelection
from inglenook.app.chat.message_widget import MessageWidget
from inglenook.app.chat.reply_announcer import ReplyAnnouncer
from inglenook.app.chat.row_pool import RowPool
from inglenook.app.chat.thought_header import ThoughtLine
from inglenook.app.chat.transcript_reader import TranscriptReader
from inglenook.app.chat.transcript_rows import TranscriptRows
from inglenook.app.chat.transcript_texts import TranscriptTexts
from inglenook.app.text.markdown_blocks import PART_CHARS
from inglenook.app.text.maths_drawings import MathsDrawings
from inglenook.app.text.reply_text import ReplyText
from inglenook.app.window.centred_column import SteadyBar
from inglenook.app.window.theme import COLUMN_WIDTH, Theme

_SHORTEST_PAUSE_MS = 12
_END_TOLERANCE = 3
_MAX_PASSES = 20


class MessageView(TranscriptReader):
    """Shows a MessageListModel.

    Signals: `citation_activated(message_id, number)`, `retry_requested(message_id)`, `link_activated(url)`,
    `following_changed(bool)`, `action_requested(message_id, name)` of `message_actions.ActionName` but the copying ones,
    which are done here. Links are never opened here.
    """

    citation_activated = Signal(object, int)
    retry_requested = Signal(object)
    link_activated = Signal(str)
    following_changed = Signal(bool)

    def __init__(
        self,
        model: MessageListModel,
        theme: Theme,
        parent: QWidget | None = None,
        maths: MathsDrawings | None = None,
    ) -> None:
        super().__init__(parent)
        self._maths = maths
        if maths is not None:
            maths.drawn.connect(self._show_drawn)
        self._model = model
        self._theme = theme
        self._blocks = TranscriptTexts()
        self._rows = TranscriptRows(self._estimate)
        self._widgets = RowPool(self._new_widget, self)
        self._dirty: set[int] = set()
        self._anchor = (0, 0)
        self._is_following = True
        self._is_placing = False
        self._current = -1
        self._width = 0
        self.setObjectName("message_view")
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setAccessibleName(self.tr("Conversation"))
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setVerticalScrollBar(SteadyBar())
        SteadyBar.balance(self, theme)
        self._jump = QPushButton(self.tr("Jump to latest") + "  ↓", self)
        self._jump.setObjectName("plain_button")
        self._jump.setAccessibleName(self.tr("Jump to latest"))
        self._jump.setCursor(Qt.CursorShape.PointingHandCursor)
        self._jump.clicked.connect(self.follow_end)
        self._jump.hide()
        self._announcer = ReplyAnnouncer(model, self)
        self.selection = MessageSelection(model, self, self._show_current)
        self._refresh_timer = QTimer(self, singleShot=True)
        self._refresh_timer.timeout.connect(self._refresh)
        self._pause_ms = 0
        self._refreshed_at = 0.0
        model.modelReset.connect(self._reset)
        model.rowsInserted.connect(self._on_inserted)
        model.rowsRemoved.connect(self._on_removed)
        model.dataChanged.connect(self._on_changed)
        theme.changed.connect(self._restyle)
        self._reset()

    @property
    def is_following(self) -> bool:
        """Whether the view stays at the end as text arrives."""
        return self._is_following

    def follow_end(self) -> None:
        """Go to the end and stay there."""
        self._set_following(True)
        self._place()

    def show_message(self, message_id: int | str) -> None:
        """Scroll so that a message begins at the top, and make it the current one."""
        index = self._model.row_of(message_id)
        self._set_current(index)
        self._scroll_to(self._rows.first(index), 0)

    def reveal(self, message_id: int | str, words: str) -> None:
        """Go to a message that holds words, and unfold its thought where they are only there."""
        message = self._model.message(message_id)
        self.show_message(message_id)
        blocks = self._blocks[self._model.row_of(message_id)]
        is_hidden = blocks is not None and blocks.has_thought and not blocks.is_unfolded
        if is_hidden and words.casefold() not in message.parted.answer.casefold():
            self._toggle_thought(message_id)

    def visible_widgets(self) -> list[MessageWidget]:
        """The rows in use, from the top down."""
        return [widget for _, widget in self._widgets]

    def _reset(self) -> None:
        self._dirty.clear()
        self._blocks.reset(len(self._model.messages))
        self._current = -1
        self._anchor = (0, 0)
        self._set_following(True)
        self._rebuild_rows()

    def _on_inserted(self, _parent: QModelIndex, first: int, last: int) -> None:
        messages = self._model.messages[first : last + 1]
        self._blocks.insert(first, len(messages))
        if last != len(self._blocks) - 1:
            self._dirty = {index + len(messages) * (index >= first) for index in self._dirty}
            self._rebuild_rows()
            return
        if any(message.role == "user" for message in messages):
            self._set_following(True)
        self._rows.extend([1] * len(messages))
        self._place()

    def _on_removed(self, _parent: QModelIndex, first: int, last: int) -> None:
        self._blocks.remove(first, last + 1)
        self._dirty = {index for index in self._dirty if index < first}
        self._current = min(self._current, len(self._blocks) - 1)
        self._rebuild_rows()

    def _on_changed(self, top: QModelIndex, bottom: QModelIndex) -> None:
        for index in range(top.row(), bottom.row() + 1):
            self._dirty.add(index)
        if not self._refresh_timer.isActive():
            # The first piece of a reply is shown at once.
            rested_ms = int((time.perf_counter() - self._refreshed_at) * 1_000)
            self._refresh_timer.start(max(0, self._pause_ms - rested_ms))

    def _refresh(self) -> None:
        """Show what has changed since the last time."""
        began = time.perf_counter()
        dirty, self._dirty = self._dirty, set()
        for index in sorted(dirty):
            self._update_entry(index)
        if self._dirty:
            # A long text is still being cut: what is in sight waits, rather than be made for each slice.
            return
        self._place()
        self._refreshed_at = time.perf_counter()
        self._pause_ms = max(_SHORTEST_PAUSE_MS, int(3_000 * (self._refreshed_at - began)))

    def _update_entry(self, index: int) -> None:
        blocks, first = self._blocks[index], self._rows.first(index)
        if blocks is None:
            # Out of sight: a guess will do, and its row takes the text when it comes into sight.
            self._rows.guess(first)
            return
        before = (blocks.num_thought_parts, blocks.num_parts, blocks.has_thought)
        self._read(index)
        after = self._blocks[index]
        is_grown = (
            after is blocks and before[0] == blocks.num_thought_parts and before[2] == blocks.has_thought
        )
        if is_grown and blocks.has_thought:
            # Its first row says how long the thought took.
            self._rows.forget(first, first + 1)
        if is_grown and blocks.is_open:
            self._rows.forget(first + max(0, blocks.num_thought_parts - 2), self._rows.end(index))
        else:
            self._rows.forget(first + (before[1] - 1 if is_grown else 0), self._rows.end(index))

    def _read(self, index: int) -> ReplyText:
        """Cut more of a message into blocks and give it the rows it needs."""
        if self._blocks.read(index, self._model.messages[index], is_followed=self._is_following):
            self._dirty.add(index)
            self._refresh_timer.start(_SHORTEST_PAUSE_MS)
        blocks = self._blocks[index]
        assert blocks is not None
        if blocks.num_parts != self._num_rows(index):
            self._resize_entry(index, blocks.num_parts)
        return blocks

    def _toggle_thought(self, message_id: int | str) -> None:
        """Fold or unfold what was thought; the line that says so stays where it is."""
        index = self._model.row_of(message_id)
        first, top = self._rows.first(index), self.verticalScrollBar().value()
        offset = top - self._rows.top(first)
        self._blocks.toggle(index, self._model.messages[index])
        blocks = self._blocks[index]
        if blocks is not None and blocks.num_parts != self._num_rows(index):
            self._resize_entry(index, blocks.num_parts)
        self._rows.forget(first, self._rows.end(index))
        self._scroll_to(first, offset)

    def _num_rows(self, index: int) -> int:
        return self._rows.end(index) - self._rows.first(index)

    def _resize_entry(self, index: int, num_rows: int) -> None:
        """Give a message another number of rows; widgets and anchor of the rows after it move along."""
        first, end = self._rows.first(index), self._rows.end(index)
        self._rows.resize(index, num_rows)
        new_end = first + num_rows
        self._widgets.shift(end, new_end)
        row, offset = self._anchor
        self._anchor = (row + new_end - end if row >= end else min(row, new_end - 1), offset)

    def _rebuild_rows(self) -> None:
        self._widgets.keep(0, -1)
        self._rows.reset(self._blocks.sizes())
        self._place()

    def _estimate(self, index: int, part: int) -> int:
        """Guess the height of a row from the length of its text."""
        px, text = self._theme.px, self._model.messages[index].text
        column = min(px(COLUMN_WIDTH), max(80, self.viewport().width() - px(48)))
        chars = PART_CHARS if part else len(text)
        lines = 1 + chars * px(7.5) // column + text.count("\n", 0, PART_CHARS)
        return px(56) + lines * px(22)

    def _place(self) -> None:
        """Give every row in sight a widget, laid out and in its place; keep the anchor where it is."""
        if self._is_placing:
            return
        self._is_placing = True
        try:
            width, height = self.viewport().width(), self.viewport().height()
            if width != self._width:
                self._width = width
                self._rows.forget()
            for _ in range(_MAX_PASSES):
                top = self._wanted_top()
                first, last = self._rows.at(top - height // 2), self._rows.at(top + height + height // 2)
                if not self._measure(first, last):
                    break
            self._arrange(max(0, first), last, top)
        finally:
            self._is_placing = False

    def _highest_top(self) -> int:
        return max(0, self._rows.height - self.viewport().height())

    def _wanted_top(self) -> int:
        if self._is_following or not len(self._rows):
            return self._highest_top()
        row, offset = self._anchor
        return min(self._highest_top(), max(0, self._rows.top(min(row, len(self._rows) - 1)) + offset))

    def _measure(self, first: int, last: int) -> bool:
        """Bind and lay out the rows that need it; say whether a height or the number of rows changed."""
        num_rows, lowest_changed = len(self._rows), -1
        for row in range(max(0, first), last + 1):
            if row in self._widgets and self._rows.is_measured(row):
                continue
            height = self._bind(row).fit(self._width)
            if self._rows.measure(row, height) and lowest_changed < 0:
                lowest_changed = row
            if len(self._rows) != num_rows:
                # What was one row by guess is several: look again which are in sight.
                break
        if lowest_changed >= 0:
            self._rows.sum_from(lowest_changed)
        return lowest_changed >= 0 or len(self._rows) != num_rows

    def _bind(self, row: int) -> MessageWidget:
        index, part = self._rows.place(row)
        blocks = self._blocks[index] or self._read(index)
        self._blocks.touch(index)
        widget = self._widgets.take(row)
        before = blocks.elements(part - 1) if part else []
        widget.bind(
            self._model.messages[index],
            blocks.elements(part),
            part=part,
            num_parts=self._num_rows(index),
            previous=before[-1] if before else None,
            thought=ThoughtLine.of(blocks) if part == 0 else None,
            num_thought_parts=blocks.num_thought_parts,
        )
        self._dress(row, widget)
        return widget

    def _arrange(self, first: int, last: int, top: int) -> None:
        self._widgets.keep(first, last)
        for row, widget in self._widgets:
            widget.move(0, self._rows.top(row) - top)
            widget.show()
        bar = self.verticalScrollBar()
        bar.setRange(0, self._highest_top())
        bar.setPageStep(max(1, self.viewport().height()))
        bar.setSingleStep(self._theme.px(36))
        bar.setValue(top)
        if not self._is_following:
            self._set_anchor(top)
        self._widgets.chain_tabs(self, self._jump)
        self._blocks.forget(self._rows.place(row)[0] for row, _ in self._widgets)
        self._place_jump(is_shown=self._highest_top() - top > self._theme.px(24))

    def _set_anchor(self, top: int) -> None:
        """Hold on to the first row in sight that has been laid out."""
        first, last = max(0, self._rows.at(top)), self._rows.at(top + self.viewport().height())
        row = next((row for row in range(first, last + 1) if self._rows.is_measured(row)), first)
        self._anchor = (row, top - (self._rows.top(row) if len(self._rows) else 0))

    def _new_widget(self) -> MessageWidget:
        widget = MessageWidget(self._theme, self.viewport(), self._maths)
        widget.hide()
        widget.action_asked.connect(self.act_on)
        widget.code_copy_asked.connect(self._copy_code)
        widget.retry_asked.connect(self.retry_requested)
        widget.room_changed.connect(self._measure_anew)
        widget.thought_toggled.connect(self._toggle_thought)
        widget.citation_activated.connect(self.citation_activated)
        widget.link_activated.connect(self.link_activated)
        widget.pressed.connect(lambda message_id: self._set_current(self._model.row_of(message_id)))
        return widget

    def _place_jump(self, *, is_shown: bool) -> None:
        size = self._jump.sizeHint()
        x = (self.viewport().width() - size.width()) // 2
        self._jump.setGeometry(
            x, self.height() - size.height() - self._theme.px(12), size.width(), size.height()
        )
        self._jump.setVisible(is_shown)
        self._jump.raise_()

    def scrollContentsBy(self, dx: int, dy: int) -> None:
        if self._is_placing:
            return
        bar = self.verticalScrollBar()
        self._set_following(bar.value() >= bar.maximum() - _END_TOLERANCE)
        self._set_anchor(bar.value())
        self._place()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._place()

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() == QEvent.Type.LayoutDirectionChange:
            self._restyle()

    def _scroll_to(self, row: int, offset: int) -> None:
        self._set_following(False)
        self._anchor = (row, offset)
        self._place()

    def _copy_code(self, message_id: int | str, part: int, index: int) -> None:
        blocks = self._blocks[self._model.row_of(message_id)]
        if blocks is not None:
            QGuiApplication.clipboard().setText(blocks.code_of(part, index))

    def _set_following(self, is_following: bool) -> None:
        if is_following != self._is_following:
            self._is_following = is_following
            self.following_changed.emit(is_following)

    def _measure_anew(self, message_id: int | str) -> None:
        index = self._model.row_of(message_id)
        self._rows.forget(self._rows.first(index), self._rows.end(index))
        self._place()

    def _show_drawn(self) -> None:
        """Put formulas that have been drawn in their places."""
        awaiting = [row for row, widget in self._widgets if widget.browser.writer.awaits_maths]
        for row in awaiting:
            self._rows.forget(row, row + 1)
        if awaiting:
            self._place()

    def _restyle(self) -> None:
        SteadyBar.balance(self, self._theme)
        self._widgets.restyle()
        self._rows.forget()
        self._place()
        self.viewport().update()
