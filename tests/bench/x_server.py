"""`x_server`: an X server of a test's own, where windows are real ones."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def x_server(*options: str) -> Iterator[str]:
    """Run Xvfb on a number that it chooses itself, and yield the display's name."""
    reading, writing = os.pipe()
    command = [
        "Xvfb",
        "-displayfd",
        str(writing),
        "-screen",
        "0",
        "1280x900x24",
        "-nolisten",
        "tcp",
        *options,
    ]
    server = subprocess.Popen(command, pass_fds=[writing], stderr=subprocess.DEVNULL)
    os.close(writing)
    try:
        with open(reading) as number:
            yield f":{number.readline().strip()}"
    finally:
        server.terminate()
        server.wait(30)
