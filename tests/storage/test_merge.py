"""Restoring a backup: everything new is added, nothing that is there changes, and a bad file is a sentence."""

from __future__ import annotations

import contextlib
import os
import sqlite3
from pathlib import Path

import pytest

from inglenook.storage import driver
from inglenook.storage.backup import back_up
from inglenook.storage.conversation_shelf import ConversationShelf
from inglenook.storage.conversations import Conversations
from inglenook.storage.database import Database
from inglenook.storage.errors import BackupError, DiskFullError, StoppedError, StorageError
from inglenook.storage.merge import MergeReport, _computed, backup_contents, merge_backup
from inglenook.storage.messages import Messages
from inglenook.storage.migrations import SCHEMA_VERSION, migrations
from inglenook.storage.settings import Settings


@pytest.fixture
def other(tmp_path: Path, documents_of: type) -> Path:
    """Another computer's history, closed."""
    path = tmp_path / "other" / "history.db"
    with Database.open(path) as db:
        fill(db, "Bread", "How is bread made?", "Of flour.")
        tea = fill(db, "Tea", "How is tea made?", "Of leaves.")
        ConversationShelf(db).put_in_folder([tea], "Kitchen")
        document = documents_of(db)("Flour is milled grain.", "Leaves are dried.", sha256="a" * 64)
        Conversations(db).set_options(tea, {"document_ids": [document.id]})
        Settings(db).update({"chat.max_tokens": 77, "window.conversation": 9})
    return path


@pytest.fixture
def backup(other: Path, tmp_path: Path) -> Path:
    return backed_up(other, tmp_path / "all.inglenook")


def backed_up(history: Path, target: Path) -> Path:
    with Database.open(history) as db:
        back_up(db, target)
    return target


def fill(db: Database, title: str, *texts: str) -> int:
    conversation, parent = Conversations(db).create(title), None
    for number, text in enumerate(texts):
        role = "assistant" if number % 2 else "user"
        parent = Messages(db).add(conversation, role, text, parent_id=parent)  # type: ignore[arg-type]
    return conversation


def shown(db: Database) -> dict[str, list[str]]:
    return {c.title: [m.text for m in Messages(db).shown(c.id)] for c in ConversationShelf(db).entries()}


def everything(db: Database) -> dict[str, list[tuple[object, ...]]]:
    tables = ("settings", "conversations", "messages", "documents", "pages", "chunks", "sources", "folders")
    return {table: db.rows(f"SELECT * FROM {table}") for table in tables}


def test_an_empty_profile_has_all_of_the_other_one_after_it(file_db: Database, backup: Path) -> None:
    report = merge_backup(file_db, backup)

    assert report == MergeReport(conversations=2, messages=4, documents=1)
    assert list(shown(file_db)) == ["Tea", "Bread"]
    assert shown(file_db)["Tea"] == ["How is tea made?", "Of leaves."]
    tea = ConversationShelf(file_db).entries()[0]
    assert tea.folder == "Kitchen"
    document = file_db.row("SELECT id FROM documents")
    assert document is not None
    assert tea.options == {"document_ids": [document[0]]}
    assert Settings(file_db).all()["chat.max_tokens"] == 77
    assert "window.conversation" not in Settings(file_db).all()
    assert file_db.check() == []
    found = file_db.rows("SELECT rowid FROM chunk_words WHERE chunk_words MATCH 'milled'")
    assert len(found) == 1


def test_what_is_there_stays_letter_by_letter_and_ids_do_not_get_mixed_up(
    file_db: Database, backup: Path, documents_of: type
) -> None:
    mine = fill(file_db, "Mine", "A question of mine", "An answer to it")
    documents_of(file_db)("My own words.", sha256="b" * 64, path="/mine.txt")
    Settings(file_db).update({"chat.max_tokens": 5})
    before = everything(file_db)

    merge_backup(file_db, backup)

    after = everything(file_db)
    for table, rows in before.items():
        assert set(rows) <= set(after[table]), table
    assert [m.text for m in Messages(file_db).shown(mine)] == ["A question of mine", "An answer to it"]
    assert set(shown(file_db)) == {"Mine", "Tea", "Bread"}
    assert Settings(file_db).all()["chat.max_tokens"] == 5


