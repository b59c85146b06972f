"""Without a screen the window is refused in one sentence, before Qt could end the process."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from x_server import x_server

from inglenook.app.window.screen import screen_fault

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux may have no screen")

NOBODY = ":987"


@pytest.mark.parametrize(
    "environment",
    [
        {},
        {"DISPLAY": "", "WAYLAND_DISPLAY": ""},
        {"QT_QPA_PLATFORM": "xcb"},
        {"QT_QPA_PLATFORM": "xcb", "WAYLAND_DISPLAY": "wayland-0"},
        {"QT_QPA_PLATFORM": "wayland;xcb"},
    ],
)
def test_where_no_screen_is_named_the_sentence_says_which_names_were_looked_at(
    environment: dict[str, str],
) -> None:
    fault = screen_fault(environment)

    assert fault.startswith("No screen was found: neither DISPLAY nor WAYLAND_DISPLAY")
    assert "'inglenook ask'" in fault


@pytest.mark.parametrize(
    ("environment", "named"),
    [
        ({"DISPLAY": NOBODY}, "DISPLAY is ':987'"),
        ({"DISPLAY": "not a display"}, "DISPLAY is 'not a display'"),
        ({"DISPLAY": "\udcff:0"}, "DISPLAY is"),
        ({"WAYLAND_DISPLAY": "nobody-7"}, "WAYLAND_DISPLAY is 'nobody-7'"),
        (
            {"WAYLAND_DISPLAY": "nobody-7", "DISPLAY": NOBODY},
            "WAYLAND_DISPLAY is 'nobody-7' and DISPLAY is ':987'",
        ),
    ],
)
def test_a_screen_that_does_not_answer_is_named(environment: dict[str, str], named: str) -> None:
    fault = screen_fault(environment)

    assert fault.startswith(f"No screen was found: {named}")
    assert "nothing answers there" in fault


@pytest.mark.parametrize("library", ["libxcb.so.1", "libxcb-cursor.so.0"])
def test_a_library_that_qt_would_miss_is_named_with_its_package(
    monkeypatch: pytest.MonkeyPatch, library: str
) -> None:
    monkeypatch.setattr("inglenook.app.window.screen._is_there", lambda name: name != library)

    assert f"needs the system's library {library}" in screen_fault({"DISPLAY": NOBODY})


@pytest.mark.slow
def test_a_display_answers_with_its_key_and_not_without(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if shutil.which("Xvfb") is None or shutil.which("xauth") is None:
        pytest.skip("not installed here: xvfb and xauth")
    key = tmp_path / "key"
    subprocess.run(
        ["xauth", "-f", key, "add", ":0", ".", "0123456789abcdef" * 2], check=True, capture_output=True
    )
    with x_server("-auth", str(key)) as display:
        subprocess.run(
            ["xauth", "-f", key, "add", display, ".", "0123456789abcdef" * 2], check=True, capture_output=True
        )
        monkeypatch.setenv("XAUTHORITY", str(key))
        assert screen_fault({"DISPLAY": display}) == ""
        assert screen_fault({"DISPLAY": display, "QT_QPA_PLATFORM": "wayland;xcb"}) == ""
        monkeypatch.setenv("XAUTHORITY", str(tmp_path / "none"))

        assert screen_fault({"DISPLAY": display}).startswith("No screen was found: DISPLAY is")


@pytest.mark.parametrize("platform", ["offscreen", "minimal", "vnc:size=800x600"])
def test_a_platform_that_needs_no_screen_is_not_looked_at(platform: str) -> None:
    assert screen_fault({"QT_QPA_PLATFORM": platform, "DISPLAY": NOBODY}) == ""


@pytest.mark.parametrize("display", [NOBODY, None], ids=["unreachable", "unset"])
def test_the_program_ends_with_one_line_and_status_1(tmp_path: Path, display: str | None) -> None:
    left_out = ("QT_QPA_PLATFORM", "DISPLAY", "WAYLAND_DISPLAY")
    environment = {name: value for name, value in os.environ.items() if name not in left_out}
    environment |= {"HOME": str(tmp_path), "XDG_DATA_HOME": str(tmp_path / "data")}
    if display is not None:
        environment["DISPLAY"] = display

    done = subprocess.run(
        [sys.executable, "-m", "inglenook.app"], env=environment, capture_output=True, text=True, timeout=60
    )

    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert line.startswith("inglenook: No screen was found")
    assert done.stdout == ""
    assert not list(tmp_path.iterdir())
