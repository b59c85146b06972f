"""Seconds from just before the program is started until its window has painted, as one line; for the tests.

    window_time.py

Run with the installed Python on a display. The program runs as it is, but for a line that its first paint prints. The
shell script in front of it is run too, up to where it hands over, because it is part of what a user waits for.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

PROBE = """
import sys, time
from inglenook.app.window import main_window

class Window(main_window.MainWindow):
    def __init__(self, *arguments, **named):
        super().__init__(*arguments, **named)
        self.painted.connect(lambda: print(time.clock_gettime(time.CLOCK_MONOTONIC), flush=True))

main_window.MainWindow = Window
from inglenook.app.__main__ import main
sys.argv = ["inglenook"]
sys.exit(main())
"""
script = Path(sys.prefix).parent / "bin" / "inglenook"
before_python = (
    script.read_text(encoding="utf-8").replace('$(readlink -f "$0")', f"{script}").rpartition("exec ")[0]
)

start = time.clock_gettime(time.CLOCK_MONOTONIC)
program = subprocess.Popen(
    ["/bin/sh", "-c", f'{before_python}\nexec "$python" -I -c "$PROBE"'],
    env={**os.environ, "PROBE": PROBE},
    stdout=subprocess.PIPE,
    text=True,
)
line = program.stdout.readline()
print(f"{float(line) - start:.3f}")
program.send_signal(signal.SIGTERM)
program.wait(30)
