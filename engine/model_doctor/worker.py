"""The process that examines a model: `python -P -m inglenook.engine.model_doctor.worker PATH BACKEND FOLDER`.

It writes each finding as a line of JSON and the report as the last, at the lowest priority, and ends when its standard
input does: so with the process that started it.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
from pathlib import Path

import msgspec

_NICENESS = 19


def main(arguments: list[str]) -> int:
    """Examine one model; returns the exit status."""
    path, backend, folder = arguments
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl+C is the parent's affair
    with contextlib.suppress(OSError, AttributeError):  # Windows has no nice
        os.nice(_NICENESS)
    threading.Thread(target=_end_with_input, daemon=True).start()
    from inglenook.engine.model_doctor.examination import examine_model
    from inglenook.engine.model_doctor.records import DoctorRecords

    report = examine_model(
        Path(path), backend=backend, records=DoctorRecords(Path(folder)), on_finding=_write
    )
    _write(report)
    return 0


def _write(value: msgspec.Struct) -> None:
    sys.stdout.buffer.write(msgspec.json.encode(value) + b"\n")
    sys.stdout.buffer.flush()


def _end_with_input() -> None:
    sys.stdin.buffer.read()
    os._exit(1)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
