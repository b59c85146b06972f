"""A page of the centre whose widgets are made when it is first looked at, so that the window's start does not pay."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import QVBoxLayout, QWidget

P = TypeVar("P", bound=QWidget)


class LatePage(QWidget, Generic[P]):
    """Holds the page that `make` returns, once there is one; `fill` is called when it is there.

    Signals: `close_requested()`, to be connected with the page's own.
    """

    close_requested = Signal()

    def __init__(self, make: Callable[[], P], fill: Callable[[], object] = lambda: None) -> None:
        super().__init__()
        self._make, self._fill = make, fill
        self._page: P | None = None
        self.setObjectName("page")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self._layout = QVBoxLayout(self)
        self._layout.setContentsMargins(0, 0, 0, 0)

    @property
    def is_made(self) -> bool:
        """Whether the page is there."""
        return self._page is not None

    @property
    def page(self) -> P:
        """The page, made at the first use."""
        if self._page is None:
            self._page = self._make()
            self._layout.addWidget(self._page)
            self._fill()
        return self._page

    def showEvent(self, event: QShowEvent) -> None:
        _ = self.page
        super().showEvent(event)
