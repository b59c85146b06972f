"""Imports modules on a thread of its own, so that the window answers while what is behind it is being read.

Python hands the interpreter over every few milliseconds while a module is run, so the event loop is held up no longer
than one compiled library takes to be opened.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence

from PySide6.QtCore import QObject, QThread

_LONGEST_MS = 30_000


class BackgroundImport(QThread):
    """Imports `modules` in their order once started; `finished` comes on the GUI thread, then `check`."""

    def __init__(self, modules: Sequence[str], parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("import")
        self._modules = tuple(modules)
        self._error: BaseException | None = None

    def run(self) -> None:
        """Import, on the thread."""
        try:
            for module in self._modules:
                importlib.import_module(module)
        except BaseException as error:  # noqa: BLE001 - told by `check` on the thread that waits for it
            self._error = error

    def check(self) -> None:
        """Raise what an import raised."""
        if self._error is not None:
            raise self._error

    def close(self) -> None:
        """Wait for the end; an import cannot be cut short."""
        self.wait(_LONGEST_MS)
