"""`inglenook backup` and `inglenook restore`, from one profile to another."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from inglenook.app.cli import run
from inglenook.app.paths import user_folders
from inglenook.app.single_instance import SingleInstance
from inglenook.storage.conversations import Conversations
from inglenook.storage.database import Database
from inglenook.storage.messages import Messages


def use_profile(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    for name in ("DATA", "CONFIG", "STATE", "CACHE"):
        monkeypatch.setenv(f"XDG_{name}_HOME", str(folder / name.lower()))


@pytest.fixture
def backup(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    use_profile(monkeypatch, tmp_path / "one")
    data = user_folders().data
    data.mkdir(parents=True)
    with Database.open(data / "history.db") as db:
        chat = Conversations(db).create("About bread")
        Messages(db).add(chat, "user", "Flour?", parent_id=None)
    assert run(["backup", str(tmp_path / "all.inglenook")]) == 0
    return tmp_path / "all.inglenook"


def test_everything_moves_to_another_profile_and_twice_adds_nothing(
    backup: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["backup", str(backup), "--replace"]) == 0
    assert "Backed up 1 chats, 1 messages and 0 documents" in capsys.readouterr().out
    assert backup.stat().st_mode & 0o077 == 0
    use_profile(monkeypatch, tmp_path / "two")

    assert run(["restore", str(backup), "--look"]) == 0
    assert "holds 1 chats, 1 messages" in capsys.readouterr().out
    assert run(["restore", str(backup), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["conversations"] == 1
    assert run(["restore", str(backup)]) == 0

    assert "nothing was added" in capsys.readouterr().out
    with Database.open(user_folders().data / "history.db") as db:
        assert Conversations(db).count() == 1


def test_a_file_that_is_there_is_written_over_only_when_meant(
    backup: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = backup.read_bytes()
    assert run(["backup", str(backup)]) == 1
    assert "is there already" in capsys.readouterr().err
    assert backup.read_bytes() == before

    assert run(["backup", str(backup), "--replace"]) == 0
    assert run(["backup", str(backup.parent)]) == 2


@pytest.mark.parametrize("content", [b"", b"Dear diary", b"SQLite format 3\x00" + bytes(4000)])
def test_what_is_no_backup_is_one_sentence(
    backup: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], content: bytes
) -> None:
    bad = tmp_path / "bad.inglenook"
    bad.write_bytes(content)
    capsys.readouterr()

    for more in ([], ["--look"]):
        assert run(["restore", str(bad), *more]) == 1
        said = capsys.readouterr().err
        assert "bad.inglenook" in said
        assert len(said.splitlines()) == 1
    assert run(["restore", str(tmp_path / "missing")]) == 1


def test_nothing_is_backed_up_where_nothing_was_kept_nor_while_the_window_is_open(
    backup: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with SingleInstance(user_folders().data) as instance:
        assert instance.acquire()
        assert run(["backup", str(tmp_path / "more.inglenook")]) == 1
    assert "Do this in its window" in capsys.readouterr().err
    use_profile(monkeypatch, tmp_path / "none")

    assert run(["backup", str(tmp_path / "more.inglenook")]) == 1

    assert "nothing to back up" in capsys.readouterr().err
    assert not (tmp_path / "more.inglenook").exists()
