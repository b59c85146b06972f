"""Starting the window: what is checked before Qt, the first paint, then the objects behind it, and an orderly end.

The window is shown from what `window.json` kept, before anything of storage or engine is imported; those come when it
has been painted. One profile, one window: a second start raises the first and ends.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import signal
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from types import FrameType, TracebackType
from typing import TYPE_CHECKING

from inglenook.app.errors import AppError
from inglenook.app.paths import UserFolders, ensure, user_folders
from inglenook.app.single_instance import SingleInstance
from inglenook.app.window.screen import screen_fault
from inglenook.engine.private_files import replace_file

if TYPE_CHECKING:
    from PySide6.QtCore import QObject
    from PySide6.QtWidgets import QApplication

    from inglenook.app.application import Application
    from inglenook.app.window.background_import import BackgroundImport
    from inglenook.app.window.main_window import MainWindow
    from inglenook.app.window.window_join import WindowJoin

logger = logging.getLogger(__name__)

STATE_FILE = "window.json"
_LONGEST_STATE = 65_536
_PAINT_PATIENCE_MS = 500
# The heavy ones first; the last two bring all that is behind the window.
_BEHIND_THE_WINDOW = (
    "msgspec",
    "numpy",
    "inglenook.engine.client",
    "inglenook.app.application",
    "inglenook.app.window.window_join",
)


def run_window() -> int:
    """Open the window and stay until it is closed; returns the exit status.

    Raises:
        AppError: there is no screen, no Qt, or no folder to keep things in.
    """
    started_s = time.perf_counter()
    if fault := screen_fault(os.environ):
        raise AppError(fault)
    folders = user_folders()
    instance = SingleInstance(folders.data)
    if not instance.acquire():
        rung = instance.ring()
        print(
            "Inglenook is open already; its window comes to the front."
            if rung
            else "Inglenook is open already."
        )
        return 0
    try:
        from PySide6.QtWidgets import QApplication
    except ImportError as error:
        instance.close()
        raise AppError(
            f"The window needs PySide6, which cannot be loaded here: {error}. 'inglenook ask' works without it."
        ) from error
    try:
        return _Session(QApplication(sys.argv[:1]), folders, instance, started_s).run()
    finally:
        instance.close()


class _Session:
    """One run of the window."""

    def __init__(
        self, qt: QApplication, folders: UserFolders, instance: SingleInstance, started_s: float
    ) -> None:
        from PySide6.QtCore import QTimer

        from inglenook.app.translations.catalogue import speak
        from inglenook.app.window.main_window import MainWindow
        from inglenook.app.window.theme import Contrast, Scheme, Theme

        self._qt, self._folders, self._instance = qt, folders, instance
        self._import: BackgroundImport | None = None
        self._application: Application | None = None
        self._join: WindowJoin | None = None
        qt.setApplicationName("inglenook")
        qt.setApplicationDisplayName("Inglenook")
        qt.setDesktopFileName("inglenook")
        state = read_state(folders.config / STATE_FILE)
        schemes: dict[str, Scheme] = {"light": "light", "dark": "dark"}
        # Before the first widget, which takes its words when it is made.
        speak(qt, state.get("language", "system"))
        contrasts: dict[str, Contrast] = {"usual": "usual", "high": "high"}
        theme = Theme(
            qt,
            scheme=schemes.get(state.get("scheme", ""), "system"),
            scale=_scale(state.get("scale", "1")),
            contrast=contrasts.get(state.get("contrast", ""), "system"),
        )
        self._window = MainWindow(theme)
        self._window.language = state.get("language", "system")
        self._is_first_start = not state
        if state:
            self._window.restore_state(state)
        else:
            self._window.show_welcome()
        self._window.chat.composer.set_unavailable(self._window.tr("Starting…"))
        self._signals = _listen_for_signals(self._window)
        self._started_s = started_s
        self._window.painted.connect(self._prepare)
        # A window that starts minimised is not painted.
        QTimer.singleShot(_PAINT_PATIENCE_MS, self._window, self._prepare)
        self._window.show()

    def run(self) -> int:
        """Run the event loop, then save and close everything."""
        previous = sys.excepthook
        sys.excepthook = self._tell_unexpected
        try:
            return int(self._qt.exec())
        finally:
            sys.excepthook = previous
            write_state(self._folders.config, self._window.save_state())
            if self._import is not None:
                self._import.close()
            if self._application is not None:
                self._application.close()

    def _prepare(self) -> None:
        """Import what is behind the window, once; the window answers meanwhile."""
        if self._import is not None:
            return
        logger.info("the window stood after %.3f s", time.perf_counter() - self._started_s)
        from inglenook.app.window.background_import import BackgroundImport

        self._import = BackgroundImport(_BEHIND_THE_WINDOW, self._window)
        self._import.finished.connect(self._fill)
        self._import.start()

    def _fill(self) -> None:
        """Make what is behind the window."""
        assert self._import is not None
        self._import.check()
        from inglenook.app.application import Application
        from inglenook.app.window.window_join import WindowJoin
        from inglenook.engine.model_doctor.process import first_look

        try:
            self._application = Application(self._folders, instance=self._instance, look=first_look)
        except AppError as error:
            self._tell(error)
            return
        self._join = WindowJoin(self._window, self._application, is_first_start=self._is_first_start)
        self._application.start()

    def _tell_unexpected(
        self, kind: type[BaseException], error: BaseException, trace: TracebackType | None
    ) -> None:
        sys.__excepthook__(kind, error, trace)
        if issubclass(kind, KeyboardInterrupt):
            self._window.close()
        elif self._join is not None:
            self._join.tell_unexpected(error)

    def _tell(self, error: AppError) -> None:
        from inglenook.app.window.banner import BannerLine

        self._window.banner.show_line("start", BannerLine(str(error), "error", is_dismissable=False))


def read_state(path: Path) -> dict[str, str]:
    """Read how the window looked; {} for none or a damaged one, which costs nothing but that."""
    try:
        with open(path, "rb") as file:
            stored = json.loads(file.read(_LONGEST_STATE))
    except (OSError, ValueError):
        return {}
    if not isinstance(stored, dict):
        return {}
    return {str(key): value for key, value in stored.items() if isinstance(value, str)}


def write_state(folder: Path, state: Mapping[str, str]) -> None:
    """Keep how the window looks; where that cannot be written, it is not kept."""
    with contextlib.suppress(AppError, OSError):
        replace_file(ensure(folder) / STATE_FILE, json.dumps(dict(state), indent=1).encode())


def _scale(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return 1.0


def _listen_for_signals(window: MainWindow) -> QObject:
    """Close the window on SIGINT, SIGTERM, SIGHUP: Qt's loop gives Python no chance to see them, a pipe does."""
    from PySide6.QtCore import QSocketNotifier

    reading, writing = os.pipe()
    for end in (reading, writing):
        os.set_blocking(end, False)
        os.set_inheritable(end, False)
    signal.set_wakeup_fd(writing, warn_on_full_buffer=False)

    def note(_number: int, _frame: FrameType | None) -> None:
        return

    endings = {signal.SIGINT, signal.SIGTERM}
    hang_up = getattr(signal, "SIGHUP", None)  # POSIX has it; under nohup it is ignored
    if hang_up is not None and signal.getsignal(hang_up) is not signal.SIG_IGN:
        endings.add(hang_up)
    for number in endings:
        signal.signal(number, note)
    notifier = QSocketNotifier(reading, QSocketNotifier.Type.Read, window)

    def close() -> None:
        with contextlib.suppress(BlockingIOError):
            numbers = os.read(reading, 64)
            if endings.intersection(numbers):
                window.close()

    notifier.activated.connect(close)
    return notifier
