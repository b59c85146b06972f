"""Opening: each kind of unusable file is refused with a sentence and left as it was, byte for byte."""

from __future__ import annotations

import os
import random
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from inglenook.storage.conversations import Conversations
from inglenook.storage.database import Database
from inglenook.storage.errors import (
    DamagedDatabaseError,
    DatabaseFileError,
    ForeignDatabaseError,
    NewerDatabaseError,
)
from inglenook.storage.messages import Messages
from inglenook.storage.migrations import APPLICATION_ID, SCHEMA_VERSION
from inglenook.storage.records import Document
from inglenook.storage.search import Search


@pytest.mark.parametrize(
    ("content", "words"),
    [(b"", "0 bytes"), (b"\0" * 8192, "not a history"), (b"SQLite format 3\0" + b"\xff" * 9000, "damaged"),
     (b"SQLite format 3\0", "damaged"), (os.urandom(5000), "not a history")],
    ids=["empty", "zeros", "header only", "cut", "noise"],
)  # fmt: skip
def test_what_is_no_database_is_refused_and_kept(path: Path, content: bytes, words: str) -> None:
    path.parent.mkdir()
    path.write_bytes(content)

    with pytest.raises(DamagedDatabaseError, match=words):
        Database.open(path)

    assert path.read_bytes() == content


def test_folder_in_place_of_the_file_is_refused(path: Path) -> None:
    path.mkdir(parents=True)

    with pytest.raises(DamagedDatabaseError, match="a folder"):
        Database.open(path)

    assert list(path.iterdir()) == []


def test_lost_main_file_is_not_replaced_while_its_changes_are_there(path: Path) -> None:
    path.parent.mkdir()
    wal = path.with_name(path.name + "-wal")
    wal.write_bytes(b"changes")

    with pytest.raises(DamagedDatabaseError, match="is gone"):
        Database.open(path)

    assert [p.name for p in path.parent.iterdir()] == [wal.name]


def test_newer_file_is_refused_with_both_versions(path: Path) -> None:
    with Database.open(path) as db:
        db.execute(f"PRAGMA user_version = {SCHEMA_VERSION + 3}")
    before = path.read_bytes()

    with pytest.raises(
        NewerDatabaseError, match=f"schema {SCHEMA_VERSION + 3}.*up to {SCHEMA_VERSION}"
    ) as caught:
        Database.open(path)

    assert (caught.value.found, caught.value.supported) == (SCHEMA_VERSION + 3, SCHEMA_VERSION)
    assert path.read_bytes() == before


def test_database_of_another_program_is_refused(path: Path) -> None:
    path.parent.mkdir()
    other = sqlite3.connect(path)
    other.execute("CREATE TABLE photos (id)")
    other.commit()
    other.close()
    before = path.read_bytes()

    with pytest.raises(ForeignDatabaseError, match="another program"):
        Database.open(path)

    assert path.read_bytes() == before


def test_ours_without_a_schema_is_refused(path: Path) -> None:
    path.parent.mkdir()
    other = sqlite3.connect(path)
    other.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    other.execute("CREATE TABLE photos (id)")
    other.commit()
    other.close()

    with pytest.raises(DamagedDatabaseError, match="schema version 0"):
        Database.open(path)


def test_crash_while_it_was_made_is_no_damage(path: Path) -> None:
    path.parent.mkdir()
    path.with_name(path.name + ".new").write_bytes(b"half")

    with Database.open(path):
        pass

    assert [p.name for p in path.parent.iterdir()] == [path.name]


