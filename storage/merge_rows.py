"""Rows on their way from a backup into a history: read by column names, inserted under new ids, counted and stopped.

Both have the newest schema, so a row is a dictionary of all its columns; that keeps columns that later steps of the
schema add from being forgotten here.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable
from typing import Any

from inglenook.storage.database import Database
from inglenook.storage.errors import StoppedError

_BETWEEN_REPORTS = 200


class MergeWork:
    """One merging of `backup` into `into`. `ids[table][id in the backup]` is the id here."""

    def __init__(
        self,
        backup: Database,
        into: Database,
        progress: Callable[[int, int], None],
        is_stopped: Callable[[], bool],
    ) -> None:
        self.backup, self.into = backup, into
        self._progress, self._is_stopped = progress, is_stopped
        self.ids: defaultdict[str, dict[int, int]] = defaultdict(dict)
        self.added: Counter[str] = Counter()
        self.known: Counter[str] = Counter()
        self._columns: dict[str, list[str]] = {}
        self._done = 0
        counts = [
            backup.row(f"SELECT count(*) FROM {table}") for table in ("messages", "chunks", "documents")
        ]
        self._total = max(1, sum(int(row[0]) for row in counts if row))

    def rows(
        self, table: str, condition: str = "1", parameters: tuple[object, ...] = ()
    ) -> list[dict[str, Any]]:
        """Return rows of the backup; `condition` is ours, with its order if that matters."""
        return self._rows(self.backup, table, condition, parameters)

    def own_rows(
        self, table: str, condition: str = "1", parameters: tuple[object, ...] = ()
    ) -> list[dict[str, Any]]:
        """Return rows of the history."""
        return self._rows(self.into, table, condition, parameters)

    def insert(self, table: str, row: dict[str, Any]) -> int:
        """Insert a row under a new id, which is returned and noted for the id that it had."""
        columns = [name for name in self._names(table) if name != "id"]
        marks = ", ".join("?" * len(columns))
        cursor = self.into.execute(
            f"INSERT INTO {table}({', '.join(columns)}) VALUES ({marks})", [row[name] for name in columns]
        )
        new_id = int(cursor.lastrowid or 0)
        if "id" in row:
            self.ids[table][row["id"]] = new_id
        self.added[table] += 1
        return new_id

    def mapped(self, table: str, old_id: int | None) -> int | None:
        """Return the id here of a row of the backup, None where it is not here."""
        return None if old_id is None else self.ids[table].get(old_id)

    def step(self, num_rows: int = 1) -> None:
        """Note that rows were dealt with.

        Raises:
            StoppedError: the user wants to stop.
        """
        if self._is_stopped():
            raise StoppedError("Restoring was stopped. Nothing was restored.")
        before, self._done = self._done, self._done + num_rows
        if before == 0 or before // _BETWEEN_REPORTS != self._done // _BETWEEN_REPORTS:
            self._progress(min(self._done, self._total), self._total)

    def _rows(
        self, db: Database, table: str, condition: str, parameters: tuple[object, ...]
    ) -> list[dict[str, Any]]:
        names = self._names(table)
        found = db.rows(f"SELECT {', '.join(names)} FROM {table} WHERE {condition}", parameters)
        return [dict(zip(names, row, strict=True)) for row in found]

    def _names(self, table: str) -> list[str]:
        if table not in self._columns:
            names = [row[1] for row in self.into.rows(f"PRAGMA table_info({table})")]
            self._columns[table] = names
        return self._columns[table]
