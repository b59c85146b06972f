"""The transcript: a scroll area with a pool of rows for what is in sight, over any number of messages.

A message is one row, a long one several parts with a row each. Heights are estimated until a row has been laid out;
an anchor (a row and an offset in it) keeps the text that is being read where it is, whatever grows above or below.
Only while the reader is at the end does the view follow the end. Text that arrives is gathered and shown as often as
rendering leaves the event loop three quarters of its time. GUI thread only.
"""

from __future__ import annotations

import time
from bisect import bisect_right
from itertools import accumulate

from PySide6.QtCore import QEvent, QModelIndex, Qt, QTimer, Signal
from PySide6.QtGui import (
    QAccessible,
    QAccessibleAnnouncementEvent,
    QFocusEvent,
    QGuiApplication,
    QKeyEvent,
    QResizeEvent,
)
from PySide6.QtWidgets import QAbstractScrollArea, QFrame, QPushButton, QWidget

from inglenook.app.markdown_blocks import PART_CHARS, StreamingMarkdown
from inglenook.app.message_list_model import Message, MessageListModel
from inglenook.app.message_widget import MessageWidget
from inglenook.app.rich_text import Element
from inglenook.app.theme import COLUMN_WIDTH, Theme

# How much of a long message is cut into blocks in one turn of the event loop.
FEED_CHARS = 64_000
_KEPT_BLOCKS = 64
_SHORTEST_PAUSE_MS = 12
_END_TOLERANCE = 3
_MAX_PASSES = 6


class _Entry:
    """What the view knows of a message: its blocks if made, and how many rows it has."""

    __slots__ = ("blocks", "is_plain", "num_rows", "state")

    def __init__(self, message: Message) -> None:
        self.blocks: StreamingMarkdown | None = None
        self.is_plain = message.role == "user"
        self.num_rows = 1
        self.state = message.state

    def read(self, text: str) -> bool:
        """Cut a slice of what is new; say whether all of `text` has been read."""
        if self.blocks is None or not text.startswith(self.blocks.text):
            self.blocks = StreamingMarkdown(is_plain=self.is_plain)
        read = len(self.blocks.text)
        self.blocks.feed(text[read : read + FEED_CHARS])
        return read + FEED_CHARS >= len(text)

    def elements(self, part: int) -> list[Element]:
        return self.blocks.elements(part) if self.blocks else []


