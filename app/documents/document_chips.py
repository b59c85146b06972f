"""The chips above the composer: which documents the next question is about, and why one of them is not used.

GUI thread only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QHBoxLayout, QPushButton, QWidget

from inglenook.app.text.plain_label import PlainLabel, button, plain_tooltip
from inglenook.app.text.rich_text import label
from inglenook.app.translations.figures import numbered
from inglenook.app.window.theme import Theme

MAX_CHIPS = 3
_NAME_CHARS = 28
_REASON_CHARS = 60


@dataclass(frozen=True, slots=True)
class DocumentChip:
    """A ticked document. `reason` says why it is not used, or not yet; "" where it is."""

    id: int
    name: str
    reason: str = ""


class DocumentChips(QWidget):
    """A row of chips, those that are not used first; hidden without any. Signals: `chosen(id)` when one is pressed."""

    chosen = Signal(int)

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._shown: tuple[DocumentChip, ...] = ()
        self._made: list[QPushButton] = []
        self._row = QHBoxLayout(self)
        self._rest = PlainLabel(look="small", parent=self)
        self._rest.setWordWrap(False)
        self._rest.hide()
        theme.changed.connect(self._restyle)
        self._restyle()
        self.hide()

    @property
    def texts(self) -> list[str]:
        """What the chips say, in order."""
        return [chip.text() for chip in self._made]

    def set_chips(self, chips: Sequence[DocumentChip]) -> None:
        """Show these."""
        chips = sorted(chips, key=lambda chip: not chip.reason)
        if tuple(chips) == self._shown:
            return
        self._shown = tuple(chips)
        while self._row.count():
            self._row.takeAt(0)
        for made in self._made:
            made.deleteLater()
        self._made = [self._make(chip) for chip in chips[:MAX_CHIPS]]
        for made in self._made:
            self._row.addWidget(made)
        rest = len(chips) - MAX_CHIPS
        self._rest.setText(numbered("and {0} more", rest))
        self._rest.setVisible(rest > 0)
        if rest > 0:
            self._row.addWidget(self._rest)
        self._row.addStretch(1)
        self.setVisible(bool(chips))

    def _make(self, chip: DocumentChip) -> QPushButton:
        name = label(chip.name, _NAME_CHARS)
        reason = label(chip.reason, 400)
        text = self.tr("{0}: {1}").format(name, label(chip.reason, _REASON_CHARS)) if reason else name
        made = button(text, "chip")
        made.setProperty("verified", "false" if reason else "true")
        full = label(chip.name, 300)
        said = (
            self.tr("{0} is not used. {1}").format(full, reason)
            if reason
            else self.tr("The next question is about {0}. Press to leave it out.").format(full)
        )
        made.setToolTip(plain_tooltip(said))
        made.setAccessibleName(said)
        made.clicked.connect(lambda: self.chosen.emit(chip.id))
        return made

    def _restyle(self) -> None:
        px = self._theme.px
        self._row.setContentsMargins(0, px(2), 0, px(2))
        self._row.setSpacing(px(6))
