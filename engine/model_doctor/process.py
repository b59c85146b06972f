"""`first_look`: what the model doctor says of a model, examined once in a process of its own.

Meant for a model's first load: the result is kept, and a model whose files are the same is not examined again. The
process runs at the lowest priority and beside the engine, so a reply that is being written goes on. Importing this
module does not import torch.
"""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import msgspec

from inglenook.engine.errors import EngineError, ModelNotFoundError
from inglenook.engine.model_doctor.records import DoctorRecords, records_folder
from inglenook.engine.model_doctor.report import DoctorReport, Finding

# The doctor itself keeps to 20 s; a process starts slowly on a busy computer.
_LONGEST_S = 120.0


class ExaminationEndedError(EngineError):
    """The examination was cancelled, or its process ended without a report."""


def known_report(path: Path, records: DoctorRecords | None = None) -> DoctorReport | None:
    """What is kept of a model whose files are unchanged; None if it was never examined. Quick: any thread may ask."""
    records = DoctorRecords(records_folder()) if records is None else records
    return records.report(path)


def first_look(
    path: Path,
    *,
    backend: str = "auto",
    again: bool = False,
    records: DoctorRecords | None = None,
    on_finding: Callable[[Finding], None] = lambda finding: None,
    cancelled: threading.Event | None = None,
) -> DoctorReport:
    """The kept report on the model at `path`, else a new one; blocks up to 20 s and more on a busy computer.

    `again` makes a new one in any case. `on_finding` hears of each finding as it comes, on this thread; setting `cancelled` ends the process.

    Raises:
        ModelNotFoundError: there is nothing at `path`.
        ExaminationEndedError: it was cancelled, took too long or failed; nothing is kept then.
    """
    records = DoctorRecords(records_folder()) if records is None else records
    if not path.exists():
        raise ModelNotFoundError(f"There is no file or folder {path}.")
    known = None if again else records.report(path)
    if known is not None:
        return known
    command = [sys.executable, "-I", "-m", "inglenook.engine.model_doctor.worker"]
    try:
        process = subprocess.Popen(
            [*command, str(path.absolute()), backend, str(records.folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
    except OSError as error:
        raise ExaminationEndedError(f"The model could not be examined: {error.strerror}.") from error
    done = threading.Event()
    cancelled = cancelled or threading.Event()
    watcher = threading.Thread(target=_watch, args=(process, cancelled, done), daemon=True)
    watcher.start()
    try:
        report = _read(process, on_finding)
    finally:
        done.set()
        watcher.join()
        process.communicate()
    if report is None:
        why = (
            "was cancelled" if cancelled.is_set() else f"ended without a report (status {process.returncode})"
        )
        raise ExaminationEndedError(f"The examination of {path.name} {why}.")
    return report


def _read(process: subprocess.Popen[bytes], on_finding: Callable[[Finding], None]) -> DoctorReport | None:
    """Pass findings on until the report comes; None where the process ends without one."""
    assert process.stdout is not None
    for line in process.stdout:
        try:
            value = msgspec.json.decode(line, type=dict[str, object])
            if "findings" in value:
                return msgspec.convert(value, DoctorReport)
            on_finding(msgspec.convert(value, Finding))
        except msgspec.MsgspecError:
            return None
    return None


def _watch(process: subprocess.Popen[bytes], cancelled: threading.Event, done: threading.Event) -> None:
    """End the process when it is cancelled or takes too long."""
    waited = 0.0
    while not done.wait(0.1):
        waited += 0.1
        if cancelled.is_set() or waited > _LONGEST_S:
            process.kill()
            return
