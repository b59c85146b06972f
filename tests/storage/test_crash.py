"""Killed at any moment while it indexes, a file is sound, goes on where it was, and holds nothing twice."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from inglenook.storage.database import Database
from inglenook.storage.documents import Documents
from inglenook.storage.search import Search

NUM_DOCUMENTS = 40
_PAGES = 120

# Says a line for each slice, so that the killer knows where it is.
_INDEXER = """
import sys
from pathlib import Path
import numpy as np
from inglenook.storage.database import Database
from inglenook.storage.documents import Documents
from inglenook.storage.parsing.document import Chunk, ParsedPage
from inglenook.storage.vectors import Vectors

num_documents, num_pages = int(sys.argv[2]), int(sys.argv[3])
rng = np.random.default_rng(0)
with Database.open(Path(sys.argv[1])) as db:
    documents, vectors = Documents(db), Vectors(db)
    documents.requeue_unfinished()
    for number in range(num_documents):
        documents.add(f"/{number}", name=str(number), sha256=str(number), size_bytes=1, modified_at_ns=1)
    for document in documents.waiting():
        documents.begin_version(document.version_id)
        for start in range(0, num_pages, 20):
            pages = [ParsedPage(index=i, text=f"heron {i} of document {document.name}") for i in range(start, start + 20)]
            documents.add_pages(
                document.version_id,
                pages,
                [Chunk(page_index=p.index, page_label=None, start=0, end=len(p.text), text=p.text, context="") for p in pages],
            )
            print("slice", flush=True)
        documents.finish_version(document.version_id, kind="text")
        waiting = vectors.chunks_without_vectors("m", 1000)
        vectors.add("m", [w.chunk_id for w in waiting], rng.standard_normal((len(waiting), 16), np.float32))
        print("vectors", flush=True)
    while waiting := vectors.chunks_without_vectors("m", 1000):
        vectors.add("m", [w.chunk_id for w in waiting], rng.standard_normal((len(waiting), 16), np.float32))
print("done", flush=True)
"""


def _index(path: Path, kill_after: int | None) -> bool:
    """Run the indexer, killed after so many lines; return whether it came to its end."""
    command = [sys.executable, "-c", _INDEXER, str(path), str(NUM_DOCUMENTS), str(_PAGES)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for count, line in enumerate(process.stdout, 1):
            if line == "done\n":
                return process.wait(30) == 0
            if count == kill_after:
                process.send_signal(signal.SIGKILL)
        assert process.wait(30) == -signal.SIGKILL
    return False


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_fifty_kills_leave_a_sound_file_without_doubles(tmp_path: Path) -> None:
    path, rng = tmp_path / "history.db", random.Random(1)

    for _ in range(50):
        assert not _index(path, kill_after=rng.randint(1, 9))
        with Database.open(path) as db:
            assert db.check() == []
            assert len(Search(db).search("heron", limit=5)) <= 5
    assert _index(path, kill_after=None)

    with Database.open(path) as db:
        assert db.check() == []
        entries = Documents(db).entries()
        assert [document.status for document in entries] == ["ready"] * NUM_DOCUMENTS
        assert [document.num_chunks for document in entries] == [_PAGES] * NUM_DOCUMENTS
        for table in ("pages", "chunks", "chunk_vectors"):
            assert db.row(f"SELECT count(*) FROM {table}") == (NUM_DOCUMENTS * _PAGES,)
        assert db.row("SELECT sum(num_alive) FROM vector_blocks") == (NUM_DOCUMENTS * _PAGES,)
