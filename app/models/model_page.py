"""The model page: the starter model, models worth having, models that are here, and one's own files.

Each model is a card with its size, licence, what it needs and whether that fits. The page downloads and loads
nothing; it asks by signals, and shows what it is told. GUI thread only.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from PySide6.QtCore import Qt, QTimer, Signal
from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import QHBoxLayout, QVBoxLayout, QWidget

from inglenook.app.models.model_card import ModelCard, ModelCardView
from inglenook.app.text.plain_label import PlainLabel, button
from inglenook.app.window.centred_column import centred
from inglenook.app.window.theme import Theme


class ModelPage(QWidget):
    """All cards, in two groups.

    Signals: `get_requested(name)`, `cancel_requested(name)` of a download or an import, `load_requested(name)`,
    `unload_requested()`, `remove_requested(name)`, `examine_requested(name)` and
    `stop_examining_requested()` of the doctor, `settings_requested(name)`, `compare_requested()`, `import_requested()`, `files_dropped(paths)`, `close_requested()`.
    """

    get_requested = Signal(str)
    cancel_requested = Signal(str)
    load_requested = Signal(str)
    unload_requested = Signal()
    remove_requested = Signal(str)
    examine_requested = Signal(str)
    stop_examining_requested = Signal()
    settings_requested = Signal(str)
    compare_requested = Signal()
    import_requested = Signal()
    files_dropped = Signal(list)
    close_requested = Signal()

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._cards: dict[str, ModelCardView] = {}
        self._waiting: list[ModelCard] | None = None
        self._making = QTimer(self, interval=0)
        self._making.timeout.connect(self._make_next)
        self.setObjectName("page")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self.setAccessibleName(self.tr("Models"))
        self._title = PlainLabel(self.tr("Models"), look="title")
        self._memory = PlainLabel(look="muted")
        self._problem = PlainLabel(look="error", is_selectable=True)
        self._problem.hide()
        self._notice = PlainLabel(look="muted", is_selectable=True)
        self._notice.hide()
        self._here_title = PlainLabel(self.tr("On this computer"), look="heading")
        self._more_title = PlainLabel(self.tr("Ready to download"), look="heading")
        self._network = PlainLabel(
            self.tr(
                "Downloading a model is the only time this page uses the network, and only when you press Download."
            ),
            look="small",
        )
        self.import_button = button(self.tr("Use a model file…"))
        self.import_button.setToolTip(
            self.tr("A .gguf file or a folder of safetensors that you already have")
        )
        self.import_button.clicked.connect(self.import_requested)
        self.compare_button = button(self.tr("Ask two models…"))
        self.compare_button.setToolTip(self.tr("The same question to two models, their answers side by side"))
        self.compare_button.clicked.connect(self.compare_requested)
        self.compare_button.hide()
        self._here, self._more = QVBoxLayout(), QVBoxLayout()
        self._none_here = PlainLabel(
            self.tr("No model yet. The starter model below is the quickest way in."), look="muted"
        )
        self._here.addWidget(self._none_here)
        self._column = QWidget()
        self._column.setObjectName("page")
        head = QHBoxLayout()
        head.addWidget(self._title, 1)
        head.addWidget(self.compare_button, 0, Qt.AlignmentFlag.AlignVCenter)
        head.addWidget(self.import_button, 0, Qt.AlignmentFlag.AlignVCenter)
        self._layout = QVBoxLayout(self._column)
        self._layout.addLayout(head)
        self._layout.addWidget(self._memory)
        self._layout.addWidget(self._notice)
        self._layout.addWidget(self._problem)
        self._layout.addWidget(self._here_title)
        self._layout.addLayout(self._here)
        self._layout.addWidget(self._more_title)
        self._layout.addWidget(self._network)
        self._layout.addLayout(self._more)
        self._layout.addStretch()
        outer = QVBoxLayout(self)
        outer.setContentsMargins(0, 0, 0, 0)
        outer.addWidget(centred(self._column, theme))
        theme.changed.connect(self._restyle)
        self._restyle()

    def set_cards(self, cards: Iterable[ModelCard]) -> None:
        """Show these models; widgets of models that stay are kept, with their focus.

        While the page is out of sight, what is new is made a card at a time, so that the event loop stays quick.
        """
        self._waiting = list(cards)
        if self.isVisible():
            self._show_cards()
        elif not self._making.isActive():
            self._making.start()

    def showEvent(self, event: QShowEvent) -> None:
        self._show_cards()
        super().showEvent(event)

    def _make_next(self) -> None:
        """Make one card that is missing; once none is, show them all."""
        missing = next((card.name for card in self._waiting or () if card.name not in self._cards), None)
        if missing is None:
            self._show_cards()
        else:
            self._new_card(missing)

    def _show_cards(self) -> None:
        self._making.stop()
        if self._waiting is None:
            return
        cards, self._waiting = self._waiting, None
        names = {card.name for card in cards}
        for name in [name for name in self._cards if name not in names]:
            self._cards.pop(name).deleteLater()
        for position, group in ((self._here, True), (self._more, False)):
            for row, card in enumerate([card for card in cards if card.is_here == group]):
                widget = self._cards.get(card.name) or self._new_card(card.name)
                widget.show_card(card)
                place = row + (1 if group else 0)
                if position.indexOf(widget) != place:
                    position.insertWidget(place, widget)
        chat = [
            card
            for card in cards
            if card.is_here and not card.is_embedder and card.state not in ("importing", "missing")
        ]
        self.compare_button.setVisible(len(chat) > 1)
        self._none_here.setVisible(not any(card.is_here for card in cards))
        self._more_title.setVisible(any(not card.is_here for card in cards))
        self._network.setVisible(self._more_title.isVisibleTo(self._column))
        self._chain_tabs(cards)

    def set_memory(self, sentence: str) -> None:
        """Say what this computer offers."""
        self._memory.setText(sentence)

    def show_problem(self, sentence: str) -> None:
        """Say what went wrong, for instance with an import; "" takes it away."""
        self._problem.setText(sentence)
        self._problem.setVisible(bool(sentence))

    def show_notice(self, sentence: str) -> None:
        """Say what was done, for instance what a removal freed; "" takes it away."""
        self._notice.setText(sentence)
        self._notice.setVisible(bool(sentence))

    def card(self, name: str) -> ModelCardView:
        """The widget of a model. Raises: KeyError if there is none."""
        self._show_cards()
        return self._cards[name]

    def _new_card(self, name: str) -> ModelCardView:
        card = ModelCardView(self._theme)
        card.get_requested.connect(self.get_requested)
        card.cancel_requested.connect(self.cancel_requested)
        card.load_requested.connect(self.load_requested)
        card.unload_requested.connect(self.unload_requested)
        card.remove_requested.connect(self.remove_requested)
        card.examine_requested.connect(self.examine_requested)
        card.settings_requested.connect(self.settings_requested)
        card.check.stop_requested.connect(self.stop_examining_requested)
        self._cards[name] = card
        return card

    def _chain_tabs(self, cards: list[ModelCard]) -> None:
        QWidget.setTabOrder(self.compare_button, self.import_button)
        before: QWidget = self.import_button
        for card in sorted(cards, key=lambda card: not card.is_here):
            for control in self._cards[card.name].controls():
                QWidget.setTabOrder(before, control)
                before = control

    def _restyle(self) -> None:
        px = self._theme.px
        self._layout.setContentsMargins(px(24), px(36), px(24), px(36))
        self._layout.setSpacing(px(12))
        for group in (self._here, self._more):
            group.setSpacing(px(10))
        self._here_title.setContentsMargins(0, px(14), 0, 0)
        self._more_title.setContentsMargins(0, px(18), 0, 0)
        for card in self._cards.values():
            card.restyle()


def model_files(paths: Iterable[Path]) -> list[Path]:
    """Return those of some dropped paths that name a model file, judged by the name alone."""
    return [path for path in paths if path.suffix.lower() in (".gguf", ".safetensors")]
