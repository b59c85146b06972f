"""The field a question is typed into, with its buttons: attach, and send, which turns into stop.

Enter sends, Shift+Enter breaks the line; neither does anything while an input method is composing. Paste is plain
text; a very long paste is held beside the field, because laying it out would stall the window. Files that are dropped
or pasted are only reported.
"""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import QEvent, QMimeData, QSize, Qt, Signal
from PySide6.QtGui import (
    QDragEnterEvent,
    QDragLeaveEvent,
    QDropEvent,
    QFocusEvent,
    QKeyEvent,
    QTextOption,
)
from PySide6.QtWidgets import (
    QFrame,
    QHBoxLayout,
    QPlainTextEdit,
    QPushButton,
    QSizePolicy,
    QVBoxLayout,
    QWidget,
)

from inglenook.app.window.icons import icon
from inglenook.app.window.theme import COLUMN_WIDTH, READING, SIDE_MARGIN, Theme

MAX_LINES = 8
LONG_PASTE_CHARS = 20_000
LONG_LINE_CHARS = 4_000
_ENTER = (Qt.Key.Key_Return, Qt.Key.Key_Enter)
_OF_CANDIDATES = (
    *_ENTER,
    Qt.Key.Key_Escape,
    Qt.Key.Key_Tab,
    Qt.Key.Key_Backtab,
    Qt.Key.Key_Up,
    Qt.Key.Key_Down,
    Qt.Key.Key_PageUp,
    Qt.Key.Key_PageDown,
)


