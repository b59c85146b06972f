"""A full disk: a typed error, nothing of the change kept, all that was there before intact."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from inglenook.storage.conversations import Conversations
from inglenook.storage.database import Database
from inglenook.storage.errors import DiskFullError
from inglenook.storage.messages import Messages


def test_full_disk_is_a_sentence_and_takes_nothing_back(file_db: Database) -> None:
    conversation = Conversations(file_db).create()
    first = Messages(file_db).add(conversation, "user", "kept", parent_id=None)
    pages = file_db.row("PRAGMA page_count")
    assert pages is not None
    file_db.execute(f"PRAGMA max_page_count = {pages[0]}")

    with pytest.raises(DiskFullError, match=r"The disk is full: [\d,.]+ MB free"):
        Messages(file_db).add(conversation, "user", "too much " * 100_000, parent_id=first)
    file_db.execute("PRAGMA max_page_count = 1000000")
    second = Messages(file_db).add(conversation, "user", "again", parent_id=first)

    assert [m.text for m in Messages(file_db).shown(conversation)] == ["kept", "again"]
    assert second == first + 1
    assert file_db.check() == []


_SCRIPT = """
import resource, sys
from pathlib import Path
from inglenook.storage.conversations import Conversations
from inglenook.storage.database import Database
from inglenook.storage.errors import DiskError, DiskFullError
from inglenook.storage.messages import Messages

path = Path(sys.argv[1])
if sys.argv[2] == "limit":
    resource.setrlimit(resource.RLIMIT_FSIZE, (1_500_000, 1_500_000))
db = Database.open(path)
conversation, parent, done = Conversations(db).create(), None, 0
try:
    while True:
        parent = Messages(db).add(conversation, "user", "word " * 2000, parent_id=parent)
        done += 1
except (DiskFullError, DiskError) as error:
    print(type(error).__name__, file=sys.stderr)
assert len(Messages(db).shown(conversation)) == done > 3, done
db.close()
try:
    with Database.open(path) as db:
        assert db.check() == [], db.check()
        assert len(Messages(db).shown(conversation)) == done
except (DiskFullError, DiskError) as error:
    print("could not open again:", error, file=sys.stderr)
    sys.exit(3)
"""


def test_file_size_limit_takes_nothing_back(path: Path) -> None:
    result = subprocess.run(
        [sys.executable, "-c", _SCRIPT, str(path), "limit"], capture_output=True, text=True, timeout=100
    )

    assert result.returncode == 0, result.stderr
    assert result.stderr.strip() in ("DiskError", "DiskFullError")


def test_really_full_disk_takes_nothing_back(tmp_path: Path) -> None:
    unshare = shutil.which("unshare")
    if unshare is None:
        pytest.skip("a small disk needs the program unshare")
    mount = f"mount -t tmpfs -o size=2m none '{tmp_path}' && exec \"$@\""
    command = [unshare, "--mount", "sh", "-c", mount, "sh"]
    if subprocess.run([*command, "true"], capture_output=True, check=False).returncode != 0:
        pytest.skip("a small disk needs the right to mount one")

    result = subprocess.run(
        [*command, sys.executable, "-c", _SCRIPT, str(tmp_path / "history.db"), "disk"],
        capture_output=True,
        text=True,
        timeout=100,
    )

    assert result.returncode == 0, result.stderr
    assert result.stderr.strip() == "DiskFullError"
