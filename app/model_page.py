"""The model page: the starter model, models worth having, models that are here, and one's own files.

Each model is a card with its size, licence, what it needs and whether that fits. The page downloads and loads
nothing; it asks by signals, and shows what it is told. GUI thread only.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from PySide6.QtCore import Qt, QTimer, Signal
from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import (
    QFrame,
    QGridLayout,
    QHBoxLayout,
    QProgressBar,
    QVBoxLayout,
    QWidget,
)

from inglenook.app.centred_column import centred
from inglenook.app.plain_label import ElidedLabel, PlainLabel, button
from inglenook.app.rich_text import label
from inglenook.app.theme import Theme

CardState = Literal["available", "fetching", "importing", "here", "loading", "loaded", "missing"]
Fit = Literal["yes", "maybe", "no"]


@dataclass(frozen=True, slots=True)
class ModelCard:
    """A model as the page shows it. Sizes in bytes; `free_bytes` is the memory that is free now.

    While fetching or loading, `done` of `total` bytes (0: not known), `stage` in words. `problem` is the sentence of
    what went wrong last.
    """

    name: str
    title: str
    purpose: str = ""
    licence: str = ""
    licence_note: str = ""
    size_bytes: int = 0
    memory_bytes: int = 0
    free_bytes: int = 0
    state: CardState = "available"
    stage: str = ""
    done: int = 0
    total: int = 0
    problem: str = ""
    is_starter: bool = False
    is_embedder: bool = False

    @property
    def fit(self) -> Fit:
        """Whether it can run here: "maybe" when it takes nearly all that is free."""
        if self.memory_bytes <= 0.8 * self.free_bytes:
            return "yes"
        return "maybe" if self.memory_bytes <= self.free_bytes else "no"

    @property
    def is_here(self) -> bool:
        """Whether it is on this computer."""
        return self.state in ("here", "loading", "loaded", "missing")


class ModelPage(QWidget):
    """All cards, in two groups.

    Signals: `get_requested(name)`, `cancel_requested(name)` of a download or an import, `load_requested(name)`,
    `unload_requested()`, `remove_requested(name)`, `import_requested()`, `files_dropped(paths)`, `close_requested()`.
    """

    get_requested = Signal(str)
    cancel_requested = Signal(str)
    load_requested = Signal(str)
    unload_requested = Signal()
    remove_requested = Signal(str)
    import_requested = Signal()
    files_dropped = Signal(list)
    close_requested = Signal()

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._cards: dict[str, _Card] = {}
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
        self._here, self._more = QVBoxLayout(), QVBoxLayout()
        self._none_here = PlainLabel(
            self.tr("No model yet. The starter model below is the quickest way in."), look="muted"
        )
        self._here.addWidget(self._none_here)
        self._column = QWidget()
        self._column.setObjectName("page")
        head = QHBoxLayout()
        head.addWidget(self._title, 1)
        head.addWidget(self.import_button, 0, Qt.AlignmentFlag.AlignVCenter)
        self._layout = QVBoxLayout(self._column)
        self._layout.addLayout(head)
        self._layout.addWidget(self._memory)
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

    def card(self, name: str) -> _Card:
        """The widget of a model. Raises: KeyError if there is none."""
        self._show_cards()
        return self._cards[name]

    def _new_card(self, name: str) -> _Card:
        card = _Card(self._theme)
        card.get_requested.connect(self.get_requested)
        card.cancel_requested.connect(self.cancel_requested)
        card.load_requested.connect(self.load_requested)
        card.unload_requested.connect(self.unload_requested)
        card.remove_requested.connect(self.remove_requested)
        self._cards[name] = card
        return card

    def _chain_tabs(self, cards: list[ModelCard]) -> None:
        before: QWidget = self.import_button
        for card in sorted(cards, key=lambda card: not card.is_here):
            for control in (self._cards[card.name].main_button, self._cards[card.name].remove_button):
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


class _Card(QFrame):
    """One model: words on the left, what can be done on the right."""

    get_requested = Signal(str)
    cancel_requested = Signal(str)
    load_requested = Signal(str)
    unload_requested = Signal()
    remove_requested = Signal(str)

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._card = ModelCard("", "")
        self.setObjectName("card")
        self.title = ElidedLabel(look="strong")
        self.fit = PlainLabel(look="pill")
        self.fit.setWordWrap(False)
        self.purpose = PlainLabel(look="muted")
        self.facts = PlainLabel(look="small")
        self.problem = PlainLabel(look="error", is_selectable=True)
        self.bar = QProgressBar()
        self.bar.setTextVisible(False)
        self.main_button = button("", "plain_button")
        self.main_button.clicked.connect(self._on_main)
        self.remove_button = button(self.tr("Remove"), "quiet_button")
        self.remove_button.clicked.connect(lambda: self.remove_requested.emit(self._card.name))
        self._head = QHBoxLayout()
        self._head.addWidget(self.title, 1)
        self._head.addWidget(self.fit)
        self._grid = QGridLayout(self)
        self._grid.addLayout(self._head, 0, 0, 1, 3)
        self._grid.addWidget(self.purpose, 1, 0)
        self._grid.addWidget(self.facts, 2, 0)
        bottom = Qt.AlignmentFlag.AlignBottom | Qt.AlignmentFlag.AlignRight
        self._grid.addWidget(self.remove_button, 1, 1, 2, 1, bottom)
        self._grid.addWidget(self.main_button, 1, 2, 2, 1, bottom)
        self._grid.addWidget(self.bar, 3, 0, 1, 3)
        self._grid.addWidget(self.problem, 4, 0, 1, 3)
        self._grid.setColumnStretch(0, 1)
        self.restyle()

    def show_card(self, card: ModelCard) -> None:
        """Show a model's present state."""
        self._card = card
        self.setAccessibleName(label(card.title, 120))
        self.title.setText(card.title)
        self.purpose.setText(_sentence(card.purpose))
        self.purpose.setVisible(bool(card.purpose))
        self.facts.setText(self._facts(card))
        words = {"yes": self.tr("Fits"), "maybe": self.tr("May be slow"), "no": self.tr("Won't fit")}[
            card.fit
        ]
        self.fit.setText(self.tr("In use") if card.state == "loaded" else words)
        self.fit.setToolTip(
            self.tr("Needs {0} of memory; {1} are free").format(
                gigabytes(card.memory_bytes), gigabytes(card.free_bytes)
            )
        )
        self.fit.setProperty("fit", "yes" if card.state == "loaded" else card.fit)
        self.fit.style().polish(self.fit)
        self.fit.setVisible(card.state == "loaded" or bool(card.memory_bytes))
        self.problem.setText(card.problem)
        self.problem.setVisible(bool(card.problem))
        is_moving = card.state in ("fetching", "importing", "loading")
        self.bar.setVisible(is_moving)
        self.bar.setRange(0, 1000 if card.total else 0)
        self.bar.setValue(int(1000 * card.done / card.total) if card.total else 0)
        self.bar.setAccessibleName(self.tr("Progress of {0}").format(label(card.title, 80)))
        self._show_buttons(card)
        self.setProperty("is_loaded", "true" if card.state == "loaded" else "false")
        self.style().unpolish(self)
        self.style().polish(self)

    def restyle(self) -> None:
        """Take the theme's distances anew."""
        px = self._theme.px
        self._grid.setContentsMargins(px(18), px(14), px(16), px(14))
        self._grid.setHorizontalSpacing(px(8))
        self._grid.setVerticalSpacing(px(5))

    def _facts(self, card: ModelCard) -> str:
        if card.state in ("fetching", "importing"):
            words = self.tr("Downloading") if card.state == "fetching" else self.tr("Copying")
            return (
                f"{words}: {gigabytes(card.done)} of {gigabytes(card.total)}" if card.total else f"{words}…"
            )
        if card.state == "loading":
            stage = card.stage or self.tr("Loading into memory")
            return f"{stage}, {100 * card.done // card.total} %" if card.total else f"{stage}…"
        if card.state == "missing":
            return self.tr("Its file is no longer where it was.")
        parts = [
            self.tr("{0} on disk").format(gigabytes(card.size_bytes)) if card.is_here
            else self.tr("{0} download").format(gigabytes(card.size_bytes)),
            self.tr("needs {0} of memory").format(gigabytes(card.memory_bytes)) if card.memory_bytes else "",
            self.tr("licence not stated") if card.licence in ("", "not stated", "unknown") else card.licence,
        ]  # fmt: skip
        line = "  ·  ".join(part for part in parts if part)
        return f"{line}\n{_sentence(card.licence_note)}" if card.licence_note else line

    def _show_buttons(self, card: ModelCard) -> None:
        words = {
            "available": self.tr("Download"), "fetching": self.tr("Cancel"), "importing": self.tr("Cancel"),
            "here": self.tr("Use"), "loading": self.tr("Cancel"), "loaded": self.tr("Unload"), "missing": "",
        }[card.state]  # fmt: skip
        if card.is_embedder and card.state in ("here", "loading", "loaded"):
            words = ""
        is_primary = card.state == "available" and card.is_starter
        self.main_button.setObjectName("primary_button" if is_primary else "plain_button")
        self.main_button.style().unpolish(self.main_button)
        self.main_button.style().polish(self.main_button)
        self.main_button.setText(words)
        self.main_button.setVisible(bool(words))
        self.main_button.setAccessibleName(f"{words} {label(card.title, 80)}")
        self.remove_button.setVisible(card.state in ("here", "missing"))
        self.remove_button.setAccessibleName(self.tr("Remove {0}").format(label(card.title, 80)))

    def _on_main(self) -> None:
        name, state = self._card.name, self._card.state
        if state == "available":
            self.get_requested.emit(name)
        elif state in ("fetching", "importing"):
            self.cancel_requested.emit(name)
        elif state == "here":
            self.load_requested.emit(name)
        elif state in ("loading", "loaded"):
            self.unload_requested.emit()


def gigabytes(size: int) -> str:
    """Write a size as people know it: "98 MB", "1.1 GB"."""
    if size >= 1e9:
        return f"{size / 1e9:.1f} GB"
    return f"{max(1, round(size / 1e6))} MB" if size else "0 MB"


def model_files(paths: Iterable[Path]) -> list[Path]:
    """Return those of some dropped paths that name a model file, judged by the name alone."""
    return [path for path in paths if path.suffix.lower() in (".gguf", ".safetensors")]


def _sentence(text: str) -> str:
    text = text.strip()
    return f"{text[:1].upper()}{text[1:]}{'' if text.endswith(('.', '!', '?')) else '.'}" if text else ""
