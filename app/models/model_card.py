"""One model on the model page: its words on the left, what can be done on the right, and what the doctor said of it.

It downloads and loads nothing; it asks by signals and shows the `ModelCard` that it is given. GUI thread only.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QFrame, QGridLayout, QHBoxLayout, QProgressBar, QWidget

from inglenook.app.models.memory_need import Fit, fit_of
from inglenook.app.models.model_check_line import ModelCheckLine
from inglenook.app.models.model_verdict import ModelVerdict
from inglenook.app.text.plain_label import ElidedLabel, PlainLabel, button
from inglenook.app.text.rich_text import label
from inglenook.app.translations import figures
from inglenook.app.translations.sentences import said
from inglenook.app.window.theme import Theme

CardState = Literal["available", "fetching", "importing", "here", "loading", "loaded", "asleep", "missing"]


@dataclass(frozen=True, slots=True)
class ModelCard:
    """A model as the page shows it. Sizes in bytes; `free_bytes` is the memory that is free now.

    While fetching or loading, `done` of `total` bytes (0: not known), `stage` in words. `problem` is the sentence of
    what went wrong last. `verdict` is what the doctor said of it; None where it cannot be examined.
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
    verdict: ModelVerdict | None = None

    @property
    def fit(self) -> Fit:
        """Whether it can run here: "maybe" when it takes nearly all that is free."""
        return fit_of(self.memory_bytes, self.free_bytes)

    @property
    def is_here(self) -> bool:
        """Whether it is on this computer."""
        return self.state in ("importing", "here", "loading", "loaded", "asleep", "missing")


