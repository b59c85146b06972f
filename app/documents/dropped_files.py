"""From dropped paths to noted files: found inside folders, opened without trust, and known by their sha256.

Blocking; for a worker thread. Each file is reported as it is found, noted or refused with a sentence.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
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


def look_at(task: Task, paths: Sequence[Path]) -> FoundDocuments:
    """Find the documents among `paths` and report a `NotedFile` or a `Refusal` for each; return the account."""
    found = find_documents(paths, cancelled=lambda: task.is_cancelled)
    for path in found.files:
        try:
            task.report(note_file(path, task))
        except ParsingCancelledError:
            break
        except ParsingError as error:
            task.report(Refusal(str(path), path.name, str(error)))
        except OSError as error:
            reason = error.strerror or type(error).__name__
            sentence = f"This file could not be read ({reason}). Check the drive it is on and try again."
            task.report(Refusal(str(path), path.name, sentence))
    return found


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
