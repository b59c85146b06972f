"""The pages in the centre of the window: each is registered once, under a name, with its title and where the keyboard goes.

The conversation is the page that all others are closed to. An action of the table in `actions.py` whose `page` is that
name shows and closes it. GUI thread only.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QStackedWidget, QWidget

CHAT = "chat"


@dataclass(frozen=True, slots=True)
class _Page:
    widget: QWidget
    title: str
    first: Callable[[], QWidget]


class Pages(QStackedWidget):
    """The stack of pages. Signals: `shown(name)` after another page, or the same once more, came to the front."""

    shown = Signal(str)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._pages: dict[str, _Page] = {}

    def add(
        self, name: str, page: QWidget, title: str = "", first: Callable[[], QWidget] | None = None
    ) -> None:
        """Register a page; `first` says which of its widgets the keyboard goes to, by default the page itself.

        A page with a signal `close_requested` is closed by it.

        Raises:
            ValueError: there is one of that name.
        """
        if name in self._pages:
            raise ValueError(f"there is a page {name!r} already")
        self._pages[name] = _Page(page, title, first or (lambda: page))
        self.addWidget(page)
        close_requested = getattr(page, "close_requested", None)
        if close_requested is not None:
            close_requested.connect(self._show_chat)

    def __contains__(self, name: str) -> bool:
        return name in self._pages

    @property
    def name(self) -> str:
        """The name of the page at the front."""
        return next(name for name, page in self._pages.items() if page.widget is self.currentWidget())

    @property
    def title(self) -> str:
        """The title of the page at the front."""
        return self._pages[self.name].title

    @property
    def first(self) -> QWidget:
        """The widget of the front page that the keyboard goes to."""
        return self._pages[self.name].first()

    def show_page(self, name: str) -> None:
        """Bring a page to the front and the keyboard to it."""
        self.setCurrentWidget(self._pages[name].widget)
        self.shown.emit(name)
        self.first.setFocus(Qt.FocusReason.OtherFocusReason)

    def toggle(self, name: str) -> None:
        """Bring a page to the front, or where it is there, go back to the conversation."""
        widget = self._pages[name].widget
        if self.currentWidget() is not widget:
            self.show_page(name)
        elif (close_requested := getattr(widget, "close_requested", None)) is not None:
            close_requested.emit()
        else:
            self.show_page(CHAT)

    def _show_chat(self) -> None:
        self.show_page(CHAT)
