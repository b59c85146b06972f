"""Messages that wait until the reply being written has ended, as chips above the composer. GUI thread only."""

from __future__ import annotations

from functools import partial

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QHBoxLayout, QPushButton, QWidget

from inglenook.app.text.plain_label import PlainLabel, button, plain_button_text, plain_tooltip
from inglenook.app.text.rich_text import label
from inglenook.app.window.icons import icon
from inglenook.app.window.theme import Theme

_SHOWN = 3
_CHIP_CHARACTERS = 42


class QueuedMessages(QWidget):
    """Shows what is queued. Signals: `edit_requested(place)`, `remove_requested(place)`, `send_requested()` and
    `drop_requested()` when paused.
    """

    edit_requested = Signal(int)
    remove_requested = Signal(int)
    send_requested = Signal()
    drop_requested = Signal()

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._chips: list[QWidget] = []
        self._words = PlainLabel(look="small")
        self.send_button = button(self.tr("Send now"))
        self.send_button.clicked.connect(self.send_requested)
        self.drop_button = button(self.tr("Drop all"), "quiet_button")
        self.drop_button.clicked.connect(self.drop_requested)
        self.is_paused = False
        self._line = QHBoxLayout(self)
        self._line.addWidget(self._words)
        self._line.addStretch(1)
        self._line.addWidget(self.drop_button)
        self._line.addWidget(self.send_button)
        theme.changed.connect(self._restyle)
        self._restyle()
        self.show_texts([], is_paused=False)

    def show_texts(self, texts: list[str], *, is_paused: bool) -> None:
        """Show these messages in their order; a paused queue has a button that goes on."""
        for chip in self._chips:
            self._line.removeWidget(chip)
            chip.deleteLater()
        self._chips = []
        for place, text in enumerate(texts[:_SHOWN]):
            for made in self._chip(place, text):
                self._line.insertWidget(1 + len(self._chips), made)
                self._chips.append(made)
        more = len(texts) - _SHOWN
        self._words.setText(self._heading(is_paused=is_paused, more=more))
        self.is_paused = is_paused and bool(texts)
        self.drop_button.setVisible(is_paused)
        self.send_button.setVisible(is_paused)
        self.setVisible(bool(texts))

    @property
    def chips(self) -> list[QWidget]:
        """The buttons of the messages: edit and remove of each in turn."""
        return self._chips

    def _heading(self, *, is_paused: bool, more: int) -> str:
        words = self.tr("Waiting:") if is_paused else self.tr("Next:")
        return words if more <= 0 else self.tr("{0} ({1} more)").format(words, more)

    def _chip(self, place: int, text: str) -> tuple[QPushButton, QPushButton]:
        shown = label(text, _CHIP_CHARACTERS)
        edit = button(shown, "chip", accessible_name=self.tr("Edit the waiting message: {0}").format(shown))
        edit.setText(plain_button_text(shown))
        edit.setToolTip(plain_tooltip(text))
        edit.clicked.connect(partial(self.edit_requested.emit, place))
        name = self.tr("Remove the waiting message: {0}").format(shown)
        remove = button("", "quiet_button", accessible_name=name, tip=self.tr("Remove"))
        remove.setIcon(icon("close", self._theme.colours.muted))
        remove.clicked.connect(partial(self.remove_requested.emit, place))
        return edit, remove

    def _restyle(self) -> None:
        px = self._theme.px
        self._line.setContentsMargins(px(8), px(2), px(8), px(4))
        self._line.setSpacing(px(4))
        self._line.setAlignment(Qt.AlignmentFlag.AlignVCenter)
