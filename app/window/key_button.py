"""A button that shows keys and, pressed, takes the next ones that are pressed. GUI thread only."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QEvent, QKeyCombination, Qt, Signal
from PySide6.QtGui import QFocusEvent, QKeyEvent, QKeySequence
from PySide6.QtWidgets import QPushButton

from inglenook.app.text.plain_label import plain_button_text
from inglenook.app.window.shortcuts import native

_MODIFIERS = (
    Qt.Key.Key_Control, Qt.Key.Key_Shift, Qt.Key.Key_Alt, Qt.Key.Key_Meta, Qt.Key.Key_AltGr, Qt.Key.Key_CapsLock,
    Qt.Key.Key_NumLock, Qt.Key.Key_Super_L, Qt.Key.Key_Super_R, Qt.Key.Key_unknown,
)  # fmt: skip
_ERASING = (Qt.Key.Key_Backspace, Qt.Key.Key_Delete)


class KeyButton(QPushButton):
    """Shows the keys of `what`. Signals: `recorded(keys)`: what was pressed, "" for none. Esc and Tab leave it as it is."""

    recorded = Signal(str)

    def __init__(self, what: str, keys: Sequence[str]) -> None:
        # Before Qt's own, whose constructor already sends events.
        self.is_recording = False
        super().__init__()
        self.setObjectName("plain_button")
        self.setAutoDefault(False)
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self._what, self._keys = what, tuple(keys)
        self.clicked.connect(self._begin)
        self._show()

    def set_keys(self, keys: Sequence[str]) -> None:
        """Show other keys."""
        self._keys = tuple(keys)
        self._show()

    def event(self, event: QEvent) -> bool:
        # What is pressed here is a choice, and nobody's shortcut.
        if self.is_recording and event.type() == QEvent.Type.ShortcutOverride:
            event.accept()
            return True
        return super().event(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        key, modifiers = event.key(), event.modifiers()
        if not self.is_recording or key in (Qt.Key.Key_Tab, Qt.Key.Key_Backtab):
            super().keyPressEvent(event)
            return
        if key in _MODIFIERS:
            return
        keypad = Qt.KeyboardModifier.KeypadModifier | Qt.KeyboardModifier.GroupSwitchModifier
        modifiers &= ~keypad
        self._end()
        if key == Qt.Key.Key_Escape and not modifiers:
            return
        is_erasing = key in _ERASING and not modifiers
        sequence = QKeySequence(QKeyCombination(modifiers, Qt.Key(key)))
        self.recorded.emit("" if is_erasing else sequence.toString(QKeySequence.SequenceFormat.PortableText))

    def focusOutEvent(self, event: QFocusEvent) -> None:
        self._end()
        super().focusOutEvent(event)

    def _begin(self) -> None:
        self.is_recording = True
        self._show()

    def _end(self) -> None:
        self.is_recording = False
        self._show()

    def _show(self) -> None:
        words = self.tr(" or ").join(native(self._keys)) or self.tr("No keys")
        self.setText(plain_button_text(self.tr("Press keys…") if self.is_recording else words))
        self.setAccessibleName(
            self.tr("{0}: press the new keys, Backspace for none, Esc to leave it").format(self._what)
            if self.is_recording
            else self.tr("{0}: {1}").format(self._what, words)
        )