@pytest.fixture(scope="module")
def crashed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with 300 messages, some still in the write-ahead file, as a crash would leave it."""
    folder = tmp_path_factory.mktemp("made") / "crashed"
    path = tmp_path_factory.mktemp("writing") / "profile" / "history.db"
    with Database.open(path) as db:
        conversation, parent = Conversations(db).create(), None
        for n in range(300):
            parent = Messages(db).add(conversation, "user", f"{n} " * 50, parent_id=parent)
            if n == 200:
                db.checkpoint()
        shutil.copytree(path.parent, folder)
    return folder


@pytest.fixture
def filled(crashed: Path, tmp_path: Path) -> Path:
    """A file of its own, as a crash left it."""
    shutil.copytree(crashed, tmp_path / "filled")
    return tmp_path / "filled" / "history.db"


@pytest.mark.slow
def test_garbled_end_of_the_write_ahead_file_gives_a_prefix(filled: Path, tmp_path: Path) -> None:
    random_ = random.Random(5)
    wal = filled.with_name(filled.name + "-wal").read_bytes()
    counts = set()

    for case in range(40):
        offset = random_.randrange(len(wal))
        folder = tmp_path / f"case-{case}"
        folder.mkdir()
        shutil.copy(filled, folder)
        tail = random_.randbytes(min(512, offset)) if case % 3 == 0 else b""
        (folder / (filled.name + "-wal")).write_bytes(wal[: offset - len(tail)] + tail)
        with Database.open(folder / filled.name) as db:
            ids = [message.id for message in Messages(db).shown(1)]
            assert db.check() == []
        assert ids == list(range(1, len(ids) + 1))
        assert len(ids) >= 201
        counts.add(len(ids))

    assert len(counts) > 10


@pytest.mark.parametrize("seed", range(12))
def test_flipped_bytes_are_refused_or_read_never_replaced(filled: Path, seed: int) -> None:
    random_ = random.Random(seed)
    filled.with_name(filled.name + "-wal").unlink()
    filled.with_name(filled.name + "-shm").unlink()
    content = bytearray(filled.read_bytes())
    for _ in range(3):
        page = random_.randrange(1, len(content) // 4096) * 4096
        for _ in range(40):
            content[page + random_.randrange(4096)] = random_.randrange(256)
    filled.write_bytes(content)

    refusal = ""
    try:
        with Database.open(filled) as db:
            db.check()
    except DatabaseFileError as error:
        refusal = str(error)

    assert not refusal or ("left as it" in refusal and filled.read_bytes() == content)


def test_damage_found_later_is_a_sentence_too(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Database.open(path) as db:
        conversation, parent = Conversations(db).create(), None
        for _ in range(200):
            parent = Messages(db).add(conversation, "user", "word " * 500, parent_id=parent)
    content = bytearray(path.read_bytes())
    content[len(content) // 3 : len(content) // 2] = b"\xa5" * (len(content) // 2 - len(content) // 3)
    path.write_bytes(content)
    monkeypatch.setattr("inglenook.storage.database.CHECKED_AT_START_BYTES", 0)

    with Database.open(path) as db:
        assert db.check() != []
        with pytest.raises(DamagedDatabaseError, match="restore a backup"):
            Messages(db).shown(conversation)


@pytest.mark.parametrize(
    "damage",
    ["DELETE FROM chunk_words_data WHERE id > 10", "UPDATE chunk_words_config SET v = 0 WHERE k = 'version'"],
)
def test_damaged_search_index_is_made_anew(
    path: Path, damage: str, documents_of: Callable[[Database], Callable[..., Document]]
) -> None:
    with Database.open(path) as db:
        documents_of(db)("a heron stands in the reeds")
        db.execute(damage)

    with Database.open(path) as db:
        hits = Search(db).search("heron", limit=3)

        assert "made anew" in db.notice
        assert db.check() == []
    assert [hit.chunk.text for hit in hits] == ["a heron stands in the reeds"]


@pytest.fixture
def read_only(path: Path) -> Iterator[Path]:
    """A whole database in a folder that an ordinary user may read but not write."""
    with Database.open(path) as db:
        Conversations(db).create("kept")
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "profile" / path.name
        shutil.copytree(path.parent, target.parent)
        Path(folder).chmod(0o755)
        target.chmod(0o444)
        target.parent.chmod(0o555)
        yield target
        target.parent.chmod(0o755)


_READER = """
import os, sys
from pathlib import Path
from inglenook.storage.conversations import Conversations
from inglenook.storage.database import Database
from inglenook.storage.errors import ReadOnlyError

if os.getuid() == 0:
    # Root may write anywhere, so the test must not be root.
    os.setresgid(65534, 65534, 65534)
    os.setresuid(65534, 65534, 65534)
with Database.open(Path(sys.argv[1])) as db:
    assert db.is_read_only and "cannot be written" in db.notice, db.notice
    assert [c.title for c in Conversations(db).entries()] == ["kept"]
    with db.open_reader() as reader:
        assert Conversations(reader).count() == 1
    try:
        Conversations(db).create("new")
    except ReadOnlyError as error:
        print(error)
"""


def test_read_only_medium_is_read_and_says_so(read_only: Path) -> None:
    before = read_only.read_bytes()

    result = subprocess.run(
        [sys.executable, "-c", _READER, str(read_only)], capture_output=True, text=True, timeout=60
    )

    assert (result.returncode, result.stderr) == (0, "")
    assert "cannot be written" in result.stdout
    assert read_only.read_bytes() == before
    assert [p.name for p in read_only.parent.iterdir()] == [read_only.name]