def test_the_same_backup_twice_adds_nothing(file_db: Database, backup: Path) -> None:
    merge_backup(file_db, backup)
    before = everything(file_db)

    report = merge_backup(file_db, backup)

    assert report.is_empty
    assert (report.known_conversations, report.known_documents) == (2, 1)
    assert everything(file_db) == before


def test_a_chat_that_went_on_in_both_places_has_both_ends_as_versions(
    file_db: Database, other: Path, tmp_path: Path, backup: Path
) -> None:
    merge_backup(file_db, backup)
    tea = next(c.id for c in ConversationShelf(file_db).entries() if c.title == "Tea")
    here = Messages(file_db).shown(tea)[-1].id
    Messages(file_db).add(tea, "user", "With milk?", parent_id=here)
    with Database.open(other) as db:
        there = next(c.id for c in ConversationShelf(db).entries() if c.title == "Tea")
        last = Messages(db).shown(there)[-1].id
        Messages(db).add(there, "user", "With lemon?", parent_id=last)
        bread = next(c.id for c in ConversationShelf(db).entries() if c.title == "Bread")
        Messages(db).add(bread, "user", "And salt?", parent_id=Messages(db).shown(bread)[-1].id)

    report = merge_backup(file_db, backed_up(other, tmp_path / "later.inglenook"))

    assert (report.conversations, report.messages) == (0, 2)
    assert shown(file_db)["Tea"][-1] == "With milk?"
    assert Messages(file_db).shown(tea)[-1].num_branches == 2
    assert shown(file_db)["Bread"][-1] == "And salt?"


def test_trash_archive_pins_and_versions_come_along(file_db: Database, other: Path, tmp_path: Path) -> None:
    with Database.open(other) as db:
        bread, tea = sorted(c.id for c in ConversationShelf(db).entries())
        Conversations(db).trash(bread)
        ConversationShelf(db).pin(tea, is_pinned=True)
        ConversationShelf(db).archive(tea, is_archived=True)
        question = Messages(db).shown(tea)[0]
        Messages(db).add(tea, "assistant", "Of water.", parent_id=question.id)

    merge_backup(file_db, backed_up(other, tmp_path / "b.inglenook"))

    (archived,) = ConversationShelf(file_db).entries("archive")
    assert archived.pinned_at_ms is not None
    assert [m.text for m in Messages(file_db).shown(archived.id)] == ["How is tea made?", "Of water."]
    assert Messages(file_db).shown(archived.id)[-1].num_branches == 2
    assert [c.title for c in ConversationShelf(file_db).entries("trash")] == ["Bread"]


def test_a_reply_that_was_being_written_comes_as_cut_off(
    file_db: Database, other: Path, tmp_path: Path
) -> None:
    with Database.open(other) as db:
        chat = fill(db, "Story", "Tell one")
        question = Messages(db).shown(chat)[0]
        reply = Messages(db).begin_reply(chat, parent_id=question.id, model="m", sampling={})
        Messages(db).save_reply(reply, "Once upon", [1, 2])

    merge_backup(file_db, backed_up(other, tmp_path / "b.inglenook"))

    story = next(c.id for c in ConversationShelf(file_db).entries() if c.title == "Story")
    last = Messages(file_db).shown(story)[-1]
    assert (last.text, last.status) == ("Once upon", "interrupted")


def test_what_a_backup_holds_is_told_before(backup: Path) -> None:
    contents = backup_contents(backup)

    assert (contents.conversations, contents.messages, contents.documents) == (2, 4, 1)
    assert contents.made_at_ms > 0


