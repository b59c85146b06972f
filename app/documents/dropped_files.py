"""From dropped paths to noted files: found inside folders, opened without trust, and known by their sha256.

Blocking; for a worker thread. Each file is reported as it is found, noted or refused with a sentence.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from inglenook.app.tasks import Task
from inglenook.storage.parsing.document import ParsingLimits
from inglenook.storage.parsing.errors import ParsingCancelledError, ParsingError
from inglenook.storage.parsing.found_documents import FoundDocuments, find_documents
from inglenook.storage.parsing.opening import open_document

_READ_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class NotedFile:
    """A file as it was when it was added."""

    path: str
    name: str
    sha256: str
    size_bytes: int
    modified_at_ns: int


@dataclass(frozen=True, slots=True)
class Refusal:
    """A file that could not even be noted (empty, too large, gone): `sentence` says why and what to do."""

    path: str
    name: str
    sentence: str


@dataclass(frozen=True, slots=True)
class Look:
    """What was found among dropped paths, and which files of it were read before and have not changed."""

    found: FoundDocuments
    unchanged: tuple[Path, ...]


def look_at(task: Task, paths: Sequence[Path], known: Mapping[str, tuple[int, int]]) -> Look:
    """Find the documents among `paths` and report a `NotedFile` or a `Refusal` for each that is not `known`.

    Size and time of change by path tell which are known; only the others are read.
    """
    found = find_documents(paths, cancelled=lambda: task.is_cancelled)
    unchanged: list[Path] = []
    for path in found.files:
        try:
            if _is_known(path, known):
                unchanged.append(path)
                continue
            task.report(note_file(path, task))
        except ParsingCancelledError:
            break
        except ParsingError as error:
            task.report(Refusal(str(path), path.name, str(error)))
        except OSError as error:
            reason = error.strerror or type(error).__name__
            sentence = f"This file could not be read ({reason}). Check the drive it is on and try again."
            task.report(Refusal(str(path), path.name, sentence))
    return Look(found, tuple(unchanged))


def _is_known(path: Path, known: Mapping[str, tuple[int, int]]) -> bool:
    if str(path) not in known:
        return False
    status = path.stat()
    return known[str(path)] == (status.st_size, status.st_mtime_ns)


def note_file(path: Path, task: Task) -> NotedFile:
    """Read a file's bytes for its sha256.

    Raises:
        ParsingError: it cannot be opened, is empty or too large; or the task was cancelled.
        OSError: reading failed in the middle.
    """
    descriptor = open_document(path, ParsingLimits())
    with os.fdopen(descriptor, "rb", buffering=0) as file:
        status = os.fstat(descriptor)
        digest = hashlib.sha256()
        size = 0
        while piece := file.read(_READ_BYTES):
            if task.is_cancelled:
                raise ParsingCancelledError("Adding was cancelled.")
            digest.update(piece)
            size += len(piece)
    return NotedFile(str(path), path.name, digest.hexdigest(), size, status.st_mtime_ns)
