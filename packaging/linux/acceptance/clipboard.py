"""Put a file's text onto the clipboard of the display for ten seconds; for the tests, as a person who copies.

    clipboard.py FILE

Run with the installed Python.
"""

from __future__ import annotations

import sys
from pathlib import Path

from PySide6.QtCore import QTimer
from PySide6.QtWidgets import QApplication, QLabel

application = QApplication(sys.argv[:1])
# X11 gives the clipboard to a program with a window.
label = QLabel("copied")
label.setGeometry(0, 760, 60, 30)
label.show()
application.clipboard().setText(Path(sys.argv[1]).read_text(encoding="utf-8").strip())
QTimer.singleShot(10_000, application.quit)
application.exec()
