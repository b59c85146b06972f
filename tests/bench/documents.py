"""How fast documents are read, searched, opened and passed over; the last line is one JSON object.

Text ready: a generated PDF from file to searchable rows. Queries: synthetic passages drawn from a Zipf vocabulary with
random vectors, so the figures are of the data structures and not of quality. Medians of `--runs`.

    python tests/bench/documents.py --json                                      # all at 100,000 passages: 3 minutes
    python tests/bench/documents.py --part queries --chunks 1000000 --json      # a million: 10 minutes and 3.5 GB of disk
    python tests/bench/documents.py --part queries --database FILE --seconds 150    # store a part of them in FILE, go on with
                                                                                # the next call, and ask when all are there
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import resource
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from inglenook.app.cli import run
from inglenook.storage.database import Database
from inglenook.storage.documents import Documents
from inglenook.storage.parsing.client import ParserClient
from inglenook.storage.parsing.document import Chunk, ParsedPage
from inglenook.storage.search import Search
from inglenook.storage.vectors import Vectors

sys.path.insert(0, str(Path(__file__).parent))
from citations import invent_facts, write_pdf

DIMENSION = 384
_EMBEDDER = "bench"
_VOCABULARY = 60_000
_WORDS = 120
_CHUNKS_PER_DOCUMENT = 500
_QUERIES = 60
PARTS = ("text", "queries", "files")


def text_ready(folder: Path, num_pages: int, runs: int) -> dict[str, float]:
    """Read a PDF into a database file, `runs` times."""
    path = write_pdf(folder / "survey.pdf", invent_facts(num_pages))
    times: list[float] = []
    with ParserClient() as parser:
        parser.parse(path)
        for number in range(runs):
            with Database.open(folder / f"text {number}.db") as db:
                documents = Documents(db)
                started = time.perf_counter()
                parsed = parser.parse(path)
                document, _ = documents.add(
                    str(path), name=path.name, sha256=parsed.sha256, size_bytes=1, modified_at_ns=1
                )
                documents.store(document.version_id, parsed)
                times.append(time.perf_counter() - started)
    return {"text_ready_pages_per_s": round(num_pages / statistics.median(times), 1)}


def fill(path: Path, num_chunks: int, words: Sequence[str], max_seconds: float) -> int:
    """Bring a file to so many synthetic passages with vectors; return how many it has when the time is up."""
    deadline = time.monotonic() + max_seconds
    with Database.open(path) as db:
        row = db.row("SELECT count(*) FROM chunks")
        done = int(row[0]) if row else 0
        while done < num_chunks and time.monotonic() < deadline:
            # Each part from a seed of its own, so that a file that was filled in pieces is the same.
            count = min(_CHUNKS_PER_DOCUMENT, num_chunks - done)
            _add_part(db, done, count, words)
            done += count
            print(f"\rstored {done:,} of {num_chunks:,} passages", end="", file=sys.stderr)
    return done


def _add_part(db: Database, start: int, count: int, words: Sequence[str]) -> None:
    documents, vectors, rng = Documents(db), Vectors(db), np.random.default_rng(start + 1)
    ranks = np.minimum(rng.zipf(1.2, (count, _WORDS)), len(words)) - 1
    texts = [" ".join(words[i] for i in row) for row in ranks.tolist()]
    document, _ = documents.add(
        f"/{start}", name=f"{start}.txt", sha256=str(start), size_bytes=1, modified_at_ns=1
    )
    with db.atomic():
        documents.begin_version(document.version_id)
        documents.add_pages(
            document.version_id,
            [ParsedPage(index=i, text=text) for i, text in enumerate(texts)],
            [
                Chunk(page_index=i, page_label=None, start=0, end=len(text), text=text, context="")
                for i, text in enumerate(texts)
            ],
        )
        documents.finish_version(document.version_id, kind="text")
        rows = db.rows("SELECT id FROM chunks WHERE version_id = ? ORDER BY id", (document.version_id,))
        values = rng.standard_normal((len(rows), DIMENSION), np.float32)
        vectors.add(_EMBEDDER, [row[0] for row in rows], values)


def queries(path: Path, words: Sequence[str], runs: int) -> dict[str, float]:
    """Open the file for a first query, then ask many; `runs` times."""
    rng = np.random.default_rng(0)
    asked = [
        " ".join(words[i] for i in np.minimum(rng.zipf(1.2, 8), len(words)) - 1) for _ in range(_QUERIES)
    ]
    vectors: NDArray[np.float32] = rng.standard_normal((_QUERIES, DIMENSION), np.float32)
    opened, middle, slow = [], [], []
    for _ in range(runs):
        started = time.perf_counter()
        with Database.open(path) as db, db.open_reader() as reader:
            search = Search(reader)
            search.search(asked[0], limit=24, vector=vectors[0], embedder=_EMBEDDER)
            opened.append(time.perf_counter() - started)
            times = []
            for question, vector in zip(asked, vectors, strict=True):
                before = time.perf_counter()
                search.search(question, limit=24, vector=vector, embedder=_EMBEDDER)
                times.append(1000 * (time.perf_counter() - before))
        times.sort()
        middle.append(statistics.median(times))
        slow.append(times[int(0.95 * len(times))])
    return {
        "cold_open_s": round(statistics.median(opened), 3),
        "query_p50_ms": round(statistics.median(middle), 1),
        "query_p95_ms": round(statistics.median(slow), 1),
    }


def unchanged_files(folder: Path, num_files: int, runs: int) -> dict[str, float]:
    """Add a folder of files once, then again and again."""
    papers = folder / "papers"
    papers.mkdir()
    for number in range(num_files):
        (papers / f"{number}.txt").write_text(f"Note {number} about herons.")
    os.environ["XDG_DATA_HOME"] = str(folder / "share")
    times = []
    for number in range(runs + 1):
        started = time.perf_counter()
        with contextlib.redirect_stdout(io.StringIO()) as out:
            run(["documents", "add", str(papers), "--json", "--words-only"])
        if number:
            times.append(time.perf_counter() - started)
            assert json.loads(out.getvalue())["unchanged"] == num_files
    return {"unchanged_s": round(statistics.median(times), 2)}


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure; returns the exit status."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--part", choices=PARTS, action="append", help="repeatable (default: all)")
    parser.add_argument("--chunks", type=int, default=100_000)
    parser.add_argument("--pages", type=int, default=300)
    parser.add_argument("--files", type=int, default=10_000)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument(
        "--database", type=Path, help="keep the synthetic passages in this file for the next run"
    )
    parser.add_argument(
        "--seconds", type=float, default=float("inf"), help="store no more passages after so many"
    )
    parser.add_argument("--json", action="store_true", help="print only the JSON object")
    options = parser.parse_args(arguments)

    parts = options.part or PARTS
    figures: dict[str, float] = {}
    with tempfile.TemporaryDirectory(prefix="inglenook-bench-") as name:
        folder = Path(name)
        if "text" in parts:
            figures |= text_ready(folder, options.pages, options.runs)
        if "queries" in parts:
            path = options.database or folder / "many.db"
            words = [f"{a}{b}{c}" for a in _SYLLABLES for b in _SYLLABLES for c in _SYLLABLES][:_VOCABULARY]
            figures["chunks"] = fill(path, options.chunks, words, options.seconds)
            if figures["chunks"] < options.chunks:
                print(
                    f"\n{figures['chunks']:,} of {options.chunks:,} passages are stored; call again to go on."
                )
            else:
                figures |= queries(path, words, options.runs)
            figures["database_mb"] = round(path.stat().st_size / 1e6)
        if "files" in parts:
            figures |= unchanged_files(folder, options.files, options.runs)
    figures["peak_memory_mb"] = round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
    if not options.json:
        for key, value in figures.items():
            print(f"{key:<24} {value}")
    print(json.dumps(figures))
    return 0


_SYLLABLES = [a + b for a in "bdfgklmnprstvz" for b in "aeiou"][:40]

if __name__ == "__main__":
    sys.exit(main())