class Composer(QWidget):
    """What the user writes.

    Signals: `send_requested(text)`, after which the field is empty (`restore` puts a text back that could not be
    sent); `queue_requested(text)` instead while a reply is written; `stop_requested()`; `attach_requested()`;
    `files_dropped(paths)`; `picture_pasted()`, which is not taken; `recall_requested()` when Up is pressed in the empty
    field; `changed()` when what would be sent is another.
    """

    send_requested = Signal(str)
    queue_requested = Signal(str)
    stop_requested = Signal()
    attach_requested = Signal()
    files_dropped = Signal(list)
    picture_pasted = Signal()
    recall_requested = Signal()
    changed = Signal()

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._is_streaming = False
        self._reason = ""
        self._pasted: list[str] = []
        self._chips: list[QPushButton] = []
        self.setObjectName("composer")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self.setAcceptDrops(True)
        self._frame = QFrame(self)
        self._frame.setObjectName("composer_frame")
        self.edit = _Edit(self._frame)
        self.edit.setAccessibleName(self.tr("Message"))
        self.attach_button = QPushButton(self._frame)
        self.attach_button.setObjectName("attach_button")  # no least height, which would undo its size
        self.attach_button.setAccessibleName(self.tr("Attach files"))
        self.attach_button.setToolTip(self.tr("Attach files"))
        self.send_button = QPushButton(self._frame)
        self.send_button.setObjectName("send_button")
        for button in (self.attach_button, self.send_button):
            button.setAutoDefault(False)
            button.setCursor(Qt.CursorShape.PointingHandCursor)
        self._chip_line = QHBoxLayout()
        self._chip_line.addStretch()
        self._line = QHBoxLayout()
        self._line.addWidget(self.attach_button, 0, Qt.AlignmentFlag.AlignBottom)
        self._line.addWidget(self.edit, 1)
        self._line.addWidget(self.send_button, 0, Qt.AlignmentFlag.AlignBottom)
        self._column = QVBoxLayout(self._frame)
        self._column.addLayout(self._chip_line)
        self._column.addLayout(self._line)
        self._outer = QHBoxLayout(self)
        self._outer.addWidget(self._frame)
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Fixed)
        self.setFocusProxy(self.edit)
        QWidget.setTabOrder(self.edit, self.attach_button)
        QWidget.setTabOrder(self.attach_button, self.send_button)
        self.edit.textChanged.connect(self._on_text_changed)
        self.edit.document().documentLayout().documentSizeChanged.connect(self._fit)
        self.edit.enter_pressed.connect(self._send)
        self.edit.escape_pressed.connect(self._stop)
        self.edit.recall_pressed.connect(self.recall_requested)
        self.edit.files_pasted.connect(self.files_dropped)
        self.edit.picture_pasted.connect(self.picture_pasted)
        self.edit.long_text_pasted.connect(self._hold)
        self.edit.focus_changed.connect(lambda has_focus: self._mark("focused", has_focus))
        self.attach_button.clicked.connect(self.attach_requested)
        self.send_button.clicked.connect(self._on_button)
        theme.changed.connect(self._restyle)
        self._restyle()

    @property
    def is_streaming(self) -> bool:
        """Whether the button stops instead of sending."""
        return self._is_streaming

    def text(self) -> str:
        """What would be sent: the typed text and, after an empty line each, the long pastes."""
        return "\n\n".join(part for part in (self.edit.toPlainText(), *self._pasted) if part.strip())

    def set_text(self, text: str) -> None:
        """Replace what is typed and put the cursor at its end."""
        self.clear()
        self._insert(text)

    def restore(self, text: str) -> None:
        """Put back a text that could not be sent, unless something else was typed since."""
        if not self.text():
            self.set_text(text)

    def clear(self) -> None:
        """Empty the field."""
        self.edit.clear()
        self._pasted.clear()
        self._show_chips()
        self.changed.emit()

    def set_streaming(self, is_streaming: bool) -> None:
        """Make the button stop or send."""
        self._is_streaming = is_streaming
        self.set_unavailable(self._reason)

    def set_unavailable(self, reason: str) -> None:
        """Say in the empty field why nothing can be sent; "" makes it available. What is typed is kept."""
        self._reason = reason
        ready = self.tr("Ask anything, or drop a document here")
        next_ = self.tr("Write the next message; Enter lets it wait its turn")
        self.edit.setPlaceholderText(reason or (next_ if self._is_streaming else ready))
        self.edit.viewport().update()  # Qt paints only the caret's place anew
        self.edit.setReadOnly(bool(reason))
        self.attach_button.setEnabled(not reason)
        self._show_button()

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        if not self._reason and (_local_files(event.mimeData()) or event.mimeData().hasText()):
            event.acceptProposedAction()
            self._mark("dropping", True)

    def dragLeaveEvent(self, event: QDragLeaveEvent) -> None:
        self._mark("dropping", False)

    def dropEvent(self, event: QDropEvent) -> None:
        self._mark("dropping", False)
        files = _local_files(event.mimeData())
        if files:
            self.files_dropped.emit(files)
        elif not self._reason and event.mimeData().hasText():
            self._insert(event.mimeData().text())
        event.acceptProposedAction()

    def _insert(self, text: str) -> None:
        if _is_long(text):
            self._hold(text)
        else:
            self.edit.insertPlainText(text)
            self.edit.ensureCursorVisible()

    def _send(self) -> None:
        if self._reason or not self.text().strip():
            return
        text = self.text()
        self.clear()
        (self.queue_requested if self._is_streaming else self.send_requested).emit(text)

    def _stop(self) -> None:
        if self._is_streaming:
            self.stop_requested.emit()

    def _on_button(self) -> None:
        if self._is_streaming:
            self._stop()
        else:
            self._send()
            self.edit.setFocus()

    def _on_text_changed(self) -> None:
        self._show_button()
        self.changed.emit()

    def _hold(self, text: str) -> None:
        self._pasted.append(text)
        self._show_chips()
        self.changed.emit()

    def _show_chips(self) -> None:
        for chip in self._chips:
            self._chip_line.removeWidget(chip)
            chip.deleteLater()
        self._chips = []
        for number, text in enumerate(self._pasted):
            size = self.locale().toString(len(text))
            chip = QPushButton(self.tr("Pasted text, {0} characters").format(size), self._frame)
            chip.setObjectName("chip")
            chip.setIcon(icon("close", self._theme.colours.muted))
            chip.setAccessibleName(self.tr("Remove the pasted text of {0} characters").format(size))
            chip.setToolTip(self.tr("Remove"))
            chip.clicked.connect(lambda _=False, number=number: self._drop_paste(number))
            self._chip_line.insertWidget(number, chip)
            self._chips.append(chip)
        self._show_button()
        self._fit()

    def _drop_paste(self, number: int) -> None:
        del self._pasted[number]
        self._show_chips()
        self.changed.emit()
        self.edit.setFocus()

    def _show_button(self) -> None:
        colours = self._theme.colours
        words = self.tr("Stop") if self._is_streaming else self.tr("Send")
        is_enabled = self._is_streaming or (not self._reason and bool(self.text().strip()))
        colour = colours.on_accent if is_enabled else colours.muted
        self.send_button.setIcon(icon("stop" if self._is_streaming else "send", colour))
        self.send_button.setEnabled(is_enabled)
        self.send_button.setAccessibleName(words)
        self.send_button.setToolTip(words)

    def _mark(self, name: str, value: bool) -> None:
        """Set a property that the style sheet looks at."""
        self._frame.setProperty(name, "true" if value else "false")
        self._frame.style().unpolish(self._frame)
        self._frame.style().polish(self._frame)

    def _restyle(self) -> None:
        px = self._theme.px
        self._outer.setContentsMargins(px(SIDE_MARGIN), px(8), px(SIDE_MARGIN), px(10))
        self._frame.setMaximumWidth(px(COLUMN_WIDTH))
        self._column.setContentsMargins(px(8), px(8), px(8), px(8))
        self._column.setSpacing(0)
        self._line.setSpacing(px(4))
        self._chip_line.setSpacing(px(6))
        for button in (self.attach_button, self.send_button):
            button.setFixedSize(px(36), px(36))
            button.setIconSize(QSize(px(20), px(20)))
        self.attach_button.setIcon(icon("attach", self._theme.colours.muted))
        self.edit.setFont(self._theme.font(READING))
        self.edit.setPalette(self._theme.palette())
        self.set_unavailable(self._reason)
        self._show_chips()

    def _fit(self) -> None:
        """Grow with the text up to a number of lines, then scroll."""
        line = self.edit.fontMetrics().lineSpacing()
        # The layout of a plain text edit counts lines, not pixels.
        lines = min(MAX_LINES, max(1, int(self.edit.document().documentLayout().documentSize().height())))
        padding = 2 * self._theme.px(7)
        self.edit.document().setDocumentMargin(0)
        self.edit.setViewportMargins(self._theme.px(4), padding // 2, self._theme.px(4), padding // 2)
        self.edit.setFixedHeight(max(self._theme.px(36), lines * line + padding + 2))
        is_scrolling = lines >= MAX_LINES
        policy = (
            Qt.ScrollBarPolicy.ScrollBarAsNeeded if is_scrolling else Qt.ScrollBarPolicy.ScrollBarAlwaysOff
        )
        self.edit.setVerticalScrollBarPolicy(policy)


class _Edit(QPlainTextEdit):
    """The text field itself: keys and pastes become signals."""

    enter_pressed = Signal()
    escape_pressed = Signal()
    recall_pressed = Signal()
    files_pasted = Signal(list)
    long_text_pasted = Signal(str)
    picture_pasted = Signal()
    focus_changed = Signal(bool)

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.setObjectName("composer_edit")
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setTabChangesFocus(True)
        # The composer takes drops for the whole frame.
        self.setAcceptDrops(False)
        self.viewport().setAutoFillBackground(False)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setWordWrapMode(QTextOption.WrapMode.WrapAtWordBoundaryOrAnywhere)

    @property
    def is_composing(self) -> bool:
        """Whether an input method has begun a word that is not chosen yet."""
        return bool(self.textCursor().block().layout().preeditAreaText())

    def event(self, event: QEvent) -> bool:
        # These keys choose or leave a candidate: then they are nobody's shortcut, and send, stop and go nowhere.
        is_key = event.type() in (QEvent.Type.KeyPress, QEvent.Type.ShortcutOverride)
        if is_key and self.is_composing and event.key() in _OF_CANDIDATES:  # type: ignore[attr-defined]  # a key event
            event.accept()
            return True
        return super().event(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        modifiers = event.modifiers() & ~Qt.KeyboardModifier.KeypadModifier
        control, shift = Qt.KeyboardModifier.ControlModifier, Qt.KeyboardModifier.ShiftModifier
        if event.key() in _ENTER and modifiers in (Qt.KeyboardModifier.NoModifier, control):
            self.enter_pressed.emit()
        elif event.key() in _ENTER and modifiers == shift:
            # A paragraph, not the line separator that a plain text edit would insert.
            self.insertPlainText("\n")
            self.ensureCursorVisible()
        elif event.key() == Qt.Key.Key_Tab and modifiers == control:
            self.insertPlainText("\t")
        elif event.key() == Qt.Key.Key_Escape:
            self.escape_pressed.emit()
        elif event.key() == Qt.Key.Key_Up and self.document().isEmpty():
            self.recall_pressed.emit()
        else:
            super().keyPressEvent(event)

    def canInsertFromMimeData(self, source: QMimeData) -> bool:
        return source.hasText() or source.hasImage() or bool(_local_files(source))

    def insertFromMimeData(self, source: QMimeData) -> None:
        files = _local_files(source)
        if files:
            self.files_pasted.emit(files)
        elif source.hasImage() and not source.text().strip():
            self.picture_pasted.emit()
        elif _is_long(source.text()):
            self.long_text_pasted.emit(source.text())
        else:
            self.insertPlainText(source.text())

    def focusInEvent(self, event: QFocusEvent) -> None:
        super().focusInEvent(event)
        self.focus_changed.emit(True)

    def focusOutEvent(self, event: QFocusEvent) -> None:
        super().focusOutEvent(event)
        self.focus_changed.emit(False)


def _local_files(data: QMimeData) -> list[Path]:
    return [Path(url.toLocalFile()) for url in data.urls() if url.isLocalFile()]


def _is_long(text: str) -> bool:
    return len(text) > LONG_PASTE_CHARS or any(len(line) > LONG_LINE_CHARS for line in text.splitlines())
