"""Backups: consistent while the database is written, verified, never half."""

from __future__ import annotations

from pathlib import Path

import pytest

from inglenook.storage.backup import back_up
from inglenook.storage.conversations import Conversations
from inglenook.storage.database import Database
from inglenook.storage.errors import BackupError, StorageError


def test_backup_of_a_live_database_has_all_of_it(file_db: Database, tmp_path: Path) -> None:
    for n in range(20):
        Conversations(file_db).create(str(n))
    steps: list[tuple[int, int]] = []

    back_up(file_db, tmp_path / "kept" / "copy.db", lambda done, total: steps.append((done, total)))

    with Database.open(tmp_path / "kept" / "copy.db") as copy:
        assert Conversations(copy).count() == 20
    assert steps[-1][0] == steps[-1][1] > 0


def test_backup_replaces_an_older_one(file_db: Database, tmp_path: Path) -> None:
    target = tmp_path / "copy.db"
    back_up(file_db, target)
    Conversations(file_db).create("new")

    back_up(file_db, target)

    with Database.open(target) as copy:
        assert Conversations(copy).count() == 1


def test_failed_backup_leaves_the_older_one_and_no_half(
    file_db: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "kept" / "copy.db"
    back_up(file_db, target)
    before = target.read_bytes()

    def damaged(*_: object) -> bool:
        raise StorageError("damaged")

    monkeypatch.setattr("inglenook.storage.opening.indexes_are_sound", damaged)
    with pytest.raises(BackupError, match=r"copy.db.*could not be made"):
        back_up(file_db, target)

    assert target.read_bytes() == before
    assert [p.name for p in target.parent.iterdir()] == [target.name]
