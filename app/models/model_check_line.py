"""The doctor's line on a model's card: the verdict, its findings on demand, and a button to examine again.

The findings are lines that can be selected, shown and hidden by a button, so that the keyboard reaches all. GUI thread
only.
"""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QHBoxLayout, QVBoxLayout, QWidget

from inglenook.app.models.model_verdict import ModelVerdict
from inglenook.app.text.plain_label import Look, PlainLabel, button, plain_button_text
from inglenook.app.text.rich_text import label
from inglenook.app.translations.sentences import said
from inglenook.app.window.theme import Theme

_LOOKS: dict[str, Look] = {"none": "small", "green": "small", "amber": "caution", "red": "error"}


class ModelCheckLine(QWidget):
    """Shows a `ModelVerdict`. Signals: `examine_requested()`; `stop_requested()` while the model is being examined."""

    examine_requested = Signal()
    stop_requested = Signal()

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._verdict = ModelVerdict()
        self._title = ""
        self.words = PlainLabel(look="small", is_selectable=True)
        self.details_button = button("", "quiet_button")
        self.details_button.setCheckable(True)
        self.details_button.toggled.connect(self._show_findings)
        self.examine_button = button("", "quiet_button")
        self.examine_button.clicked.connect(self._on_examine)
        self._head = QHBoxLayout()
        self._head.addWidget(self.words, 1)
        for control in (self.details_button, self.examine_button):
            self._head.addWidget(control, 0, Qt.AlignmentFlag.AlignTop)
        self._layout = QVBoxLayout(self)
        self._layout.addLayout(self._head)
        self._lines: list[PlainLabel] = []
        self.restyle()

    @property
    def findings(self) -> list[str]:
        """The findings as they are shown; [] while they are hidden."""
        return [line.text() for line in self._lines if not line.isHidden()]

    def show_verdict(self, title: str, verdict: ModelVerdict) -> None:
        """Show what is known of the model of that title."""
        self._title, self._verdict = label(title, 80), verdict
        words = said(verdict.problem or verdict.words) or self.tr("Not examined yet")
        if verdict.is_running:
            words = self.tr("Is being examined…")
        self.words.setText(words)
        self.words.set_look(_LOOKS["none" if verdict.is_running else verdict.light])
        self.words.setAccessibleName(self.tr("Soundness of {0}: {1}").format(self._title, words))
        examine = self.tr("Stop examining") if verdict.is_running else self.tr("Examine")
        self.examine_button.setText(plain_button_text(examine))
        self.examine_button.setAccessibleName(f"{examine} {self._title}")
        self.details_button.setVisible(bool(verdict.findings))
        if not verdict.findings:
            self.details_button.setChecked(False)
        self._show_findings()

    def open_findings(self) -> None:
        """Show the findings and give them the keyboard."""
        if self._verdict.findings:
            self.details_button.setChecked(True)
            self.details_button.setFocus(Qt.FocusReason.OtherFocusReason)

    def restyle(self) -> None:
        """Take the theme's distances anew."""
        self._layout.setContentsMargins(0, 0, 0, 0)
        self._layout.setSpacing(self._theme.px(4))
        self._head.setSpacing(self._theme.px(8))

    def _show_findings(self) -> None:
        is_open = self.details_button.isChecked()
        words = self.tr("Hide findings") if is_open else self.tr("Show findings")
        self.details_button.setText(plain_button_text(words))
        self.details_button.setAccessibleName(self.tr("{0} on {1}").format(words, self._title))
        shown = self._verdict.findings if is_open else ()
        while len(self._lines) < len(shown):
            line = PlainLabel(look="small", is_selectable=True)
            self._lines.append(line)
            self._layout.addWidget(line)
        for place, line in enumerate(self._lines):
            line.setText(said(shown[place]) if place < len(shown) else "")
            line.setVisible(place < len(shown))

    def _on_examine(self) -> None:
        if self._verdict.is_running:
            self.stop_requested.emit()
        else:
            self.examine_requested.emit()
