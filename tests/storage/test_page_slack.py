"""Copies that moved rows leave between others: found, overwritten, and nothing else touched."""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from inglenook.storage.database import Database
from inglenook.storage.documents import Documents
from inglenook.storage.errors import DiskError
from inglenook.storage.file_process import scrub, search
from inglenook.storage.forget import forget_documents
from inglenook.storage.forget_receipt import forget_with_receipt
from inglenook.storage.page_slack import SlackError, zero_slack
from inglenook.storage.records import Document

AddDocument = Callable[..., Document]
_ALPHABETS = (
    "abcdefghijklmnopqrstuvwxyz",
    "абвгдежзиклмнопрстуфхцчшщ",
    "ابتثجحخدذرزسشصضطظعغفقكلمن",
    "中文字密語暗号秘書類日本国学校機関連絡先",
)


def _word(rng: random.Random) -> str:
    return "".join(rng.choices(rng.choice(_ALPHABETS), k=rng.randint(8, 12)))


def fill(db: Database, add: AddDocument, seed: int, count: int) -> dict[int, set[str]]:
    """Store documents of all sizes, some deleted in between; return the words of each that is left."""
    rng = random.Random(seed)
    words: dict[int, set[str]] = {}
    for i in range(count):
        pages = [[_word(rng) for _ in range(rng.choice((2, 5, 20, 60)))] for _ in range(rng.randint(1, 6))]
        title, name = _word(rng), _word(rng)
        texts = [" ".join(page) for page in pages]
        document = add(*texts, path=f"/x/{name}.txt", sha256=f"{seed}-{i}", title=title)
        words[document.id] = {word for page in pages for word in page} | {title, name}
        if i % 4 == 3:
            Documents(db).delete(document.id)
            del words[document.id]
        if i % 7 == 6:
            db.execute("ANALYZE")
    return words


def held(path: Path, words: set[str]) -> set[str]:
    content = b"".join(file.read_bytes() for file in path.parent.iterdir() if file.is_file())
    pieces = {piece for word in words for piece in (word, word[:8], word[-8:])}
    return {piece for piece in pieces if piece.encode() in content}


def test_no_piece_of_a_forgotten_word_is_left_however_rows_moved(
    file_db: Database, path: Path, documents_of: Callable[[Database], AddDocument]
) -> None:
    words = fill(file_db, documents_of(file_db), 0, 18)
    gone = random.Random(0).sample(sorted(words), len(words) // 2)
    secret = set().union(*(words[i] for i in gone))
    before = held(path, secret)

    complete = forget_documents(file_db, gone)

    assert complete
    assert len(before) >= len(secret)
    assert held(path, secret) == set()
    assert file_db.check() == []


def test_slack_comes_back_neither_by_later_writes_nor_by_closing(
    file_db: Database, path: Path, documents_of: Callable[[Database], AddDocument]
) -> None:
    add = documents_of(file_db)
    words = fill(file_db, add, 2, 16)
    gone = sorted(words)[:6]
    secret = set().union(*(words[i] for i in gone))
    forget_documents(file_db, gone)

    fill(file_db, add, 3, 6)
    file_db.close()

    assert held(path, secret) == set()


def test_what_is_overwritten_is_slack_alone(
    file_db: Database, path: Path, documents_of: Callable[[Database], AddDocument]
) -> None:
    fill(file_db, documents_of(file_db), 4, 16)
    file_db.checkpoint()
    rows = [
        file_db.rows(f"SELECT * FROM {table}")
        for table in ("chunks", "pages", "documents", "chunk_words_data")
    ]

    num_zeroed = scrub(path), scrub(path)

    file_db.execute("PRAGMA shrink_memory").fetchall()
    assert num_zeroed[0] is not None
    assert num_zeroed[0] > 0
    assert num_zeroed[1] == 0
    assert rows == [
        file_db.rows(f"SELECT * FROM {table}")
        for table in ("chunks", "pages", "documents", "chunk_words_data")
    ]
    assert file_db.check() == []


@pytest.mark.parametrize("page_size", [512, 4096, 65536])
def test_pages_of_every_size_are_walked(tmp_path: Path, page_size: int) -> None:
    path = tmp_path / "other.db"
    rng = random.Random(5)
    with sqlite3.connect(path) as db:
        db.execute(f"PRAGMA page_size = {page_size}")
        db.execute("PRAGMA auto_vacuum = FULL")
        db.execute("CREATE TABLE t(a TEXT, b BLOB)")
        db.execute("CREATE INDEX i ON t(a)")
        for n in range(4000):
            db.execute(
                "INSERT INTO t VALUES (?, ?)",
                (_word(rng), bytes(rng.choice((0, 10, 700, 9000)) * (n % 9 == 0))),
            )
        db.execute("DELETE FROM t WHERE rowid % 3 = 0")
    db.close()

    zeroed = zero_slack(path)

    with sqlite3.connect(path) as db:
        assert db.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert db.execute("SELECT count(*) FROM t").fetchone() == (2667,)
    db.close()
    assert zeroed > 0


def test_files_that_do_not_fit_are_refused_unchanged(tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    with sqlite3.connect(path) as db:
        db.execute("CREATE TABLE t(a TEXT)")  # no pointer map
    db.close()
    plain = path.read_bytes()

    with pytest.raises(SlackError, match="pointer map"):
        zero_slack(path)
    with pytest.raises(DiskError, match=r"other\.db.*pointer map"):
        scrub(path)
    assert path.read_bytes() == plain
    path.write_bytes(b"text, not a database" * 40)
    with pytest.raises(SlackError, match="begin as"):
        zero_slack(path)


def test_the_planner_s_samples_hold_no_path(
    file_db: Database, path: Path, documents_of: Callable[[Database], AddDocument]
) -> None:
    add = documents_of(file_db)
    for i in range(20):
        add("text", path=f"/open-{i}.txt", sha256=str(i))
    document = add("text", path="/zanzibarquux-file.txt", sha256="secret")
    file_db.execute("ANALYZE")
    before = held(path, {"zanzibarquux"})

    forget_documents(file_db, [document.id])

    assert before
    assert not held(path, {"zanzibarquux"})


def test_nothing_is_overwritten_while_another_program_writes_or_has_written(
    file_db: Database, path: Path, documents_of: Callable[[Database], AddDocument]
) -> None:
    fill(file_db, documents_of(file_db), 5, 6)
    before = path.read_bytes()

    assert scrub(path) is None
    assert path.read_bytes() == before
    file_db.checkpoint()
    assert scrub(path) is not None


def test_searching_and_scrubbing_take_no_lock_of_the_open_database(
    file_db: Database, path: Path, documents_of: Callable[[Database], AddDocument]
) -> None:
    document = documents_of(file_db)(
        "The zanzibarite deposits near Quorvale were surveyed by Miss Thistlewood."
    )
    locks = Path("/proc/locks")
    if not locks.exists():
        pytest.skip("only Linux tells its locks in /proc/locks")
    inode = f":{path.stat().st_ino} "
    before = [line.split(":", 1)[1] for line in locks.read_text().splitlines() if inode in line]

    receipt = forget_with_receipt(file_db, [document.id])

    after = [line.split(":", 1)[1] for line in locks.read_text().splitlines() if inode in line]
    assert receipt.is_clean
    assert before
    assert after == before


def test_a_needle_on_the_border_of_two_pieces_is_found(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(bytes((1 << 22) - 3) + b"needle" + bytes(100))

    assert search(path, [[b"needle"], [b"other"], [b"x", b"edl"]]) == {0, 2}
