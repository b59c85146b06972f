"""The end-to-end tests once more on an X server of their own, where windows are real ones."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from ctypes.util import find_library
from pathlib import Path

import pytest
from x_server import x_server

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1_800)]

MISSING = [
    package
    for package, is_here in (
        ("xvfb", shutil.which("Xvfb")),
        ("libxcb-cursor0", find_library("xcb-cursor")),
    )
    if not is_here
]


@pytest.fixture
def display() -> Iterator[str]:
    """An X server on a number that it chooses itself."""
    if MISSING:
        pytest.skip(f"not installed here: {', '.join(MISSING)}")
    with x_server() as name:
        yield name


@pytest.mark.usefixtures("smollm2", "minilm")
def test_the_end_to_end_tests_pass_in_real_windows(display: str) -> None:
    test = Path(__file__).with_name("test_end_to_end.py")
    environment = {**os.environ, "DISPLAY": display, "QT_QPA_PLATFORM": "xcb"}
    environment.pop("WAYLAND_DISPLAY", None)
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-m",
        "slow",
        "-n",
        "0",
        "-p",
        "no:cacheprovider",
        str(test),
    ]

    done = subprocess.run(
        command, env=environment, cwd=test.parents[2], capture_output=True, text=True, timeout=1_700
    )

    assert done.returncode == 0, done.stdout[-6_000:] + done.stderr[-2_000:]
    assert "2 passed" in done.stdout
