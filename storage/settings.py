"""Settings by key, kept as JSON; the keys and their meaning are declared in app/settings.py.

A key this program does not know stays as it is, so that an older program loses nothing of a newer one's. A value of
the wrong type reads as the default. Use from the database's own thread.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, TypeVar

from inglenook.storage.database import Database
from inglenook.storage.errors import InvalidValueError
from inglenook.storage.text import storable

T = TypeVar("T", bool, int, float, str, list[Any], dict[str, Any])


class Settings:
    """Reads and writes settings through the given connection."""

    def __init__(self, database: Database) -> None:
        self._db = database

    def get(self, key: str, default: T) -> T:
        """Return the value, or `default` where there is none of the default's type."""
        row = self._db.row("SELECT value FROM settings WHERE key = ?", (key,))
        try:
            value = json.loads(row[0]) if row else default
        except (ValueError, RecursionError):
            return default
        if type(default) is float and type(value) is int:
            value = float(value)
        # bool is a subclass of int: the types must be the same, not merely fit.
        return value if type(value) is type(default) else default

    def all(self) -> dict[str, Any]:
        """Return every readable setting, also those this program does not know."""
        result: dict[str, Any] = {}
        for key, text in self._db.rows("SELECT key, value FROM settings ORDER BY key"):
            try:
                result[key] = json.loads(text)
            except (ValueError, RecursionError):
                continue
        return result

    def set(self, key: str, value: object) -> None:
        """Save one setting.

        Raises:
            InvalidValueError: JSON cannot hold the value.
        """
        self.update({key: value})

    def update(self, values: Mapping[str, object]) -> None:
        """Save several settings, all or none.

        Raises:
            InvalidValueError: JSON cannot hold one of the values.
        """
        rows = []
        for key, value in values.items():
            try:
                rows.append((storable(key), storable(json.dumps(value, ensure_ascii=False, allow_nan=False))))
            except (TypeError, ValueError, RecursionError) as error:
                raise InvalidValueError(f"The setting {key} cannot be saved: {error}.") from error
        with self._db.atomic():
            self._db.executemany("INSERT OR REPLACE INTO settings(key, value) VALUES (?, ?)", rows)

    def remove(self, key: str) -> None:
        """Take a setting back to its default; fine if it has none."""
        with self._db.atomic():
            self._db.execute("DELETE FROM settings WHERE key = ?", (key,))
