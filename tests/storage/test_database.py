"""The database: its settings, transactions, readers, and what survives a kill."""

from __future__ import annotations

import os
import signal
import sqlite3
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from inglenook.storage.conversations import Conversations
from inglenook.storage.database import Database
from inglenook.storage.errors import DatabaseBusyError, DatabaseClosedError, ReadOnlyError
from inglenook.storage.messages import Messages
from inglenook.storage.settings import Settings


def test_writer_has_the_promised_settings(file_db: Database) -> None:
    names = (
        "journal_mode synchronous foreign_keys busy_timeout wal_autocheckpoint journal_size_limit temp_store"
    )
    names += " trusted_schema cell_size_check secure_delete auto_vacuum"

    values = {name: (file_db.row(f"PRAGMA {name}") or [None])[0] for name in names.split()}

    assert values == {
        "journal_mode": "wal",
        "synchronous": 2,
        "foreign_keys": 1,
        "busy_timeout": 5000,
        "wal_autocheckpoint": 1000,
        "journal_size_limit": 64 << 20,
        "temp_store": 2,
        "trusted_schema": 0,
        "cell_size_check": 1,
        "secure_delete": 1,
        "auto_vacuum": 2,
    }


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o777])
def test_files_and_folders_are_private_under_any_umask(tmp_path: Path, umask: int) -> None:
    path = tmp_path / "a" / "b" / "history.db"
    before = os.umask(umask)
    try:
        with Database.open(path) as db:
            Settings(db).set("a", 1)
            modes = {
                p.name: stat.S_IMODE(p.stat().st_mode) for p in [tmp_path / "a", *(tmp_path / "a").rglob("*")]
            }
    finally:
        os.umask(before)

    assert modes == {
        "a": 0o700,
        "b": 0o700,
        "history.db": 0o600,
        "history.db-wal": 0o600,
        "history.db-shm": 0o600,
    }


def test_file_that_others_could_read_is_made_private(path: Path) -> None:
    Database.open(path).close()
    path.chmod(0o644)

    with Database.open(path):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_failed_block_leaves_nothing_behind(db: Database) -> None:
    def fail_half_way() -> None:
        with db.atomic():
            Settings(db).set("a", 1)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail_half_way()

    assert Settings(db).all() == {}


def test_error_of_our_own_is_the_standard_librarys(db: Database) -> None:
    with pytest.raises(sqlite3.OperationalError, match="no such column"):
        db.row("SELECT none_such FROM settings")
    with pytest.raises(sqlite3.IntegrityError):
        db.execute("INSERT INTO settings(key, value) VALUES ('a', NULL)")


def test_reader_sees_the_last_commit_and_writes_nothing(file_db: Database) -> None:
    with file_db.open_reader() as reader:
        with file_db.atomic():
            Settings(file_db).set("a", 1)
            during = Settings(reader).all()
        after = Settings(reader).all()
        with pytest.raises(ReadOnlyError):
            Settings(reader).set("a", 2)

    assert (during, after) == ({}, {"a": 1})


def test_second_writer_is_told_after_the_wait(file_db: Database, path: Path) -> None:
    with Database.open(path) as second:
        second.execute("PRAGMA busy_timeout = 20")

        with file_db.atomic(), pytest.raises(DatabaseBusyError, match="in use"), second.atomic():
            pass


def test_another_thread_is_refused(file_db: Database) -> None:
    caught: list[BaseException] = []

    def use() -> None:
        try:
            file_db.row("SELECT 1")
        except sqlite3.ProgrammingError as error:
            caught.append(error)

    thread = threading.Thread(target=use)
    thread.start()
    thread.join(10)

    assert len(caught) == 1


def test_closed_database_says_so_and_closes_twice(path: Path) -> None:
    db = Database.open(path)
    db.close()
    db.close()

    with pytest.raises(DatabaseClosedError):
        db.row("SELECT 1")


def test_clean_end_leaves_one_file(path: Path) -> None:
    with Database.open(path) as db:
        Settings(db).set("a", 1)

    assert [p.name for p in path.parent.iterdir()] == [path.name]


def test_checkpoint_says_when_a_reader_holds_it(file_db: Database) -> None:
    file_db.execute("PRAGMA busy_timeout = 20")
    with file_db.open_reader() as reader:
        reader.execute("BEGIN")
        reader.row("SELECT count(*) FROM settings")
        Settings(file_db).set("a", 1)
        held = file_db.checkpoint()
        reader.execute("ROLLBACK")

        assert (held, file_db.checkpoint()) == (False, True)


_WRITER = """
import sys
from pathlib import Path
from inglenook.storage.conversations import Conversations
from inglenook.storage.database import Database
from inglenook.storage.messages import Messages

db = Database.open(Path(sys.argv[1]))
conversation, messages, parent = Conversations(db).create(), Messages(db), None
for turn in range(100_000):
    question = messages.add(conversation, "user", f"question {turn}", parent_id=parent)
    print("question", question, flush=True)
    parent = messages.begin_reply(conversation, parent_id=question, model="m", sampling={})
    for n in range(3):
        messages.save_reply(parent, "word " * (n + 1), list(range(n + 1)))
        print("saved", parent, n + 1, flush=True)
    if turn % 2:
        messages.finish_reply(parent, "whole", [1], finish_reason="stop")
        print("finished", parent, flush=True)
"""


@pytest.mark.parametrize("num_lines", [1, 2, 7, 40, 101])
@pytest.mark.slow
def test_killed_writer_loses_nothing_acknowledged(path: Path, num_lines: int) -> None:
    acknowledged = _kill_after(path, num_lines)

    with Database.open(path) as db:
        interrupted = Messages(db).mark_interrupted()
        shown = {
            message.id: message for message in Messages(db).shown(Conversations(db).entries(limit=1)[0].id)
        }

        assert db.check() == []
    assert len(acknowledged) >= num_lines
    for kind, message_id, *rest in acknowledged:
        message = shown[int(message_id)]
        if kind == "question":
            assert message.text.startswith("question")
        elif kind == "finished":
            assert (message.text, message.status) == ("whole", "complete")
        elif message.status == "interrupted":
            assert message.text.count("word") >= int(rest[0])
    statuses = [message.status for message in shown.values()]
    assert "streaming" not in statuses
    assert statuses.count("interrupted") == interrupted


def _kill_after(path: Path, num_lines: int) -> list[list[str]]:
    with subprocess.Popen(
        [sys.executable, "-c", _WRITER, str(path)], stdout=subprocess.PIPE, text=True
    ) as writer:
        assert writer.stdout is not None
        lines = [writer.stdout.readline() for _ in range(num_lines)]
        writer.send_signal(signal.SIGKILL)
        lines += [line for line in writer.stdout.readlines() if line.endswith("\n")]
    return [line.split() for line in lines]
