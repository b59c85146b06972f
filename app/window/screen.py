"""Whether there is a screen to open the window on, asked before Qt is: Qt ends the process where there is none.

The same libraries are asked that Qt's platform plugins connect with, so a display that is gone, a host that does not
answer and a key that is refused are all found. Linux only; elsewhere the system always has a screen for a program.
"""

from __future__ import annotations

import ctypes
import sys
import threading
from collections.abc import Callable, Mapping

_PATIENCE_S = 5.0
_FOR_X = {"libxcb.so.1": "libxcb1", "libxcb-cursor.so.0": "libxcb-cursor0"}
_INSTEAD = (
    "Start Inglenook from a desktop session, or use 'inglenook ask', 'inglenook models' and 'inglenook doctor' in this "
    "terminal."
)


def screen_fault(environment: Mapping[str, str]) -> str:
    """Say why no window can be opened here, in one sentence and what to do; "" where one can."""
    platform = environment.get("QT_QPA_PLATFORM", "")
    is_free = not platform  # Qt then takes what answers
    if not sys.platform.startswith("linux") or not (is_free or "xcb" in platform or "wayland" in platform):
        return ""
    x = environment.get("DISPLAY", "") if is_free or "xcb" in platform else ""
    wayland = environment.get("WAYLAND_DISPLAY", "") if is_free or "wayland" in platform else ""
    if not x and not wayland:
        return (
            f"No screen was found: neither DISPLAY nor WAYLAND_DISPLAY names one that can be used. {_INSTEAD}"
        )
    if wayland and _answers(lambda: _connects_to_wayland(wayland)):
        return ""
    missing = next((name for name in _FOR_X if not _is_there(name)), "") if x else ""
    if missing:
        return (
            f"The window needs the system's library {missing}, which is not installed (Debian and Ubuntu have it as "
            f"{_FOR_X[missing]}). Install it, or use 'inglenook ask' in this terminal."
        )
    if x and _answers(lambda: _connects_to_x(x)):
        return ""
    named = " and ".join(
        f"{name} is {value!r}" for name, value in (("WAYLAND_DISPLAY", wayland), ("DISPLAY", x)) if value
    )
    return f"No screen was found: {named}, but nothing answers there. {_INSTEAD}"


def _answers(connects: Callable[[], bool]) -> bool:
    """Whether a connection comes about within some seconds; a host that is away would be waited for for minutes."""
    answers: list[bool] = []
    thread = threading.Thread(target=lambda: answers.append(connects()), daemon=True)
    thread.start()
    thread.join(_PATIENCE_S)
    return answers == [True]


def _connects_to_x(display: str) -> bool:
    library = ctypes.CDLL("libxcb.so.1")
    library.xcb_connect.restype = ctypes.c_void_p
    connection = ctypes.c_void_p(library.xcb_connect(display.encode(errors="surrogateescape"), None))
    try:
        return bool(library.xcb_connection_has_error(connection) == 0)
    finally:
        library.xcb_disconnect(connection)


def _connects_to_wayland(display: str) -> bool:
    try:
        library = ctypes.CDLL("libwayland-client.so.0")
    except OSError:
        return False
    library.wl_display_connect.restype = ctypes.c_void_p
    connection = library.wl_display_connect(display.encode(errors="surrogateescape"))
    if not connection:
        return False
    library.wl_display_disconnect(ctypes.c_void_p(connection))
    return True


def _is_there(library: str) -> bool:
    try:
        ctypes.CDLL(library)
    except OSError:
        return False
    return True
