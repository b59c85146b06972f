"""A file on a desktop, for the tests: a small window whose square can be dragged into another program.

    drag_source.py FILE

Run with the installed Python. It stands at the left edge of the screen; press on it, move, and let go over the target.
"""

from __future__ import annotations

import sys
from pathlib import Path

from PySide6.QtCore import QMimeData, Qt, QTimer, QUrl
from PySide6.QtGui import QDrag, QMouseEvent
from PySide6.QtWidgets import QApplication, QLabel


class File(QLabel):
    """The square; it ends the program some seconds after the drag."""

    def __init__(self, path: Path) -> None:
        super().__init__("FILE")
        self._path = path
        self.setWindowFlags(Qt.WindowType.X11BypassWindowManagerHint | Qt.WindowType.FramelessWindowHint)
        self.setGeometry(0, 700, 80, 80)

    def mouseMoveEvent(self, event: QMouseEvent) -> None:  # noqa: N802  # Qt's own name
        """Begin the drag, which ends where the button is let go."""
        drag = QDrag(self)
        data = QMimeData()
        data.setUrls([QUrl.fromLocalFile(str(self._path))])
        drag.setMimeData(data)
        print(
            "dropped" if drag.exec(Qt.DropAction.CopyAction) != Qt.DropAction.IgnoreAction else "refused",
            flush=True,
        )
        # The target asks for the data only after the drag has ended here.
        QTimer.singleShot(5_000, QApplication.quit)


application = QApplication(sys.argv[:1])
file = File(Path(sys.argv[1]))
file.show()
QTimer.singleShot(60_000, application.quit)
application.exec()