class MessageView(QAbstractScrollArea):
    """Shows a MessageListModel.

    Signals: `citation_activated(message_id, number)`, `retry_requested(message_id)`, `link_activated(url)`,
    `following_changed(bool)`. Links are never opened here.
    """

    citation_activated = Signal(object, int)
    retry_requested = Signal(object)
    link_activated = Signal(str)
    following_changed = Signal(bool)

    def __init__(self, model: MessageListModel, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._model = model
        self._theme = theme
        self._entries: list[_Entry] = []
        self._rows: list[tuple[int, int]] = []
        self._first_rows: list[int] = []
        self._heights: list[int] = []
        self._is_measured: list[bool] = []
        self._tops: list[int] = [0]
        self._bound: dict[int, MessageWidget] = {}
        self._pool: list[MessageWidget] = []
        self._recent: dict[int, None] = {}
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
        self.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAsNeeded)
        self._jump = QPushButton(self.tr("Jump to latest") + "  ↓", self)
        self._jump.setObjectName("plain_button")
        self._jump.setAccessibleName(self.tr("Jump to latest"))
        self._jump.setCursor(Qt.CursorShape.PointingHandCursor)
        self._jump.clicked.connect(self.follow_end)
        self._jump.hide()
        self._refresh_timer = QTimer(self, singleShot=True)
        self._refresh_timer.timeout.connect(self._refresh)
        self._pause_ms = 0
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
        self._scroll_to(self._first_rows[index], 0)

    def copy_message(self, message_id: int | str) -> None:
        """Put a message on the clipboard, exactly as it is stored."""
        QGuiApplication.clipboard().setText(self._model.message(message_id).text)

    def copy_last_reply(self) -> None:
        """Put the latest reply on the clipboard."""
        for message in reversed(self._model.messages):
            if message.role == "assistant":
                self.copy_message(message.id)
                return

    def visible_widgets(self) -> list[MessageWidget]:
        """The rows in use, from the top down."""
        return [self._bound[row] for row in sorted(self._bound)]

    # Following the model.

    def _reset(self) -> None:
        self._dirty.clear()
        self._recent.clear()
        self._entries = [_Entry(message) for message in self._model.messages]
        self._current = -1
        self._anchor = (0, 0)
        self._set_following(True)
        self._rebuild_rows()
        self._place()

    def _on_inserted(self, _parent: QModelIndex, first: int, last: int) -> None:
        for index in range(first, last + 1):
            message = self._model.messages[index]
            self._entries.insert(index, _Entry(message))
            if message.role == "user" and last == len(self._entries) - 1:
                self._set_following(True)
            if message.state == "streaming":
                self._announce(self.tr("The assistant is answering"))
        if last == len(self._entries) - 1:
            for index in range(first, last + 1):
                self._add_rows(index)
            self._sum_from(self._first_rows[first])
        else:
            self._rebuild_rows()
        self._place()

    def _on_removed(self, _parent: QModelIndex, first: int, last: int) -> None:
        del self._entries[first : last + 1]
        self._recent = {index: None for index in self._recent if index < first}
        self._dirty = {index for index in self._dirty if index < first}
        self._current = min(self._current, len(self._entries) - 1)
        self._rebuild_rows()
        self._place()

    def _on_changed(self, top: QModelIndex, bottom: QModelIndex) -> None:
        for index in range(top.row(), bottom.row() + 1):
            self._dirty.add(index)
            self._announce_change(index)
        if not self._refresh_timer.isActive():
            self._refresh_timer.start(self._pause_ms)

    def _refresh(self) -> None:
        """Show what has changed since the last time."""
        began = time.perf_counter()
        dirty, self._dirty = self._dirty, set()
        for index in sorted(dirty):
            self._update_entry(index)
        self._place()
        cost_ms = (time.perf_counter() - began) * 1_000
        self._pause_ms = max(_SHORTEST_PAUSE_MS, int(3 * cost_ms))
        if self._dirty:
            self._refresh_timer.start(_SHORTEST_PAUSE_MS)

    def _update_entry(self, index: int) -> None:
        entry, text = self._entries[index], self._model.messages[index].text
        if entry.blocks is None and index not in self._recent:
            # Out of sight: a guess will do.
            row = self._first_rows[index]
            self._heights[row] = self._estimate(index, 0)
            self._is_measured[row] = False
            self._sum_from(row)
            return
        first_changed = 0
        if entry.blocks is not None and text.startswith(entry.blocks.text):
            first_changed = max(0, entry.blocks.num_parts - 1)
        self._read(index)
        first = self._first_rows[index]
        for row in range(first + first_changed, first + entry.num_rows):
            self._is_measured[row] = False

    def _read(self, index: int) -> None:
        """Cut more of a message into blocks and give it the rows it needs."""
        entry = self._entries[index]
        if not entry.read(self._model.messages[index].text):
            self._dirty.add(index)
            if not self._refresh_timer.isActive():
                self._refresh_timer.start(_SHORTEST_PAUSE_MS)
        self._recent.pop(index, None)
        self._recent[index] = None
        blocks = entry.blocks
        if blocks is not None and blocks.num_parts != entry.num_rows:
            self._resize_entry(index, blocks.num_parts)

    def _resize_entry(self, index: int, num_rows: int) -> None:
        entry, first = self._entries[index], self._first_rows[index]
        end, change = first + entry.num_rows, num_rows - entry.num_rows
        entry.num_rows = num_rows
        kept = min(end, first + num_rows)
        self._rows[kept:end] = [(index, part) for part in range(kept - first, num_rows)]
        self._heights[kept:end] = [self._estimate(index, part) for part in range(kept - first, num_rows)]
        self._is_measured[kept:end] = [False] * (num_rows - (kept - first))
        # The row that was the last one loses its footer.
        self._is_measured[kept - 1] = False
        for later in range(index + 1, len(self._first_rows)):
            self._first_rows[later] += change
        bound = {}
        for row, widget in self._bound.items():
            if row < kept:
                bound[row] = widget
            elif row >= end:
                bound[row + change] = widget
            else:
                self._release(widget)
        self._bound = bound
        row, offset = self._anchor
        self._anchor = (row + change if row >= end else min(row, first + num_rows - 1), offset)
        self._sum_from(first)

    def _rebuild_rows(self) -> None:
        for widget in self._bound.values():
            self._release(widget)
        self._bound = {}
        self._rows, self._first_rows, self._heights, self._is_measured = [], [], [], []
        for index in range(len(self._entries)):
            self._add_rows(index)
        self._tops = [0]
        self._sum_from(0)

    def _add_rows(self, index: int) -> None:
        self._first_rows.append(len(self._rows))
        for part in range(self._entries[index].num_rows):
            self._rows.append((index, part))
            self._heights.append(self._estimate(index, part))
            self._is_measured.append(False)

    def _estimate(self, index: int, part: int) -> int:
        """Guess the height of a row from the length of its text."""
        px, text = self._theme.px, self._model.messages[index].text
        column = min(px(COLUMN_WIDTH), max(80, self.viewport().width() - px(48)))
        chars = len(text) if self._entries[index].num_rows == 1 else PART_CHARS
        lines = 1 + chars * px(7) // column + text.count("\n", 0, PART_CHARS)
        return px(56) + lines * px(21)

    def _sum_from(self, row: int) -> None:
        row = min(row, len(self._tops) - 1)
        self._tops[row:] = accumulate(self._heights[row:], initial=self._tops[row])

    # Placing rows.

    def _place(self) -> None:
        """Give every row in sight a widget, laid out and in its place; keep the anchor where it is."""
        if self._is_placing:
            return
        self._is_placing = True
        try:
            width, height = self.viewport().width(), self.viewport().height()
            if width != self._width:
                self._width = width
                self._is_measured = [False] * len(self._rows)
            first, last, top = 0, -1, 0
            for _ in range(_MAX_PASSES):
                top = self._wanted_top()
                margin = height // 2
                first = max(0, bisect_right(self._tops, top - margin) - 1)
                last = min(len(self._rows) - 1, bisect_right(self._tops, top + height + margin) - 1)
                if not self._measure(first, last):
                    break
            self._arrange(first, last, top)
        finally:
            self._is_placing = False

    def _wanted_top(self) -> int:
        highest = max(0, self._tops[-1] - self.viewport().height())
        if self._is_following or not self._rows:
            return highest
        row, offset = self._anchor
        return min(highest, max(0, self._tops[min(row, len(self._rows) - 1)] + offset))

    def _measure(self, first: int, last: int) -> bool:
        """Bind and lay out the rows that need it; say whether a height or the rows changed."""
        lowest_changed = None
        row = first
        while row <= min(last, len(self._rows) - 1):
            if row not in self._bound or not self._is_measured[row]:
                num_rows = len(self._rows)
                height = self._bind(row).fit(self._width)
                self._is_measured[row] = True
                if height != self._heights[row] or num_rows != len(self._rows):
                    self._heights[row] = height
                    lowest_changed = row if lowest_changed is None else lowest_changed
            row += 1
        if lowest_changed is None:
            return False
        self._sum_from(lowest_changed)
        return True

    def _bind(self, row: int) -> MessageWidget:
        index, part = self._rows[row]
        entry = self._entries[index]
        if entry.blocks is None:
            self._read(index)
        self._recent.pop(index, None)
        self._recent[index] = None
        widget = self._bound.get(row)
        if widget is None:
            widget = self._bound[row] = self._pool.pop() if self._pool else self._new_widget()
        before = entry.elements(part - 1) if part else []
        widget.bind(
            self._model.messages[index],
            entry.elements(part),
            part=part,
            num_parts=entry.num_rows,
            previous=before[-1] if before else None,
        )
        widget.set_current(is_current=index == self._current and self.hasFocus())
        return widget

    def _arrange(self, first: int, last: int, top: int) -> None:
        changed = False
        for row in [row for row in self._bound if not first <= row <= last]:
            self._release(self._bound.pop(row))
            changed = True
        for row in range(first, last + 1):
            widget = self._bound[row]
            widget.move(0, self._tops[row] - top)
            if widget.isHidden():
                widget.show()
                changed = True
        highest = max(0, self._tops[-1] - self.viewport().height())
        bar = self.verticalScrollBar()
        bar.setRange(0, highest)
        bar.setPageStep(max(1, self.viewport().height()))
        bar.setSingleStep(self._theme.px(36))
        bar.setValue(top)
        if not self._is_following:
            self._set_anchor(top)
        if changed:
            self._chain_tabs()
        self._forget_blocks()
        self._place_jump(is_shown=highest - top > self._theme.px(24))

    def _set_anchor(self, top: int) -> None:
        """Hold on to the first row in sight that has been laid out."""
        first = max(0, bisect_right(self._tops, top) - 1)
        last = bisect_right(self._tops, top + self.viewport().height())
        rows = range(min(first, len(self._rows) - 1), min(last, len(self._rows)))
        row = next((row for row in rows if self._is_measured[row]), first)
        self._anchor = (row, top - self._tops[min(row, len(self._tops) - 1)])

    def _new_widget(self) -> MessageWidget:
        widget = MessageWidget(self._theme, self.viewport())
        widget.hide()
        widget.copy_asked.connect(self.copy_message)
        widget.code_copy_asked.connect(self._copy_code)
        widget.retry_asked.connect(self.retry_requested)
        widget.citation_activated.connect(self.citation_activated)
        widget.link_activated.connect(self.link_activated)
        widget.pressed.connect(lambda message_id: self._set_current(self._model.row_of(message_id)))
        return widget

    def _release(self, widget: MessageWidget) -> None:
        if widget.isAncestorOf(QGuiApplication.focusObject()):  # type: ignore[arg-type]
            self.setFocus()
        widget.hide()
        self._pool.append(widget)

    def _chain_tabs(self) -> None:
        before: QWidget = self
        for widget in self.visible_widgets():
            for control in widget.controls():
                QWidget.setTabOrder(before, control)
                before = control
        QWidget.setTabOrder(before, self._jump)

    def _forget_blocks(self) -> None:
        bound = {self._rows[row][0] for row in self._bound}
        for index in list(self._recent)[: max(0, len(self._recent) - _KEPT_BLOCKS)]:
            if index not in bound and self._entries[index].num_rows == 1:
                self._entries[index].blocks = None
                del self._recent[index]

    def _place_jump(self, *, is_shown: bool) -> None:
        size = self._jump.sizeHint()
        x = (self.viewport().width() - size.width()) // 2
        self._jump.setGeometry(
            x, self.height() - size.height() - self._theme.px(12), size.width(), size.height()
        )
        self._jump.setVisible(is_shown)
        self._jump.raise_()

    # What the reader does.

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

    def keyPressEvent(self, event: QKeyEvent) -> None:
        bar, key = self.verticalScrollBar(), event.key()
        page = int(self.viewport().height() * 0.9)
        is_copy = key == Qt.Key.Key_C and event.modifiers() == Qt.KeyboardModifier.ControlModifier
        if is_copy and 0 <= self._current < len(self._entries):
            self.copy_message(self._model.messages[self._current].id)
        elif key == Qt.Key.Key_PageUp:
            bar.setValue(bar.value() - page)
        elif key == Qt.Key.Key_PageDown:
            bar.setValue(bar.value() + page)
        elif key == Qt.Key.Key_Home:
            bar.setValue(0)
            self._set_current(0)
        elif key == Qt.Key.Key_End:
            self.follow_end()
            self._set_current(len(self._entries) - 1)
        elif key in (Qt.Key.Key_Up, Qt.Key.Key_Down):
            self._step(-1 if key == Qt.Key.Key_Up else 1)
        elif key in (Qt.Key.Key_Return, Qt.Key.Key_Enter, Qt.Key.Key_F2) and self._focus_text():
            pass
        elif key == Qt.Key.Key_Escape and not self.hasFocus():
            self.setFocus(Qt.FocusReason.ShortcutFocusReason)
        else:
            event.ignore()

    def focusInEvent(self, event: QFocusEvent) -> None:
        super().focusInEvent(event)
        if self._current < 0:
            self._current = len(self._entries) - 1
        self._show_current()

    def focusOutEvent(self, event: QFocusEvent) -> None:
        super().focusOutEvent(event)
        self._show_current()

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() == QEvent.Type.LayoutDirectionChange:
            self._restyle()

    def _step(self, direction: int) -> None:
        """Go on to the next message, or further in this one while it reaches out of sight."""
        if not self._entries:
            return
        bar, height = self.verticalScrollBar(), self.viewport().height()
        current = min(max(0, self._current), len(self._entries) - 1)
        top, bottom = self._span(current)
        is_cut = top < bar.value() if direction < 0 else bottom > bar.value() + height
        is_seen = bottom > bar.value() and top < bar.value() + height
        if is_cut and is_seen:
            bar.setValue(bar.value() + direction * self._theme.px(72))
            return
        self._set_current(min(max(0, current + direction), len(self._entries) - 1))
        top, bottom = self._span(self._current)
        if direction < 0 and top < bar.value():
            bar.setValue(max(top, bottom - height))
        elif direction > 0 and bottom > bar.value() + height:
            bar.setValue(min(top, bottom - height) if bottom - top <= height else top)

    def _span(self, index: int) -> tuple[int, int]:
        first = self._first_rows[index]
        return self._tops[first], self._tops[first + self._entries[index].num_rows]

    def _scroll_to(self, row: int, offset: int) -> None:
        self._set_following(False)
        self._anchor = (row, offset)
        self._place()

    def _set_current(self, index: int) -> None:
        self._current = index
        self._show_current()
        if 0 <= index < len(self._entries) and self.hasFocus():
            name = self._model.index(index).data(Qt.ItemDataRole.AccessibleTextRole)
            self._announce(str(name))

    def _show_current(self) -> None:
        for row, widget in self._bound.items():
            widget.set_current(is_current=self._rows[row][0] == self._current and self.hasFocus())

    def _focus_text(self) -> bool:
        for row, widget in sorted(self._bound.items()):
            if self._rows[row][0] == self._current:
                widget.browser.setFocus(Qt.FocusReason.ShortcutFocusReason)
                return True
        return False

    def _copy_code(self, message_id: int | str, part: int, index: int) -> None:
        blocks = self._entries[self._model.row_of(message_id)].blocks
        if blocks is not None:
            QGuiApplication.clipboard().setText(blocks.code_of(part, index))

    def _set_following(self, is_following: bool) -> None:
        if is_following != self._is_following:
            self._is_following = is_following
            self.following_changed.emit(is_following)

    def _restyle(self) -> None:
        for widget in [*self._bound.values(), *self._pool]:
            widget.restyle()
        self._is_measured = [False] * len(self._rows)
        self._place()
        self.viewport().update()

    def _announce_change(self, index: int) -> None:
        entry, message = self._entries[index], self._model.messages[index]
        before, entry.state = entry.state, message.state
        if before == message.state:
            return
        sentence = {
            "complete": self.tr("Answer ready"),
            "stopped": self.tr("Answer stopped"),
            "interrupted": self.tr("Answer interrupted"),
            "failed": message.error or self.tr("The answer failed"),
            "streaming": self.tr("The assistant is answering"),
        }[message.state]
        self._announce(sentence)

    def _announce(self, sentence: str) -> None:
        QAccessible.updateAccessibility(QAccessibleAnnouncementEvent(self, sentence))
