"""From what was dropped on the window, files and folders, to the documents to parse, and what was left out and why.

Inside a folder no link is followed, so a loop or a link to a private file cannot be entered; hidden names and the
temporary files of other programs are passed over. A file named by the user is always taken, even through a link: what
it holds is decided by the parser, from its content.
"""

from __future__ import annotations

import os
import stat
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from inglenook.storage.parsing.file_type import is_pdf

SkipReason = Literal[
    "link", "hidden", "temporary", "unsupported", "special", "unreadable", "vanished", "repeated", "limit"
]

MAX_FILES = 10_000
MAX_ENTRIES = 1_000_000
MAX_SKIPPED_NAMED = 1_000

_NAMED_SUFFIXES = frozenset(
    (".txt", ".text", ".md", ".markdown", ".docx", ".html", ".htm", ".xhtml", ".csv", ".tsv")
)
_TEMPORARY_SUFFIXES = frozenset((".part", ".crdownload", ".download", ".swp", ".tmp"))
_SENTENCES: dict[SkipReason, str] = {
    "link": "link, not followed",
    "hidden": "hidden",
    "temporary": "unfinished or temporary",
    "unsupported": "not PDF, Word, HTML, CSV, Markdown or plain text",
    "special": "pipe, socket or device",
    "unreadable": "not readable for your user account",
    "vanished": "no longer there",
    "repeated": "named twice",
    "limit": f"beyond the limit of {MAX_FILES:,} files at once",
}


@dataclass(frozen=True, slots=True)
class SkippedPath:
    """A path that was left out, and why."""

    path: Path
    reason: SkipReason


@dataclass(frozen=True, slots=True)
class FoundDocuments:
    """The files to parse in the order found. `skipped` names the first thousand; `skipped_counts` counts all."""

    files: tuple[Path, ...]
    skipped: tuple[SkippedPath, ...]
    skipped_counts: Mapping[SkipReason, int]
    is_cancelled: bool = False

    def summary(self) -> str:
        """Say in one sentence what was left out; empty if nothing was."""
        if not self.skipped_counts:
            return ""
        parts = (f"{count} {_SENTENCES[reason]}" for reason, count in self.skipped_counts.items())
        return f"Left out: {'; '.join(parts)}."


def find_documents(paths: Iterable[Path], *, cancelled: Callable[[], bool] = lambda: False) -> FoundDocuments:
    """List the documents among `paths` and inside the folders among them. Blocks on the disk: not for the GUI thread."""
    search = _Search()
    for path in paths:
        search.add_named(path)
    while search.folders and not cancelled():
        search.expand(search.folders.popleft(), cancelled)
    return FoundDocuments(
        tuple(search.files), tuple(search.skipped), dict(search.counts), is_cancelled=cancelled()
    )


class _Search:
    def __init__(self) -> None:
        self.files: list[Path] = []
        self.skipped: list[SkippedPath] = []
        self.counts: Counter[SkipReason] = Counter()
        self.folders: deque[Path] = deque()
        self._seen: set[tuple[int, int]] = set()
        self._num_entries = 0

    def add_named(self, path: Path) -> None:
        """Take a path that the user named, through a link if it is one."""
        try:
            real = path.resolve(strict=True)
            status = real.stat()
        except (FileNotFoundError, NotADirectoryError):
            self._skip(path, "vanished")
        except (OSError, ValueError, RuntimeError):
            self._skip(path, "unreadable")
        else:
            self._add(real, status, is_named=True)

    def expand(self, folder: Path, cancelled: Callable[[], bool]) -> None:
        """Take the entries of a folder, in the order of their names."""
        try:
            with os.scandir(folder) as entries:
                names = sorted(entries, key=lambda entry: entry.name)
        except OSError:
            self._skip(folder, "unreadable")
            return
        for entry in names:
            if cancelled():
                return
            self._num_entries += 1
            if self._num_entries > MAX_ENTRIES:
                self._skip(Path(entry.path), "limit")
                return
            self._add_entry(entry)

    def _add_entry(self, entry: os.DirEntry[str]) -> None:
        path = Path(entry.path)
        try:
            status = entry.stat(follow_symlinks=False)
        except FileNotFoundError:
            self._skip(path, "vanished")
        except OSError:
            self._skip(path, "unreadable")
        else:
            if entry.name.startswith("."):
                self._skip(path, "hidden")
            elif entry.name.startswith("~$") or path.suffix.lower() in _TEMPORARY_SUFFIXES:
                self._skip(path, "temporary")
            else:
                self._add(path, status, is_named=False)

    def _add(self, path: Path, status: os.stat_result, *, is_named: bool) -> None:
        if stat.S_ISLNK(status.st_mode):
            self._skip(path, "link")
            return
        if not stat.S_ISDIR(status.st_mode) and not stat.S_ISREG(status.st_mode):
            self._skip(path, "special")
            return
        identity = (status.st_dev, status.st_ino)
        if identity in self._seen:
            self._skip(path, "repeated")
            return
        self._seen.add(identity)
        if stat.S_ISDIR(status.st_mode):
            self.folders.append(path)
            return
        reason = None if is_named else _reason_to_skip(path)
        if reason is None and len(self.files) >= MAX_FILES:
            reason = "limit"
        if reason is None:
            self.files.append(path)
        else:
            self._skip(path, reason)

    def _skip(self, path: Path, reason: SkipReason) -> None:
        self.counts[reason] += 1
        if len(self.skipped) < MAX_SKIPPED_NAMED:
            self.skipped.append(SkippedPath(path, reason))


def _reason_to_skip(path: Path) -> SkipReason | None:
    """Decide about a file in a folder: a PDF by its content, others by name, as most text there is program code."""
    if path.suffix.lower() in _NAMED_SUFFIXES:
        return None
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            head = os.read(descriptor, 1024)
        finally:
            os.close(descriptor)
    except FileNotFoundError:
        return "vanished"
    except OSError:
        return "unreadable"
    # An empty ".pdf" is shown with its reason rather than passed over.
    return None if is_pdf(head) or path.suffix.lower() == ".pdf" else "unsupported"
