"""`DoctorRecords`: what the model doctor found when it first examined a model, kept by path in small JSON files.

For each model there are two: what later examinations compare with, and the last report with the sizes and times of the
files it is about, so that it can be shown without opening the model.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from pathlib import Path

import msgspec

from inglenook.engine.errors import EngineError
from inglenook.engine.library.model_import import model_files
from inglenook.engine.model_doctor.report import DoctorReport
from inglenook.engine.private_files import make_folder, replace_file


class ModelRecord(msgspec.Struct, frozen=True, kw_only=True):
    """What is kept of a model: its fingerprint, its settings as read, and what a known text of so many tokens cost."""

    fingerprint: str
    settings: str
    bits_per_byte: float
    num_tokens: int
    backend: str


class _KeptReport(msgspec.Struct, frozen=True):
    stamp: tuple[tuple[str, int, int], ...]
    report: DoctorReport


class DoctorRecords:
    """Records in `folder`, which is made when the first is written."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def read(self, path: Path) -> ModelRecord | None:
        """The record of the model at `path`; None if there is none, or none that can be read."""
        try:
            return msgspec.json.decode(self._file(path).read_bytes(), type=ModelRecord)
        except (OSError, msgspec.DecodeError):
            return None

    def write(self, path: Path, record: ModelRecord) -> None:
        """Keep a record, in place of an earlier one; a folder that cannot be written is no fault of the model."""
        self._write(self._file(path), record)

    def report(self, path: Path) -> DoctorReport | None:
        """The last report on the model at `path`; None if there is none, or its files have changed since."""
        try:
            kept = msgspec.json.decode(self._file(path, ".report.json").read_bytes(), type=_KeptReport)
        except (OSError, msgspec.DecodeError):
            return None
        return kept.report if kept.stamp == _stamp(path) else None

    def keep(self, path: Path, report: DoctorReport) -> None:
        """Keep a report, in place of an earlier one."""
        self._write(self._file(path, ".report.json"), _KeptReport(_stamp(path), report))

    def _write(self, file: Path, value: msgspec.Struct) -> None:
        with contextlib.suppress(OSError):
            make_folder(self.folder)
            replace_file(file, msgspec.json.encode(value))

    def _file(self, path: Path, ending: str = ".json") -> Path:
        name = hashlib.sha256(os.fsencode(path.absolute())).hexdigest()[:40]
        return self.folder / f"{name}{ending}"


def _stamp(path: Path) -> tuple[tuple[str, int, int], ...]:
    """Names, sizes and times of a model's files; of what cannot be read, none."""
    with contextlib.suppress(OSError, EngineError):
        found = [(file.name, file.stat()) for file in model_files(path)]
        return tuple((name, status.st_size, status.st_mtime_ns) for name, status in found)
    return ()


def records_folder() -> Path:
    """Where records are kept: $XDG_CACHE_HOME/inglenook/doctor."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "inglenook" / "doctor"
