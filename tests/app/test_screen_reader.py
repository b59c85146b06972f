"""A screen reader over the real accessibility bus: the window is found, asked and heard from another process (A04)."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from ctypes.util import find_library
from pathlib import Path

import pytest
from x_server import x_server

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

HERE = Path(__file__).parent
SYSTEM_PYTHON = "/usr/bin/python3"
_BINDINGS = "import gi; gi.require_version('Atspi', '2.0'); from gi.repository import Atspi"


def missing() -> list[str]:
    """Return the Debian packages that the test needs and that are not here."""
    has_bindings = Path(SYSTEM_PYTHON).exists() and (
        subprocess.run([SYSTEM_PYTHON, "-c", _BINDINGS], capture_output=True).returncode == 0
    )
    found = {
        "xvfb": shutil.which("Xvfb"),
        "dbus": shutil.which("dbus-run-session"),
        "at-spi2-core": Path("/usr/share/dbus-1/services/org.a11y.Bus.service").exists(),
        "libxcb-cursor0": find_library("xcb-cursor"),
        "python3-gi and gir1.2-atspi-2.0": has_bindings,
    }
    return [package for package, is_here in found.items() if not is_here]


@pytest.fixture
def heard(tmp_path: Path) -> Iterator[dict[str, object]]:
    """What the reader said, of a window on an X server and a message bus of their own."""
    if lacking := missing():
        pytest.skip(f"not installed here: {', '.join(lacking)}")
    with x_server() as display:
        environment = {**os.environ, "DISPLAY": display, "QT_QPA_PLATFORM": "xcb"}
        environment |= {"QT_LINUX_ACCESSIBILITY_ALWAYS_ON": "1", "XDG_RUNTIME_DIR": str(tmp_path)}
        for name in ("WAYLAND_DISPLAY", "AT_SPI_BUS_ADDRESS", "DBUS_SESSION_BUS_ADDRESS"):
            environment.pop(name, None)
        both = (
            f"'{sys.executable}' '{HERE / 'screen_reader_window.py'}' '{tmp_path / 'profile'}' & window=$!; "
            f"'{SYSTEM_PYTHON}' '{HERE / 'screen_reader.py'}'; status=$?; kill $window; wait $window; exit $status"
        )
        done = subprocess.run(
            ["dbus-run-session", "--", "sh", "-c", both],
            env=environment, capture_output=True, text=True, timeout=240,
        )  # fmt: skip
        assert done.stdout.strip(), done.stderr[-3_000:]
        yield json.loads(done.stdout.strip().splitlines()[-1])


def test_a_question_is_asked_and_its_answer_heard_through_the_accessibility_bus(
    heard: dict[str, object],
) -> None:
    assert heard["program"]
    names = heard["names"]
    assert isinstance(names, list)
    assert {"Conversation", "Message", "Send", "New chat", "Chats", "Menu"} <= set(names)
    assert [name for name in names if "object" in name or "&" in name] == []
    assert heard["nameless"] == []
    assert (heard["field"], heard["typed"], heard["send"], heard["pressed"]) == (True, True, True, True)
    assert "The capital of France is Paris" in str(heard["answer"])
