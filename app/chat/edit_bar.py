"""The line above the composer while it holds a message that was written before, to be changed. GUI thread only."""

from __future__ import annotations

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QFrame, QHBoxLayout, QWidget

from inglenook.app.text.plain_label import PlainLabel, button
from inglenook.app.window.theme import Theme


class EditBar(QFrame):
    """Says what is being edited; Enter sends. Signals: `save_requested()` without asking again; `cancel_requested()`."""

    save_requested = Signal()
    cancel_requested = Signal()

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self.setObjectName("banner")
        self._words = PlainLabel()
        self.save_button = button(self.tr("Only save"))
        self.cancel_button = button(self.tr("Cancel"))
        self.save_button.clicked.connect(self.save_requested)
        self.cancel_button.clicked.connect(self.cancel_requested)
        self._line = QHBoxLayout(self)
        self._line.addWidget(self._words, 1)
        self._line.addWidget(self.save_button)
        self._line.addWidget(self.cancel_button)
        theme.changed.connect(self._restyle)
        self._restyle()
        self.hide()

    def begin(self, *, is_reply: bool) -> None:
        """Show it for a reply, whose text is only saved, or for a question, which can also be asked again."""
        self._words.setText(
            self.tr("Editing a reply. Enter saves it.")
            if is_reply
            else self.tr("Editing your message. Enter asks again; the old answer is kept as a version.")
        )
        self.save_button.setVisible(not is_reply)
        self.save_button.setAccessibleName(self.tr("Only save the message, without asking again"))
        self.show()

    def _restyle(self) -> None:
        px = self._theme.px
        self._line.setContentsMargins(px(12), px(6), px(8), px(6))
        self._line.setSpacing(px(8))
