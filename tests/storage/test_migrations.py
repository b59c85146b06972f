"""Migrations: from every schema there was, with a verified backup, and never half."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path

import pytest

from inglenook.storage import database, migrations, opening
from inglenook.storage.conversations import Conversations
from inglenook.storage.database import Database
from inglenook.storage.errors import DiskFullError

# A released step is never edited: append another one instead.
_RELEASED = {
    "m001_first_schema": "8a97838e10ea7190",
    "m002_order_among_chats": "25b657de5e20c90b",
    "m003_personas": "2e636d9ef2498efc",
    "m004_collections_and_encodings": "5c23d7431221c7f9",
    "m005_reasoning": "0079536d492adede",
    "m006_folders": "a49003e7a98412e4",
    "m007_headings_of_sources": "bc20666238b195cc",
}


@pytest.mark.parametrize("number", range(1, 1 + len(_RELEASED)))
def test_released_schemas_are_what_they_were(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    steps = migrations._STEPS[:number]
    monkeypatch.setattr(migrations, "_STEPS", steps)
    with Database.in_memory() as db:
        sql = "\n".join(
            " ".join(row[0].split())
            for row in db.rows("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY name")
        )

    assert hashlib.sha256(sql.encode()).hexdigest()[:16] == _RELEASED[steps[-1].__name__]


def test_version_counts_the_steps() -> None:
    with Database.in_memory() as db:
        names = [row[0] for row in db.rows("SELECT name FROM _sqlite_migrations ORDER BY id")]

        assert db.row("PRAGMA user_version") == (migrations.SCHEMA_VERSION,)
    assert names == [step.__name__ for step in migrations._STEPS]


@pytest.fixture
def next_step(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[..., None]], None]:
    """Let the program know one step more than it does."""

    def know(step: Callable[..., None]) -> None:
        monkeypatch.setattr(migrations, "_STEPS", [*migrations._STEPS, step])
        for module in (database, opening):
            monkeypatch.setattr(module, "SCHEMA_VERSION", migrations.SCHEMA_VERSION + 1)

    return know


def _add_colour(db: object) -> None:
    db.execute("ALTER TABLE conversations ADD COLUMN colour TEXT NOT NULL DEFAULT 'grey'")  # type: ignore[attr-defined]


def test_older_file_is_migrated_with_its_rows_and_a_backup(
    path: Path, next_step: Callable[..., None]
) -> None:
    with Database.open(path) as db:
        Conversations(db).create("kept")
    next_step(_add_colour)

    with Database.open(path) as db:
        assert db.rows("SELECT title, colour FROM conversations") == [("kept", "grey")]
        assert db.row("PRAGMA user_version") == (migrations.SCHEMA_VERSION + 1,)
    backup = path.with_name(f"{path.name}.schema-{migrations.SCHEMA_VERSION}.backup")
    assert opening.examine(backup, check_up_to_bytes=1 << 30) == opening.Examined(
        migrations.SCHEMA_VERSION, False
    )
    assert backup.stat().st_mode & 0o777 == 0o600


def test_step_that_fails_half_way_leaves_the_older_schema(path: Path, next_step: Callable[..., None]) -> None:
    with Database.open(path) as db:
        Conversations(db).create("kept")

    def fail(db: object) -> None:
        _add_colour(db)
        raise RuntimeError("power cut")

    next_step(fail)
    with pytest.raises(RuntimeError, match="power cut"):
        Database.open(path)

    assert opening.examine(path, check_up_to_bytes=1 << 30).version == migrations.SCHEMA_VERSION


def test_no_migration_without_room_for_its_backup(
    path: Path, next_step: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    Database.open(path).close()
    next_step(_add_colour)
    monkeypatch.setattr("shutil.disk_usage", lambda _: type("Usage", (), {"free": 1000})())

    with pytest.raises(DiskFullError, match=r"needs 0.\d MB, but only 0.0 MB"):
        Database.open(path)

    assert opening.examine(path, check_up_to_bytes=1 << 30).version == migrations.SCHEMA_VERSION
    assert not list(path.parent.glob("*backup*"))
