"""The privacy page: what is kept where, what never happens, and what can be done about it. GUI thread only.

It shows what it is given; `privacy_join.py` measures folders and does what the buttons ask for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtWidgets import QFrame, QGridLayout, QHBoxLayout, QLabel, QVBoxLayout, QWidget

from inglenook.app.text.plain_label import PlainLabel, button
from inglenook.app.translations import figures
from inglenook.app.window.centred_column import centred
from inglenook.app.window.icons import icon
from inglenook.app.window.theme import Theme


@dataclass(frozen=True, slots=True)
class KeptPlace:
    """One place where something is kept: what in words, where, and how much; `size_bytes` -1 while it is counted."""

    what: str
    path: str
    size_bytes: int


class PrivacyPage(QWidget):
    """Signals: `folder_requested()`, `trash_requested()`, `forget_requested()`, `backup_requested()`, `close_requested()`."""

    folder_requested = Signal()
    trash_requested = Signal()
    forget_requested = Signal()
    backup_requested = Signal()
    close_requested = Signal()

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self.setObjectName("page")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self.setAccessibleName(self.tr("Privacy"))
        self._title = PlainLabel(self.tr("What stays here, and what never happens"), look="title")
        self._places = QFrame()
        self._places.setObjectName("card")
        self._grid = QGridLayout(self._places)
        self.folder_button = button(self.tr("Open the folder"))
        self.folder_button.clicked.connect(self.folder_requested)
        self.backup_button = button(self.tr("Back up everything…"))
        self.backup_button.clicked.connect(self.backup_requested)
        self.trash_button = button(self.tr("Look into the trash"))
        self.trash_button.clicked.connect(self.trash_requested)
        self.forget_button = button(self.tr("Forget everything…"), "danger_button")
        self.forget_button.clicked.connect(self.forget_requested)
        self._buttons = QGridLayout()
        made = (self.folder_button, self.backup_button, self.trash_button, self.forget_button)
        for number, one in enumerate(made):
            self._buttons.addWidget(one, number // 2, number % 2)
        self._buttons.setColumnStretch(2, 1)
        self._locks: list[QLabel] = []
        self._headings = [
            PlainLabel(words, look="heading")
            for words in (
                self.tr("What is kept"),
                self.tr("What never happens"),
                self.tr("What deleting means"),
            )
        ]
        kept, never, deleting = self._headings
        column = QWidget()
        column.setObjectName("page")
        self._layout = QVBoxLayout(column)
        self._layout.addWidget(self._title)
        lead = self.tr(
            "Everything that you write, drop or are answered is kept in one folder of this computer, which only your "
            "account may open. Nothing of it is sent anywhere."
        )
        self._layout.addWidget(PlainLabel(lead))
        self._layout.addWidget(kept)
        self._layout.addWidget(self._places)
        self._layout.addLayout(self._buttons)
        self._layout.addWidget(never)
        for sentence in self._promises():
            self._layout.addLayout(self._promise(sentence))
        self._layout.addWidget(deleting)
        self._layout.addWidget(PlainLabel(self._deleting()))
        self._layout.addStretch(1)
        outer = QVBoxLayout(self)
        outer.setContentsMargins(0, 0, 0, 0)
        outer.addWidget(centred(column, theme))
        self._shown: Sequence[KeptPlace] = ()
        theme.changed.connect(self._restyle)
        self._restyle()

    def set_places(self, places: Sequence[KeptPlace]) -> None:
        """Show where things are kept, and how much."""
        self._shown = places
        while (item := self._grid.takeAt(0)) is not None:
            if (widget := item.widget()) is not None:
                widget.deleteLater()
        for row, place in enumerate(places):
            size = "…" if place.size_bytes < 0 else figures.size(place.size_bytes)
            self._grid.addWidget(PlainLabel(place.what), row, 0, Qt.AlignmentFlag.AlignTop)
            where = PlainLabel(place.path, look="muted", is_selectable=True)
            self._grid.addWidget(where, row, 1, Qt.AlignmentFlag.AlignTop)
            amount = PlainLabel(size, look="muted")
            amount.setWordWrap(False)
            self._grid.addWidget(amount, row, 2, Qt.AlignmentFlag.AlignTop | Qt.AlignmentFlag.AlignTrailing)

    def _promises(self) -> list[str]:
        return [
            self.tr(
                "No connection is opened unless you ask for that very thing. A model is downloaded when you press its "
                "button, and nothing else uses the network."
            ),
            self.tr("There is no account, no telemetry and no check for updates."),
            self.tr("Nothing in an answer or a document loads anything: no picture, no address, no program."),
            self.tr("The program's notes about its own faults hold no question, no answer and no file name."),
        ]

    def _deleting(self) -> str:
        return self.tr(
            "A chat in the trash can be taken back for 30 days. Deleted for good, or with its document forgotten, its "
            "text is overwritten in the history and in the search index. A backup that you made yourself keeps what "
            "was in it."
        )

    def _promise(self, sentence: str) -> QHBoxLayout:
        line, lock = QHBoxLayout(), QLabel()
        line.setSpacing(self._theme.px(10))
        self._locks.append(lock)
        line.addWidget(lock, 0, Qt.AlignmentFlag.AlignTop)
        line.addWidget(PlainLabel(sentence), 1)
        return line

    def _restyle(self) -> None:
        px = self._theme.px
        self._layout.setContentsMargins(px(24), px(36), px(24), px(36))
        self._layout.setSpacing(px(12))
        for heading in self._headings:
            heading.setContentsMargins(0, px(14), 0, 0)
        self._grid.setContentsMargins(px(18), px(14), px(18), px(14))
        self._grid.setHorizontalSpacing(px(18))
        self._grid.setColumnStretch(0, 2)
        self._grid.setColumnStretch(1, 3)
        self._grid.setVerticalSpacing(px(8))
        self._buttons.setSpacing(px(8))
        picture = icon("lock", self._theme.colours.muted).pixmap(
            QSize(px(18), px(18)), self.devicePixelRatioF()
        )
        for lock in self._locks:
            lock.setPixmap(picture)
