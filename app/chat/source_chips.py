"""The sources under a reply: a chip for each place that it cites, and the passages that were only found, folded away."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from PySide6.QtCore import QObject, QRect, Qt, Signal
from PySide6.QtWidgets import QPushButton, QWidget

from inglenook.app.chat.message_list_model import Citation
from inglenook.app.text.rich_text import label
from inglenook.app.translations.figures import numbered
from inglenook.app.window.theme import Theme


class SourceChips(QObject):
    """The chips of one row, made in `parent`.

    Signals: `activated(number)`; `folded()` when the uncited ones were shown or hidden, which takes other room.
    """

    activated = Signal(int)
    folded = Signal()

    def __init__(self, theme: Theme, parent: QWidget) -> None:
        super().__init__(parent)
        self._theme, self._parent = theme, parent
        self._citations: tuple[Citation, ...] | None = None
        self._cited: list[QPushButton] = []
        self._others: list[QPushButton] = []
        self._is_visible = self.is_unfolded = False
        self.toggle = chip_button(parent, "quiet_button", "")
        self.toggle.clicked.connect(self._toggle)

    def set_citations(self, citations: tuple[Citation, ...]) -> None:
        """Make the chips of a message."""
        if citations == self._citations:
            return
        self._citations = citations
        self.is_unfolded = False
        self._make()

    def restyle(self) -> None:
        """Take the theme anew."""
        self._make()

    def set_visible(self, is_visible: bool) -> None:
        """Show the chips that are to be seen now, or none."""
        self._is_visible = is_visible
        for chip in self._cited:
            chip.setVisible(is_visible)
        for chip in self._others:
            chip.setVisible(is_visible and self.is_unfolded)
        self.toggle.setVisible(is_visible and bool(self._others))

    def controls(self) -> list[QPushButton]:
        """The buttons in sight, in reading order."""
        return [button for button in (*self._cited, self.toggle, *self._others) if not button.isHidden()]

    def fit(self, left: int, width: int, top: int) -> int:
        """Place what is in sight; return where it ends."""
        shown = self.controls()
        if not shown:
            return top
        area = QRect(left, top + self._theme.px(10), width, 0)
        is_mirrored = self._parent.layoutDirection() == Qt.LayoutDirection.RightToLeft
        return _flow(shown, area, self._theme.px(6), is_mirrored=is_mirrored)

    def _make(self) -> None:
        for chip in (*self._cited, *self._others):
            chip.deleteLater()
        citations = self._citations or ()
        self._cited = [self._chip(citation) for citation in citations if citation.is_cited]
        self._others = [self._chip(citation) for citation in citations if not citation.is_cited]
        self._name_toggle()
        self.set_visible(self._is_visible)

    def _chip(self, citation: Citation) -> QPushButton:
        title, page = label(citation.title, 48), label(citation.page, 16)
        words = self.tr("{0}, page {1}").format(title, page) if page else title
        number = f"{citation.number}  " if citation.is_cited else ""
        chip = chip_button(self._parent, "chip", f"{number}{words}".replace("&", "&&"))
        chip.setFont(self._theme.font(0.86))
        chip.setProperty("verified", "true" if citation.verified else "false")
        if citation.is_cited:
            state = "" if citation.verified else ", " + self.tr("not found word for word")
            chip.setAccessibleName(self.tr("Source {0}: {1}{2}").format(citation.number, words, state))
        else:
            chip.setAccessibleName(self.tr("Found but not used: {0}").format(words))
        chip.setAccessibleDescription(label(citation.quote, 300))
        chip.clicked.connect(partial(self._activate, citation.number))
        return chip

    def _activate(self, number: int, _is_checked: bool = False) -> None:
        self.activated.emit(number)

    def _toggle(self) -> None:
        self.is_unfolded = not self.is_unfolded
        self._name_toggle()
        self.set_visible(self._is_visible)
        self.folded.emit()

    def _name_toggle(self) -> None:
        count = len(self._others)
        words = (
            self.tr("1 more passage was found")
            if count == 1
            else numbered("{0} more passages were found", count)
        )
        self.toggle.setText(words + ("  ▴" if self.is_unfolded else "  ▾"))
        what = self.tr("hide them") if self.is_unfolded else self.tr("show them")
        self.toggle.setAccessibleName(f"{words}, {what}")
        self.toggle.setFont(self._theme.font(0.86))


def chip_button(parent: QWidget, name: str, text: str) -> QPushButton:
    """Make a button that a row shows when it needs it."""
    button = QPushButton(text, parent)
    button.setObjectName(name)
    button.setAutoDefault(False)
    button.setCursor(Qt.CursorShape.PointingHandCursor)
    button.hide()
    return button


def _flow(widgets: Sequence[QWidget], area: QRect, spacing: int, *, is_mirrored: bool) -> int:
    """Set widgets beside each other, going on in the next line where the width ends; return where they end."""
    x, y, line_height = area.left(), area.top(), 0
    for widget in widgets:
        size = widget.sizeHint()
        width = min(size.width(), area.width())
        if line_height and x + width > area.left() + area.width():
            x, y, line_height = area.left(), y + line_height + spacing, 0
        place = area.right() + area.left() + 1 - x - width if is_mirrored else x
        widget.setGeometry(place, y, width, size.height())
        x += width + spacing
        line_height = max(line_height, size.height())
    return y + line_height
