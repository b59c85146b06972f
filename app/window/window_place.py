"""Where the window stands and how it is divided, as text that is kept from one start to the next. GUI thread only."""

from __future__ import annotations

from collections.abc import Mapping

from PySide6.QtCore import QByteArray
from PySide6.QtWidgets import QApplication, QMainWindow, QSplitter, QWidget


def saved_place(window: QMainWindow, panes: QSplitter, sidebar: QWidget) -> dict[str, str]:
    """Return geometry and panes as text, for `put_back`."""
    return {
        "geometry": bytes(window.saveGeometry().toBase64().data()).decode(),
        "panes": ",".join(map(str, panes.sizes())),
        "sidebar": str(int(not sidebar.isHidden())),
    }


def put_back(window: QMainWindow, panes: QSplitter, sidebar: QWidget, state: Mapping[str, str]) -> bool:
    """Put the window back as it was; what is missing or damaged is left as it is. Say whether it has its place again."""
    is_restored = False
    geometry = state.get("geometry", "")
    if geometry:
        is_restored = window.restoreGeometry(QByteArray.fromBase64(geometry.encode()))
        _come_on_screen(window)
    sizes = [int(size) for size in state.get("panes", "").split(",") if size.isdigit()]
    if len(sizes) == 3 and sizes[0] and sizes[1]:
        panes.setSizes([sizes[0], sizes[1] + sizes[2], 0])
    sidebar.setVisible(state.get("sidebar") != "0")
    return is_restored


def _come_on_screen(window: QMainWindow) -> None:
    """Move to a screen that exists, where most of the window would be out of sight."""
    frame = window.frameGeometry()
    for screen in QApplication.screens():
        seen = frame.intersected(screen.availableGeometry())
        if 2 * seen.width() * seen.height() > frame.width() * frame.height():
            return
    place = QApplication.primaryScreen().availableGeometry()
    window.resize(window.size().boundedTo(place.size()))
    frame.setSize(window.size())
    frame.moveCenter(place.center())
    window.move(frame.topLeft())
