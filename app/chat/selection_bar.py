"""The line that is there while several messages may be chosen: how many are, and what can be done with them."""

from __future__ import annotations

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QFrame, QHBoxLayout, QWidget

from inglenook.app.chat.message_selection import MessageSelection
from inglenook.app.text.plain_label import PlainLabel, button
from inglenook.app.translations.figures import numbered
from inglenook.app.window.theme import Theme


class SelectionBar(QFrame):
    """Follows a selection. Signals: `copy_requested()`, `export_requested()`, `delete_requested()`."""

    copy_requested = Signal()
    export_requested = Signal()
    delete_requested = Signal()

    def __init__(self, selection: MessageSelection, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._selection, self._theme = selection, theme
        self.setObjectName("banner")
        self.words = PlainLabel()
        self.all_button = button(
            self.tr("All"), "quiet_button", accessible_name=self.tr("Choose all messages, or none")
        )
        self.copy_button = button(self.tr("Copy"), accessible_name=self.tr("Copy the chosen messages"))
        self.export_button = button(self.tr("Export…"), accessible_name=self.tr("Export the chosen messages"))
        self.delete_button = button(self.tr("Delete…"), accessible_name=self.tr("Delete the chosen messages"))
        self.done_button = button(
            self.tr("Done"), "quiet_button", accessible_name=self.tr("Leave choosing messages")
        )
        self.all_button.clicked.connect(selection.choose_all)
        self.copy_button.clicked.connect(self.copy_requested)
        self.export_button.clicked.connect(self.export_requested)
        self.delete_button.clicked.connect(self.delete_requested)
        self.done_button.clicked.connect(selection.end)
        self._line = QHBoxLayout(self)
        self._line.addWidget(self.words, 1)
        for made in (
            self.all_button,
            self.copy_button,
            self.export_button,
            self.delete_button,
            self.done_button,
        ):
            self._line.addWidget(made)
        selection.changed.connect(self._show)
        theme.changed.connect(self._restyle)
        self._restyle()
        self._show()

    def _show(self) -> None:
        self.setVisible(self._selection.is_on)
        count = len(self._selection.messages)
        if not count:
            words = self.tr("Choose messages with a click or with Space")
        elif count == 1:
            words = self.tr("1 message chosen")
        else:
            words = numbered("{0} messages chosen", count)
        self.words.setText(words)
        for made in (self.copy_button, self.export_button, self.delete_button):
            made.setEnabled(count > 0)

    def _restyle(self) -> None:
        px = self._theme.px
        self._line.setContentsMargins(px(12), px(6), px(8), px(6))
        self._line.setSpacing(px(6))
