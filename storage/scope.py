"""Which documents a question is about, and which chunks that leaves to be searched.

A scope narrows before anything is ranked, so a passage outside of it takes no place from one inside. What a person
typed is compared as text, never made part of a query. Reads only.
"""

from __future__ import annotations

import fnmatch
import json
import re
import time
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from inglenook.storage.database import Database

_YEAR = re.compile(r"(?<!\d)(?:1[5-9]|20)\d\d(?!\d)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """Documents by what is said of them: each part narrows further, and inside a part any may hold.

    `names` are parts of file names or patterns with * and ?, of paths where they hold a slash; letter case does not
    count. A document is of the `years` that its name or its own title names, else of the year in which its file was last
    changed. `document_ids` are those that were ticked, None for all.
    """

    document_ids: tuple[int, ...] | None = None
    collections: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    years: tuple[int, ...] = ()

    @property
    def is_everything(self) -> bool:
        """Whether nothing is left out by it."""
        return self.document_ids is None and not (self.collections or self.names or self.years)


def documents_in(db: Database, scope: Scope) -> list[int]:
    """Return the ids of a scope's documents in the order in which they were added; none from the trash."""
    conditions, values = ["d.trashed_at_ms IS NULL"], list[object]()
    if scope.document_ids is not None:
        conditions.append("d.id IN (SELECT value FROM json_each(?))")
        values.append(json.dumps(scope.document_ids))
    if scope.collections:
        conditions.append(
            "d.id IN (SELECT cd.document_id FROM collection_documents cd JOIN collections c ON c.id = cd.collection_id "
            "JOIN json_each(?) j ON c.name = j.value COLLATE NOCASE)"
        )
        values.append(json.dumps(scope.collections))
    rows = db.rows(
        "SELECT d.id, d.name, d.path, v.title, v.modified_at_ns FROM documents d JOIN document_versions v "
        f"ON v.document_id = d.id AND v.sha256 = d.sha256 WHERE {' AND '.join(conditions)} ORDER BY d.id",
        values,
    )
    patterns = [_pattern(name) for name in scope.names]
    return [
        int(id_)
        for id_, name, path, title, modified_at_ns in rows
        if (not patterns or any(p.match(_folded(path if in_path else name)) for p, in_path in patterns))
        and (not scope.years or not _years(name, title, modified_at_ns).isdisjoint(scope.years))
    ]


@dataclass(frozen=True)
class ScopedChunks:
    """The chunks that may be found, by their ids: int64 `ranges` [R, 2] from the first to the last of each, in order.

    With `is_everything` no chunk is outside, and there are no ranges.
    """

    is_everything: bool
    ranges: NDArray[np.int64]

    @property
    def count(self) -> int:
        """How many chunks there are in the ranges."""
        return int((self.ranges[:, 1] - self.ranges[:, 0] + 1).sum())

    @property
    def is_empty(self) -> bool:
        """Whether nothing can be found."""
        return not self.is_everything and len(self.ranges) == 0

    @cached_property
    def ids(self) -> NDArray[np.int64]:
        """All ids in the ranges, int64."""
        parts = [np.arange(first, last + 1, dtype=np.int64) for first, last in self.ranges.tolist()]
        return np.concatenate([np.empty(0, np.int64), *parts])


def searched_chunks(db: Database, document_ids: Iterable[int] | None) -> ScopedChunks:
    """Return which chunks may be found in documents, of all for None: those of their complete newest versions."""
    sql = "SELECT current_version_id FROM documents WHERE trashed_at_ms IS NULL AND current_version_id IS NOT NULL"
    if document_ids is None:
        versions = [row[0] for row in db.rows(sql)]
    else:
        ids = json.dumps(list(document_ids))
        versions = [row[0] for row in db.rows(f"{sql} AND id IN (SELECT value FROM json_each(?))", (ids,))]
    within = (json.dumps(versions),)
    outside = db.row(
        "SELECT 1 FROM document_versions v WHERE v.id NOT IN (SELECT value FROM json_each(?)) "
        "AND EXISTS (SELECT 1 FROM chunks c WHERE c.version_id = v.id) LIMIT 1",
        within,
    )
    if outside is None:
        return ScopedChunks(True, np.empty((0, 2), np.int64))
    # A version's chunks are stored one after the other, nearly always without others between.
    rows = db.rows(
        "SELECT j.value, (SELECT min(id) FROM chunks WHERE version_id = j.value), "
        "(SELECT max(id) FROM chunks WHERE version_id = j.value), "
        "(SELECT count(*) FROM chunks WHERE version_id = j.value) FROM json_each(?) j",
        within,
    )
    ranges: list[tuple[int, int]] = []
    for version_id, first, last, count in rows:
        if count and last - first + 1 == count:
            ranges.append((first, last))
        elif count:
            every = db.rows("SELECT id FROM chunks WHERE version_id = ?", (version_id,))
            ranges += [(row[0], row[0]) for row in every]
    return ScopedChunks(False, _merged(ranges))


def _merged(ranges: Sequence[tuple[int, int]]) -> NDArray[np.int64]:
    merged: list[list[int]] = []
    for first, last in sorted(ranges):
        if merged and merged[-1][1] + 1 == first:
            merged[-1][1] = last
        else:
            merged.append([first, last])
    return np.array(merged, np.int64).reshape(-1, 2)


def _pattern(name: str) -> tuple[re.Pattern[str], bool]:
    """Return what a name is matched with, and whether the whole path is."""
    text = _folded(name)
    if not ("*" in text or "?" in text):
        text = f"*{text}*"
    # Brackets mean themselves, as they do in names.
    return re.compile(fnmatch.translate(text.replace("[", "[[]"))), "/" in text


def _folded(text: str) -> str:
    return unicodedata.normalize("NFC", text).casefold()


def _years(name: str, title: str, modified_at_ns: int) -> set[int]:
    named = {int(year) for year in _YEAR.findall(f"{name} {title}")}
    if named or not modified_at_ns:
        return named
    return {time.localtime(modified_at_ns / 1e9).tm_year}
