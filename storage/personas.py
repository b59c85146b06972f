"""Personas: a name, what the model is told before every conversation, and how replies are drawn.

What the preset's name and the numbers mean is declared in app/settings_presets.py. A reply keeps the values that it
was written with, so a persona may be changed or deleted without changing what was. Use from the database's own thread.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from inglenook.storage.database import Database, now_ms
from inglenook.storage.driver import Row
from inglenook.storage.errors import InvalidValueError, NotFoundError
from inglenook.storage.text import from_json, storable, to_json

MAX_NAME_CHARACTERS = 60
MAX_SYSTEM_CHARACTERS = 100_000

_COLUMNS = "id, name, system, preset, sampling"


@dataclass(frozen=True, slots=True)
class Persona:
    """One persona. `preset` "" takes the style of the settings; `sampling` are the numbers of the preset "own"."""

    id: int
    name: str
    system: str = ""
    preset: str = ""
    sampling: dict[str, Any] = field(default_factory=dict)


class Personas:
    """Reads and writes personas through the given connection."""

    def __init__(self, database: Database) -> None:
        self._db = database

    def all(self) -> list[Persona]:
        """Return all, by name."""
        rows = self._db.rows(f"SELECT {_COLUMNS} FROM personas")
        return sorted(map(_persona, rows), key=lambda persona: (persona.name.casefold(), persona.id))

    def get(self, persona_id: int) -> Persona:
        """Return one.

        Raises:
            NotFoundError: there is none of that id.
        """
        row = self._db.row(f"SELECT {_COLUMNS} FROM personas WHERE id = ?", (persona_id,))
        if row is None:
            raise _not_found(persona_id)
        return _persona(row)

    def add(
        self, name: str, *, system: str = "", preset: str = "", sampling: Mapping[str, Any] | None = None
    ) -> int:
        """Make a persona and return its id.

        Raises:
            InvalidValueError: the name is empty, too long or taken, or the instructions are too long.
        """
        with self._db.atomic():
            values = self._checked(0, name, system)
            cursor = self._db.execute(
                "INSERT INTO personas(name, system, preset, sampling, created_at_ms) VALUES (?, ?, ?, ?, ?)",
                (*values, storable(preset), to_json(dict(sampling or {})), now_ms()),
            )
            return int(cursor.lastrowid or 0)

    def change(
        self,
        persona_id: int,
        name: str,
        *,
        system: str = "",
        preset: str = "",
        sampling: Mapping[str, Any] | None = None,
    ) -> None:
        """Replace all that a persona is.

        Raises:
            InvalidValueError: as for `add`.
            NotFoundError: there is none of that id.
        """
        with self._db.atomic():
            values = self._checked(persona_id, name, system)
            cursor = self._db.execute(
                "UPDATE personas SET name = ?, system = ?, preset = ?, sampling = ? WHERE id = ?",
                (*values, storable(preset), to_json(dict(sampling or {})), persona_id),
            )
            if cursor.rowcount != 1:
                raise _not_found(persona_id)

    def delete(self, persona_id: int) -> None:
        """Delete one; fine if it is gone. Chats that used it go on without."""
        with self._db.atomic():
            self._db.execute("DELETE FROM personas WHERE id = ?", (persona_id,))

    def _checked(self, persona_id: int, name: str, system: str) -> tuple[str, str]:
        name = " ".join(storable(name).split())
        if not name:
            raise InvalidValueError("A persona needs a name. Write one, for instance what it is for.")
        if len(name) > MAX_NAME_CHARACTERS:
            raise InvalidValueError(
                f"A persona's name has at most {MAX_NAME_CHARACTERS} characters, got {len(name)}. Shorten it."
            )
        if len(system) > MAX_SYSTEM_CHARACTERS:
            raise InvalidValueError(
                f"A persona's instructions have at most {MAX_SYSTEM_CHARACTERS:,} characters, got {len(system):,}. "
                "Put long texts into a document instead."
            )
        others = (persona for persona in self.all() if persona.id != persona_id)
        if any(persona.name.casefold() == name.casefold() for persona in others):
            raise InvalidValueError(f"There is a persona named {name} already. Choose another name.")
        return name, storable(system)


def _not_found(persona_id: int) -> NotFoundError:
    return NotFoundError(f"There is no persona {persona_id}; it may have been deleted.")


def _persona(row: Row) -> Persona:
    return Persona(row[0], row[1], row[2], row[3], from_json(row[4], dict))
