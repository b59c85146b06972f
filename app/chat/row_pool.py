"""The widgets of the rows in sight, kept for reuse when their row leaves it."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from PySide6.QtWidgets import QApplication, QWidget

from inglenook.app.chat.message_widget import MessageWidget


class RowPool:
    """Widgets by row; `make` builds one when none is free, `home` takes the focus of one that leaves."""

    def __init__(self, make: Callable[[], MessageWidget], home: QWidget) -> None:
        self._make = make
        self._home = home
        self._bound: dict[int, MessageWidget] = {}
        self._free: list[MessageWidget] = []

    def __contains__(self, row: int) -> bool:
        return row in self._bound

    def __iter__(self) -> Iterator[tuple[int, MessageWidget]]:
        """Rows and their widgets, from the top down."""
        return iter(sorted(self._bound.items()))

    def take(self, row: int) -> MessageWidget:
        """Return the widget of a row, a free or new one if it has none."""
        if row not in self._bound:
            self._bound[row] = self._free.pop() if self._free else self._make()
        return self._bound[row]

    def keep(self, first: int, last: int) -> None:
        """Release every row outside these two."""
        for row in [row for row in self._bound if not first <= row <= last]:
            self._release(self._bound.pop(row))

    def shift(self, end: int, new_end: int) -> None:
        """Follow rows: what ended at `end` now ends at `new_end`, and the rows after it moved along."""
        bound = {}
        for row, widget in self._bound.items():
            if row >= end:
                bound[row + new_end - end] = widget
            elif row < new_end:
                bound[row] = widget
            else:
                self._release(widget)
        self._bound = bound

    def restyle(self) -> None:
        """Let every widget take the theme anew."""
        for widget in [*self._bound.values(), *self._free]:
            widget.restyle()

    def chain_tabs(self, first: QWidget, last: QWidget) -> None:
        """Let Tab go from `first` through the controls in reading order to `last`."""
        for _, widget in self:
            for control in widget.controls():
                QWidget.setTabOrder(first, control)
                first = control
        QWidget.setTabOrder(first, last)

    def _release(self, widget: MessageWidget) -> None:
        focused = QApplication.focusWidget()
        if focused is not None and widget.isAncestorOf(focused):
            self._home.setFocus()
        widget.hide()
        self._free.append(widget)
