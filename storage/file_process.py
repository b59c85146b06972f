"""Work on the bytes of a database's files, in a process of its own: searching them, and overwriting slack.

A process that closes any descriptor of a file gives up all its locks on it (POSIX), those of SQLite's connections too, so
the process that has the database open must not open the file beside SQLite. One job is read from standard input as
JSON, its result written to standard output; nothing is logged.

    python -I -m inglenook.storage.file_process
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from inglenook.storage import driver
from inglenook.storage.errors import DatabaseBusyError, DiskError, StorageError
from inglenook.storage.page_slack import SlackError, zero_slack

_READ_BYTES = 1 << 22
# a disk that reads 20 MB a second, and a start
_SECONDS_PER_BYTE = 1 / 20e6
_LEAST_S = 60.0
_BUSY_TIMEOUT_MS = 5000


def scrub(path: Path) -> int | None:
    """Overwrite what lies between the cells of a database; return how many bytes were not zero.

    None where another program writes, or has written since the last checkpoint; nothing was changed then. The process
    holds the write lock itself, so that it keeps it when the caller is killed. Pages that connections have in memory
    stay as they are.

    Raises:
        DiskError: it could not be done; nothing that counts was changed.
    """
    result = _run(path, {"work": "scrub", "path": str(path)})
    return None if result is None else int(result)


def search(path: Path, needles: Sequence[Sequence[bytes]]) -> set[int]:
    """Return the indexes of those needles of which a file holds any spelling.

    Raises:
        DiskError: the file could not be read.
    """
    texts = [[each.hex() for each in needle] for needle in needles]
    return set(_run(path, {"work": "search", "path": str(path), "needles": texts}))


def _run(path: Path, job: dict[str, Any]) -> Any:
    timeout_s = _LEAST_S + path.stat().st_size * _SECONDS_PER_BYTE
    try:
        done = subprocess.run(
            [sys.executable, "-I", "-m", "inglenook.storage.file_process"],
            input=json.dumps(job).encode(),
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=timeout_s,
            check=False,
        )
        answer = json.loads(done.stdout)
    except (OSError, ValueError, subprocess.TimeoutExpired) as error:
        raise DiskError(
            f"'{path}' could not be looked through ({type(error).__name__}). Try again."
        ) from error
    if "error" in answer:
        raise DiskError(f"'{path}' could not be looked through: {answer['error']}. Try again.")
    return answer["result"]


def main() -> int:
    """Do one job; returns the exit status."""
    job = json.load(sys.stdin)
    path = Path(job["path"])
    try:
        result: object = _scrubbed(path) if job["work"] == "scrub" else _found_in(path, job["needles"])
    except (OSError, SlackError, StorageError) as error:
        print(json.dumps({"error": error.strerror if isinstance(error, OSError) else str(error)}))
        return 1
    print(json.dumps({"result": result}))
    return 0


def _scrubbed(path: Path) -> int | None:
    connection = driver.connect(path, mode="rw", busy_timeout_ms=_BUSY_TIMEOUT_MS)
    try:
        connection.execute("BEGIN IMMEDIATE")
        wal = path.with_name(f"{path.name}-wal")
        return None if wal.exists() and wal.stat().st_size else zero_slack(path)
    except DatabaseBusyError:
        return None
    finally:
        connection.close()


def _found_in(path: Path, texts: Sequence[Sequence[str]]) -> list[int]:
    needles = [[bytes.fromhex(each) for each in needle] for needle in texts]
    found: set[int] = set()
    keep = max((len(each) for needle in needles for each in needle), default=1)
    before = b""
    with open(path, "rb") as file:
        while piece := file.read(_READ_BYTES):
            window = before + piece
            found |= {i for i, needle in enumerate(needles) if any(each in window for each in needle)}
            before = window[-keep:]
    return sorted(found)


if __name__ == "__main__":
    sys.exit(main())
