"""`DoctorRecords`: what the model doctor found when it first examined a model, kept by path in small JSON files."""

from __future__ import annotations

import contextlib
import hashlib
import os
from pathlib import Path

import msgspec


class ModelRecord(msgspec.Struct, frozen=True, kw_only=True):
    """What is kept of a model: its fingerprint, its settings as read, and what a known text of so many tokens cost."""

    fingerprint: str
    settings: str
    bits_per_byte: float
    num_tokens: int
    backend: str


class DoctorRecords:
    """Records in `folder`, which is made when the first is written."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def read(self, path: Path) -> ModelRecord | None:
        """The record of the model at `path`; None if there is none, or none that can be read."""
        try:
            return msgspec.json.decode(self._file(path).read_bytes(), type=ModelRecord)
        except (OSError, msgspec.DecodeError):
            return None

    def write(self, path: Path, record: ModelRecord) -> None:
        """Keep a record, in place of an earlier one; a folder that cannot be written is no fault of the model."""
        with contextlib.suppress(OSError):
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            temporary = self._file(path).with_suffix(".new")
            temporary.write_bytes(msgspec.json.encode(record))
            temporary.replace(self._file(path))

    def _file(self, path: Path) -> Path:
        name = hashlib.sha256(os.fsencode(path.absolute())).hexdigest()[:40]
        return self._folder / f"{name}.json"


def records_folder() -> Path:
    """Where records are kept: $XDG_CACHE_HOME/inglenook/doctor."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "inglenook" / "doctor"