class ModelCardView(QFrame):
    """One model: words on the left, what can be done on the right, and `check`, the doctor's line, below.

    Signals: those of the model page that name a model, and `unload_requested()`.
    """

    get_requested = Signal(str)
    cancel_requested = Signal(str)
    load_requested = Signal(str)
    unload_requested = Signal()
    remove_requested = Signal(str)
    examine_requested = Signal(str)
    settings_requested = Signal(str)

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
        self.settings_button = button(self.tr("Settings…"), "quiet_button")
        self.settings_button.clicked.connect(lambda: self.settings_requested.emit(self._card.name))
        self._head = QHBoxLayout()
        self._head.addWidget(self.title, 1)
        self._head.addWidget(self.fit)
        self._grid = QGridLayout(self)
        self._grid.addLayout(self._head, 0, 0, 1, 2)
        self._grid.addWidget(self.purpose, 1, 0)
        self._grid.addWidget(self.facts, 2, 0)
        # One line, in which a button that is not there takes no room.
        self._buttons = QHBoxLayout()
        for made in (self.settings_button, self.remove_button, self.main_button):
            self._buttons.addWidget(made)
        self._grid.addLayout(self._buttons, 1, 1, 2, 1, Qt.AlignmentFlag.AlignBottom)
        self._grid.addWidget(self.bar, 3, 0, 1, 2)
        self._grid.addWidget(self.problem, 4, 0, 1, 2)
        self.check = ModelCheckLine(theme)
        self.check.examine_requested.connect(lambda: self.examine_requested.emit(self._card.name))
        self._grid.addWidget(self.check, 5, 0, 1, 2)
        self._grid.setColumnStretch(0, 1)
        self.restyle()

    def controls(self) -> tuple[QWidget, ...]:
        """All that the keyboard reaches, in order."""
        check = self.check
        return (
            self.settings_button,
            self.remove_button,
            self.main_button,
            check.details_button,
            check.examine_button,
        )

    def show_card(self, card: ModelCard) -> None:
        """Show a model's present state."""
        self._card = card
        self.setAccessibleName(label(card.title, 120))
        self.title.setText(card.title)
        self.purpose.setText(_sentence(said(card.purpose)))
        self.purpose.setVisible(bool(card.purpose))
        self.facts.setText(self._facts(card))
        words = {"yes": self.tr("Fits"), "maybe": self.tr("May be slow"), "no": self.tr("Won't fit")}[
            card.fit
        ]
        is_held = card.state in ("loaded", "asleep")
        held = self.tr("In use") if card.state == "loaded" else self.tr("Sleeping")
        self.fit.setText(held if is_held else words)
        self.fit.setToolTip(
            self.tr("Needs {0} of memory; {1} are free").format(
                gigabytes(card.memory_bytes), gigabytes(card.free_bytes)
            )
        )
        self.fit.setProperty("fit", "yes" if is_held else card.fit)
        self.fit.style().polish(self.fit)
        self.fit.setVisible(is_held or bool(card.memory_bytes))
        self.problem.setText(said(card.problem))
        self.problem.setVisible(bool(card.problem))
        is_moving = card.state in ("fetching", "importing", "loading")
        self.bar.setVisible(is_moving)
        self.bar.setRange(0, 1000 if card.total else 0)
        self.bar.setValue(int(1000 * card.done / card.total) if card.total else 0)
        self.bar.setAccessibleName(self.tr("Progress of {0}").format(label(card.title, 80)))
        self._show_buttons(card)
        self.check.setVisible(card.verdict is not None)
        self.check.show_verdict(card.title, card.verdict or ModelVerdict())
        self.setProperty("is_loaded", "true" if is_held else "false")
        self.style().unpolish(self)
        self.style().polish(self)

    def restyle(self) -> None:
        """Take the theme's distances anew."""
        px = self._theme.px
        self._grid.setContentsMargins(px(18), px(14), px(16), px(14))
        self._grid.setHorizontalSpacing(px(8))
        self._buttons.setSpacing(px(4))
        self._grid.setVerticalSpacing(px(5))
        self.check.restyle()

    def _facts(self, card: ModelCard) -> str:
        if card.state == "importing" and card.stage:
            return f"{card.stage}, {100 * card.done // card.total} %" if card.total else f"{card.stage}…"
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
            self._need(card),
            self.tr("licence not stated") if card.licence in ("", "not stated", "unknown") else card.licence,
        ]  # fmt: skip
        line = "  ·  ".join(part for part in parts if part)
        return f"{line}\n{_sentence(said(card.licence_note))}" if card.licence_note else line

    def _need(self, card: ModelCard) -> str:
        """What it needs; where that is much, what is free stands beside it, so that nobody has to hover."""
        if not card.memory_bytes:
            return ""
        need = self.tr("needs {0} of memory").format(gigabytes(card.memory_bytes))
        if card.fit == "yes" or card.state in ("loaded", "asleep"):
            return need
        return self.tr("{0}; {1} are free").format(need, gigabytes(card.free_bytes))

    def _show_buttons(self, card: ModelCard) -> None:
        words = {
            "available": self.tr("Download"), "fetching": self.tr("Cancel"), "importing": self.tr("Cancel"),
            "here": self.tr("Use"), "loading": self.tr("Cancel"), "loaded": self.tr("Unload"),
            "asleep": self.tr("Unload"), "missing": "",
        }[card.state]  # fmt: skip
        if card.is_embedder and card.state in ("here", "loading", "loaded", "asleep"):
            words = ""
        is_primary = card.state == "available" and card.is_starter
        self.main_button.setObjectName("primary_button" if is_primary else "plain_button")
        self.main_button.style().unpolish(self.main_button)
        self.main_button.style().polish(self.main_button)
        self.main_button.setText(words)
        self.main_button.setVisible(bool(words))
        self.main_button.setAccessibleName(f"{words} {label(card.title, 80)}")
        self.remove_button.setVisible(card.state in ("here", "missing"))
        self.settings_button.setVisible(
            card.state in ("here", "loading", "loaded", "asleep") and not card.is_embedder
        )
        self.settings_button.setAccessibleName(self.tr("Settings of {0}").format(label(card.title, 80)))
        self.remove_button.setAccessibleName(self.tr("Remove {0}").format(label(card.title, 80)))

    def _on_main(self) -> None:
        name, state = self._card.name, self._card.state
        if state == "available":
            self.get_requested.emit(name)
        elif state in ("fetching", "importing"):
            self.cancel_requested.emit(name)
        elif state == "here":
            self.load_requested.emit(name)
        elif state in ("loading", "loaded", "asleep"):
            self.unload_requested.emit()


def gigabytes(size: int) -> str:
    """Write a size as people know it: "98 MB", "1.1 GB"."""
    if size >= 1e9:
        return figures.size(size)
    return f"{figures.count(max(1, round(size / 1e6)) if size else 0)} {figures.size_unit('MB')}"


def _sentence(text: str) -> str:
    text = text.strip()
    return f"{text[:1].upper()}{text[1:]}{'' if text.endswith(('.', '!', '?')) else '.'}" if text else ""
