"""How fast documents are read, searched, opened and passed over; the last line is one JSON object.

Text ready: a generated PDF from file to searchable rows. Queries: synthetic passages drawn from a Zipf vocabulary with
random vectors, so the figures are of the data structures and not of quality. Medians of `--runs`.

    python tests/bench/documents.py [--chunks 100000] [--pages 300] [--files 10000] [--runs 5] --json
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


def fill(db: Database, num_chunks: int, rng: np.random.Generator) -> list[str]:
    """Store synthetic passages with vectors; return the vocabulary."""
    words = [f"{a}{b}{c}" for a in _SYLLABLES for b in _SYLLABLES for c in _SYLLABLES][:_VOCABULARY]
    documents, vectors = Documents(db), Vectors(db)
    for start in range(0, num_chunks, _CHUNKS_PER_DOCUMENT):
        count = min(_CHUNKS_PER_DOCUMENT, num_chunks - start)
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
            waiting = vectors.chunks_without_vectors(_EMBEDDER, count)
            values = rng.standard_normal((len(waiting), DIMENSION), np.float32)
            vectors.add(_EMBEDDER, [each.chunk_id for each in waiting], values)
        print(f"\rstored {start + count:,} of {num_chunks:,} passages", end="", file=sys.stderr)
    return words


def queries(path: Path, words: Sequence[str], rng: np.random.Generator) -> dict[str, float]:
    """Open the file cold for the first query, then ask many."""
    asked = [
        " ".join(words[i] for i in np.minimum(rng.zipf(1.2, 8), len(words)) - 1) for _ in range(_QUERIES)
    ]
    vectors: NDArray[np.float32] = rng.standard_normal((_QUERIES, DIMENSION), np.float32)
    started = time.perf_counter()
    with Database.open(path) as db, db.open_reader() as reader:
        search = Search(reader)
        search.search(asked[0], limit=24, vector=vectors[0], embedder=_EMBEDDER)
        opened = time.perf_counter() - started
        times = []
        for question, vector in zip(asked, vectors, strict=True):
            before = time.perf_counter()
            search.search(question, limit=24, vector=vector, embedder=_EMBEDDER)
            times.append(1000 * (time.perf_counter() - before))
    times.sort()
    return {
        "cold_open_s": round(opened, 3),
        "query_p50_ms": round(statistics.median(times), 1),
        "query_p95_ms": round(times[int(0.95 * len(times))], 1),
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
    parser.add_argument("--chunks", type=int, default=100_000)
    parser.add_argument("--pages", type=int, default=300)
    parser.add_argument("--files", type=int, default=10_000, help="0 leaves this out")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--json", action="store_true", help="print only the JSON object")
    options = parser.parse_args(arguments)

    rng = np.random.default_rng(0)
    with tempfile.TemporaryDirectory(prefix="inglenook-bench-") as name:
        folder = Path(name)
        figures: dict[str, float] = {"chunks": options.chunks} | text_ready(
            folder, options.pages, options.runs
        )
        with Database.open(folder / "many.db") as db:
            words = fill(db, options.chunks, rng)
        figures |= queries(folder / "many.db", words, rng)
        figures["database_mb"] = round((folder / "many.db").stat().st_size / 1e6)
        if options.files:
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
