"""What stands in the window before the first model: one click to begin, and what stays private. GUI thread only."""

from __future__ import annotations

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QProgressBar, QVBoxLayout, QWidget

from inglenook.app.models.model_card import ModelCard, gigabytes
from inglenook.app.text.plain_label import PlainLabel, button
from inglenook.app.translations.sentences import said
from inglenook.app.window.centred_column import centred
from inglenook.app.window.icons import icon
from inglenook.app.window.theme import Theme


class WelcomePage(QWidget):
    """The page of the first run.

    Signals: `get_requested(name)` and `cancel_requested(name)` of the starter model; `other_requested()` for the model
    page; `import_requested()` for a file of the user's own; `privacy_requested()`.
    """

    get_requested = Signal(str)
    cancel_requested = Signal(str)
    other_requested = Signal()
    import_requested = Signal()
    privacy_requested = Signal()

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._card = ModelCard("", "")
        self.setObjectName("page")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self.setAccessibleName(self.tr("Welcome"))
        self._title = PlainLabel(self.tr("Welcome to Inglenook"), look="title")
        self._lead = PlainLabel(
            self.tr(
                "Chat with a language model that runs on this computer, and ask it about your documents. "
                "Every answer from a document says which page it came from."
            )
        )
        self._computer = PlainLabel(look="muted")
        self._computer.hide()
        self._box = QFrame()
        self._box.setObjectName("card")
        self._heading = PlainLabel(self.tr("Begin with a small model"), look="heading")
        self._purpose = PlainLabel(look="muted")
        self._facts = PlainLabel(look="small")
        self._problem = PlainLabel(look="error", is_selectable=True)
        self._bar = QProgressBar()
        self._bar.setTextVisible(False)
        self._bar.setAccessibleName(self.tr("Download of the starter model"))
        self.main_button = button("", "primary_button")
        self.main_button.clicked.connect(self._on_main)
        box = QVBoxLayout(self._box)
        for widget in (self._heading, self._purpose, self._facts, self._bar, self._problem):
            box.addWidget(widget)
        box.addWidget(self.main_button, 0, Qt.AlignmentFlag.AlignLeading)
        self._box_layout = box
        self.other_button = button(self.tr("Choose another model"))
        self.other_button.clicked.connect(self.other_requested)
        self.import_button = button(self.tr("Use a model file that I have…"))
        self.import_button.clicked.connect(self.import_requested)
        self._others = QHBoxLayout()
        self._others.addWidget(self.other_button)
        self._others.addWidget(self.import_button)
        self.privacy_button = button(self.tr("What stays here"))
        self.privacy_button.clicked.connect(self.privacy_requested)
        self._others.addStretch()
        self._lock = QLabel()
        self._privacy = PlainLabel(
            self.tr(
                "What you write and drop here stays on this computer. The network is used only to download a model "
                "that you ask for; after that, Inglenook works without it. There is no account and no telemetry."
            ),
            look="muted",
        )
        self._private = QHBoxLayout()
        self._private.addWidget(self._lock, 0, Qt.AlignmentFlag.AlignTop)
        self._private.addWidget(self._privacy, 1)
        self._private.addWidget(self.privacy_button, 0, Qt.AlignmentFlag.AlignTop)
        column = QWidget()
        column.setObjectName("page")
        self._layout = QVBoxLayout(column)
        self._layout.addStretch(2)
        self._layout.addWidget(self._title)
        self._layout.addWidget(self._lead)
        self._layout.addWidget(self._computer)
        self._layout.addWidget(self._box)
        self._layout.addLayout(self._others)
        self._layout.addLayout(self._private)
        self._layout.addStretch(3)
        outer = QVBoxLayout(self)
        outer.setContentsMargins(0, 0, 0, 0)
        outer.addWidget(centred(column, theme))
        theme.changed.connect(self._restyle)
        self._restyle()

    def set_computer(self, words: str) -> None:
        """Say what this computer is and what runs well on it."""
        self._computer.setText(words)
        self._computer.setVisible(bool(words))

    def set_starter(self, card: ModelCard, *, download_bytes: int) -> None:
        """Show the starter model, how much is downloaded with it in all, and how that is going."""
        self._card = card
        is_moving = card.state in ("fetching", "loading")
        self._purpose.setText(
            self.tr(
                "{0}, {1}. With it comes a small one that finds passages in documents. You can add a larger model "
                "at any time."
            ).format(card.title, said(card.purpose))
        )
        if card.state == "fetching":
            words = self.tr("Downloading: {0} of {1}").format(
                gigabytes(card.done), gigabytes(card.total or card.size_bytes)
            )
        elif card.state == "loading":
            words = self.tr("Downloaded. Loading it into memory…")
        else:
            words = self.tr("{0} download  ·  needs {1} of memory  ·  {2} licence").format(
                gigabytes(download_bytes), gigabytes(card.memory_bytes), card.licence
            )
        self._facts.setText(words)
        self._bar.setVisible(is_moving)
        self._bar.setRange(0, 1000 if card.total else 0)
        self._bar.setValue(int(1000 * card.done / card.total) if card.total else 0)
        self._problem.setText(card.problem)
        self._problem.setVisible(bool(card.problem))
        again = self.tr("Try again") if card.problem else self.tr("Download and begin")
        self.main_button.setText(self.tr("Cancel") if is_moving else again)
        self.main_button.setAccessibleName(self.main_button.text())
        self.main_button.setObjectName("plain_button" if is_moving else "primary_button")
        self.main_button.style().unpolish(self.main_button)
        self.main_button.style().polish(self.main_button)
        self.main_button.setVisible(card.state != "loading")

    def _on_main(self) -> None:
        if self._card.state == "fetching":
            self.cancel_requested.emit(self._card.name)
        elif self._card.name:
            self.get_requested.emit(self._card.name)

    def _restyle(self) -> None:
        px = self._theme.px
        self._layout.setContentsMargins(px(24), px(24), px(24), px(24))
        self._layout.setSpacing(px(16))
        self._box_layout.setContentsMargins(px(22), px(18), px(22), px(20))
        self._box_layout.setSpacing(px(8))
        self._others.setSpacing(px(8))
        self._private.setSpacing(px(10))
        self._private.setContentsMargins(0, px(14), 0, 0)
        self._lock.setPixmap(
            icon("lock", self._theme.colours.muted).pixmap(QSize(px(18), px(18)), self.devicePixelRatioF())
        )
