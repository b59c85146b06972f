"""The button beside the search of chats that confines it: where, whose words, which chats, which folder, since when.

GUI thread only.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtGui import QActionGroup
from PySide6.QtWidgets import QMenu, QToolButton, QWidget

from inglenook.app.text.plain_label import plain_button_text, plain_tooltip
from inglenook.app.window.icons import icon
from inglenook.app.window.theme import Theme

_DAY_MS = 86_400_000


@dataclass(frozen=True, slots=True)
class ChosenFilter:
    """What was chosen, in the words of `storage.conversation_search.SearchFilter`; `days` 0 is any time."""

    where: str = "everywhere"
    author: str = "anyone"
    kept: str = "everywhere"
    folder: str | None = None
    days: int = 0

    @property
    def since_ms(self) -> int:
        """The time of the Unix epoch from which messages count."""
        return time.time_ns() // 1_000_000 - self.days * _DAY_MS if self.days else 0


class SearchFilterButton(QToolButton):
    """Holds `chosen`. Signals: `changed()`."""

    changed = Signal()

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self.chosen = ChosenFilter()
        self._folders: Sequence[str] = ()
        self.setObjectName("icon_button")
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self.setPopupMode(QToolButton.ToolButtonPopupMode.InstantPopup)
        self._menu = QMenu(self)
        self._menu.aboutToShow.connect(self._fill)
        self.setMenu(self._menu)
        theme.changed.connect(self._show)
        self._show()

    def set_folders(self, folders: Sequence[str]) -> None:
        """Offer these folders; one that is gone is not searched in any more."""
        self._folders = tuple(folders)
        if self.chosen.folder and self.chosen.folder not in self._folders:
            self._choose(self._with(folder=None))

    def words(self) -> str:
        """Say what the search is confined to; "" for everything."""
        parts = [words for group in self._groups() for words, chosen in group if chosen == self.chosen]
        usual = [words for group in self._groups() for words, chosen in group[:1]]
        return ", ".join(part for part in parts if part not in usual)

    def clear(self) -> None:
        """Search everything again."""
        self._choose(ChosenFilter())

    def fill(self) -> QMenu:
        """Make the menu for what is chosen now, and return it."""
        self._fill()
        return self._menu

    def _groups(self) -> list[list[tuple[str, ChosenFilter]]]:
        """Return the choices; the first of each group confines nothing."""
        everywhere = [
            (self.tr("Titles and messages"), self._with(where="everywhere")),
            (self.tr("Titles only"), self._with(where="titles")),
            (self.tr("Messages only"), self._with(where="messages")),
        ]
        authors = [
            (self.tr("Questions and answers"), self._with(author="anyone")),
            (self.tr("What I wrote"), self._with(author="user")),
            (self.tr("What was answered"), self._with(author="assistant")),
        ]
        kept = [
            (self.tr("All chats"), self._with(kept="everywhere")),
            (self.tr("Without the archive"), self._with(kept="chats")),
            (self.tr("Archive only"), self._with(kept="archive")),
            (self.tr("Pinned only"), self._with(kept="pinned")),
        ]
        times = [
            (self.tr("Any time"), self._with(days=0)),
            (self.tr("Last 7 days"), self._with(days=7)),
            (self.tr("Last 30 days"), self._with(days=30)),
            (self.tr("Last year"), self._with(days=365)),
        ]
        folders = [(self.tr("All folders"), self._with(folder=None))]
        folders += [(name, self._with(folder=name)) for name in self._folders]
        return (
            [everywhere, authors, kept, times, folders]
            if self._folders
            else [everywhere, authors, kept, times]
        )

    def _with(self, **changes: object) -> ChosenFilter:
        from dataclasses import replace

        return replace(self.chosen, **changes)  # type: ignore[arg-type]  # names and types of its fields

    def _fill(self) -> None:
        self._menu.clear()
        for number, group in enumerate(self._groups()):
            if number:
                self._menu.addSeparator()
            exclusive = QActionGroup(self._menu)
            for words, chosen in group:
                action = self._menu.addAction(plain_button_text(words), self._chooser(chosen))
                action.setCheckable(True)
                action.setChecked(chosen == self.chosen)
                exclusive.addAction(action)

    def _chooser(self, chosen: ChosenFilter) -> Callable[[], None]:
        return lambda: self._choose(chosen)

    def _choose(self, chosen: ChosenFilter) -> None:
        if chosen != self.chosen:
            self.chosen = chosen
            self._show()
            self.changed.emit()

    def _show(self) -> None:
        words = self.words()
        name = self.tr("Search only: {0}").format(words) if words else self.tr("Confine the search")
        self.setAccessibleName(name)
        self.setToolTip(plain_tooltip(name))
        colours = self._theme.colours
        self.setIcon(icon("filter", colours.accent if words else colours.muted))
        self.setIconSize(QSize(self._theme.px(16), self._theme.px(16)))
