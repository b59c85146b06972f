"""The window for a screen reader's test: the real one, over a profile of its own, with an engine that answers by itself.

python tests/app/screen_reader_window.py FOLDER     runs until it is ended
"""

from __future__ import annotations

import sys
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TESTS / "bench"), str(TESTS / "engine")]

from fake_client import Asked, FakeClient  # noqa: E402
from PySide6.QtWidgets import QApplication  # noqa: E402
from window_desk import put_model  # noqa: E402

from inglenook.app.application import Application  # noqa: E402
from inglenook.app.paths import UserFolders  # noqa: E402
from inglenook.app.window.main_window import MainWindow  # noqa: E402
from inglenook.app.window.theme import Theme  # noqa: E402
from inglenook.app.window.window_join import WindowJoin  # noqa: E402

ANSWER = "The capital of France is Paris."


def answer(asked: Asked) -> None:
    """Answer at once."""
    asked.say(ANSWER, 1, 2, 3)
    asked.finish()


def main() -> int:
    """Show the window."""
    folder = Path(sys.argv[1])
    put_model(folder)
    qt = QApplication(["inglenook"])
    qt.setApplicationName("inglenook")
    window = MainWindow(Theme(qt, scheme="light"))
    folders = UserFolders(*(folder / name for name in ("data", "config", "state", "cache")))
    application = Application(folders, client=FakeClient(answers=answer))  # type: ignore[arg-type]
    WindowJoin(window, application)
    window.show()
    application.start()
    try:
        return int(qt.exec())
    finally:
        application.close()


if __name__ == "__main__":
    sys.exit(main())