def truncated(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def overwritten(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[8192:40960] = os.urandom(40960 - 8192)
    path.write_bytes(data)


def empty(path: Path) -> None:
    path.write_bytes(b"")


def text(path: Path) -> None:
    path.write_text("Dear diary")


def newer(path: Path) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA user_version = 99")
    connection.close()


def foreign(path: Path) -> None:
    path.unlink()
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE recipes(name TEXT)")
        connection.execute("PRAGMA user_version = 3")
    connection.close()


def pretending(path: Path) -> None:
    foreign(path)
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA application_id = 0x496E676C")
        connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
    connection.close()


def folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def gone(path: Path) -> None:
    path.unlink()


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (truncated, "damaged"),
        (overwritten, "damaged"),
        (empty, "not a backup of Inglenook"),
        (text, "not a backup of Inglenook"),
        (newer, f"schema 99; this program knows up to {SCHEMA_VERSION}"),
        (foreign, "another program"),
        (pretending, "damaged"),
        (folder, "not a file"),
        (gone, "cannot be read|not a file"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
@pytest.mark.slow
def test_a_file_that_cannot_be_restored_is_a_sentence_and_changes_nothing(
    file_db: Database, backup: Path, spoil: object, words: str
) -> None:
    fill(file_db, "Mine", "x")
    before = everything(file_db)
    spoil(backup)  # type: ignore[operator]

    with pytest.raises(BackupError, match=words) as refused:
        merge_backup(file_db, backup)

    assert "all.inglenook" in str(refused.value)
    assert everything(file_db) == before
    assert [p.name for p in file_db.path.parent.iterdir() if p.name.startswith("restoring-")] == []  # type: ignore[union-attr]


def test_the_history_is_no_backup_of_itself(file_db: Database) -> None:
    assert file_db.path is not None

    with pytest.raises(BackupError, match="the history itself"):
        merge_backup(file_db, file_db.path)
    with pytest.raises(BackupError, match="the history itself"):
        back_up(file_db, file_db.path)


@pytest.mark.parametrize("after", [0, 1, 2, 3])
@pytest.mark.slow
def test_stopping_at_any_moment_leaves_everything_as_it_was(
    file_db: Database, backup: Path, after: int
) -> None:
    before, asked = everything(file_db), []

    def is_stopped() -> bool:
        asked.append(1)
        return len(asked) > after

    with pytest.raises(StoppedError):
        merge_backup(file_db, backup, is_stopped=is_stopped)

    assert everything(file_db) == before


def test_making_a_backup_can_be_stopped(file_db: Database, tmp_path: Path) -> None:
    def stop(_done: int, _total: int) -> None:
        raise StoppedError("stopped")

    with pytest.raises(StoppedError):
        back_up(file_db, tmp_path / "out" / "b.inglenook", stop)

    assert list((tmp_path / "out").iterdir()) == []


def test_progress_ends_at_the_whole(file_db: Database, backup: Path) -> None:
    told: list[tuple[int, int]] = []

    merge_backup(file_db, backup, lambda done, total: told.append((done, total)))

    assert told
    assert all(0 < done <= total for done, total in told)


def test_without_room_for_the_copy_both_numbers_are_told(
    file_db: Database, backup: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shutil.disk_usage", lambda _path: type("Usage", (), {"free": 1000})())

    with pytest.raises(DiskFullError, match=r"needs 0\.\d MB.*only 0\.0 MB are free"):
        merge_backup(file_db, backup)


def test_an_older_backup_is_brought_up_to_date_without_being_changed(
    file_db: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from inglenook.storage import database, migrations, opening

    steps, old = migrations._STEPS, tmp_path / "old.inglenook"
    with monkeypatch.context() as first:
        first.setattr(migrations, "_STEPS", steps[:2])
        for module in (database, opening):
            first.setattr(module, "SCHEMA_VERSION", 2)
        with Database.open(tmp_path / "old" / "history.db") as db:
            db.execute("INSERT INTO conversations(title, folder, created_at_ms) VALUES ('Old', 'Attic', 5)")
            back_up(db, old)
    before = old.read_bytes()

    report = merge_backup(file_db, old)

    assert report.conversations == 1
    assert ConversationShelf(file_db).folders() == ["Attic"]
    assert old.read_bytes() == before


def test_a_persona_of_the_same_name_stays_and_the_other_gets_a_number(
    file_db: Database, other: Path, tmp_path: Path
) -> None:
    insert = "INSERT INTO personas(name, system, created_at_ms) VALUES (?, ?, 1)"
    file_db.execute(insert, ("Cook", "Be brief."))
    with Database.open(other) as db:
        for name, system in (("cook", "Be long."), ("Judge", "Be fair.")):
            db.execute(insert, (name, system))
    backup = backed_up(other, tmp_path / "b.inglenook")

    assert merge_backup(file_db, backup).personas == 2
    assert merge_backup(file_db, backup).personas == 0

    rows = file_db.rows("SELECT name, system FROM personas ORDER BY id")
    assert rows == [("Cook", "Be brief."), ("cook (2)", "Be long."), ("Judge", "Be fair.")]


def test_an_error_in_the_middle_takes_all_of_it_back(
    file_db: Database, backup: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = everything(file_db)

    def fail(_work: object) -> None:
        raise StorageError("The disk is full.")

    monkeypatch.setattr("inglenook.storage.merge.merge_chats", fail)
    with pytest.raises(StorageError):
        merge_backup(file_db, backup)

    assert everything(file_db) == before


@pytest.mark.parametrize(
    ("sql", "named"),
    [
        (
            "DROP TABLE settings; CREATE VIEW settings AS WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) "
            "SELECT 'key' || x AS key, '1' AS value FROM n",
            "the view 'settings'",
        ),
        (
            "DROP TABLE conversations; CREATE VIEW conversations AS WITH RECURSIVE n(x) AS "
            "(SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT x AS id FROM n",
            "the view 'conversations'",
        ),
        (
            "DROP TABLE folders; CREATE VIEW folders AS SELECT 'x' AS name; PRAGMA writable_schema = ON; "
            "UPDATE sqlite_master SET type = 'table' WHERE name = 'folders'",
            "is damaged",
        ),
        (
            "CREATE TRIGGER evil AFTER INSERT ON settings BEGIN DELETE FROM messages; END",
            "the trigger 'evil'",
        ),
        (
            "ALTER TABLE settings ADD COLUMN evil TEXT AS (hex(zeroblob(400000000)))",
            "the computed column 'settings.evil'",
        ),
        ("CREATE VIRTUAL TABLE evil USING fts5(text)", "the table 'evil'"),
    ],
)
def test_a_backup_that_computes_what_it_says_is_refused_unread(
    file_db: Database, backup: Path, sql: str, named: str
) -> None:
    with contextlib.closing(sqlite3.connect(backup)) as connection:
        connection.executescript(f"PRAGMA foreign_keys = OFF; {sql}")
    before = everything(file_db)

    for read in (backup_contents, lambda path: merge_backup(file_db, path)):
        with pytest.raises(BackupError, match=named):
            read(backup)
    assert everything(file_db) == before


def test_no_step_of_the_schema_changes_a_view_or_a_trigger_of_an_earlier_one(file_db: Database) -> None:
    names = [migration.name for migration in migrations().pending(driver.tables(driver.connect(None)))]
    newest = _computed(file_db.connection)

    for name in names[1:]:
        with contextlib.closing(driver.connect(None)) as connection:
            migrations().apply(driver.tables(connection), stop_before=name)
            assert _computed(connection) <= newest


def test_a_restoring_that_was_killed_leaves_no_copy_after_the_next_start(
    tmp_path: Path, backup: Path
) -> None:
    history = tmp_path / "here" / "history.db"
    Database.open(history).close()
    left = history.parent / "restoring-x1y2"
    left.mkdir()
    (left / "backup.db").write_bytes(backup.read_bytes())

    Database.open(history).close()

    assert not left.exists()
