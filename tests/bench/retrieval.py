"""How well search finds what people judged relevant, on any set in BEIR form (`retrieval_sets.py` makes some).

Each document is chunked, indexed and searched by the product's own code; a document ranks where its first passage
does. nDCG takes the grades as gains, as trec_eval does. The last line is one JSON object.

    python tests/bench/retrieval.py FOLDER [--arm keyword|dense|hybrid] [--embedder PATH] [--vectors FOLDER] --json
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import os
import statistics
import sys
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

from inglenook.engine.client import EngineClient
from inglenook.engine.request import Purpose
from inglenook.storage.chunking import TokenOffsets, approximate_tokens, chunk_page
from inglenook.storage.database import Database
from inglenook.storage.documents import Documents
from inglenook.storage.parsing.document import ParsedDocument, ParsedPage
from inglenook.storage.parsing.plain_text import clean_text
from inglenook.storage.search import Search
from inglenook.storage.vectors import Vectors

sys.path.insert(0, str(Path(__file__).parent))
from retrieval_sets import RetrievalSet, read_folder

DEPTH = 100
_PASSAGES = 2 * DEPTH
_BATCH = 32
_BATCHES_BETWEEN_SAVES = 10

Float = NDArray[np.float32]


class Encoder:
    """The product's embedder, with the vectors of texts it has seen kept in a file if `cache` is given."""

    def __init__(self, model: Path, cache: Path | None) -> None:
        self.name = model.name
        self.tokenizer = model / "tokenizer.json"
        self._model = model
        self._client: EngineClient | None = None
        self._file = cache / f"{model.name}.npz" if cache else None
        self._known: dict[str, Float] = {}
        if self._file is not None and self._file.is_file():
            stored = np.load(self._file)
            self._known = dict(zip(stored["keys"].tolist(), stored["vectors"], strict=True))

    def encode(self, texts: Sequence[str], *, purpose: Purpose = "query") -> Float:
        """Return float32 [N, D] of questions, or of passages with the purpose "document"."""
        # The purpose counts only where the encoder wants words before a text, but is asked for in any case.
        marked = [text if purpose == "document" else f"{purpose}: {text}" for text in texts]
        keys = [hashlib.sha256(text.encode()).hexdigest() for text in marked]
        missing = [i for i, key in enumerate(keys) if key not in self._known]
        # Texts of one length together, so that little is padded.
        missing.sort(key=lambda i: len(texts[i]))
        for start in range(0, len(missing), _BATCH):
            batch = missing[start : start + _BATCH]
            if self._client is None:
                self._client = EngineClient.in_process()
                self._client.load(self._model, slot="embedder").result()
            embedded = self._client.embed([texts[i] for i in batch], purpose=purpose).result()
            rows = np.frombuffer(embedded.vectors, "<f4").reshape(-1, embedded.dimension)
            self._known.update(zip((keys[i] for i in batch), rows, strict=True))
            print(f"\rembedded {start + len(batch):,} of {len(missing):,}", end="", file=sys.stderr)
            if start // _BATCH % _BATCHES_BETWEEN_SAVES == _BATCHES_BETWEEN_SAVES - 1:
                self._save()
        return np.stack([self._known[key] for key in keys]).astype(np.float32)

    def close(self) -> None:
        """Keep the vectors and end the engine."""
        if self._client is not None:
            self._client.close()
            self._save()

    def _save(self) -> None:
        if self._file is not None:
            self._file.parent.mkdir(parents=True, exist_ok=True)
            np.savez(self._file, keys=np.array(list(self._known)), vectors=np.stack([*self._known.values()]))


def index(db: Database, content: RetrievalSet, token_offsets: TokenOffsets) -> dict[int, str]:
    """Store every document with its chunks; return their ids by the database's."""
    documents = Documents(db)
    names: dict[int, str] = {}
    with db.atomic():
        for number, (name, (title, text)) in enumerate(content.documents.items()):
            page = ParsedPage(index=0, text=clean_text(text) or title)
            chunks = chunk_page(page, title=title, token_offsets=token_offsets)
            document, _ = documents.add(
                f"/{number}", name=title or name, sha256=str(number), size_bytes=len(text), modified_at_ns=1
            )
            documents.store(
                document.version_id,
                ParsedDocument(
                    kind="text", sha256=str(number), size_bytes=1, pages=(page,), chunks=tuple(chunks)
                ),
            )
            names[document.id] = name
    return names


def embed_all(db: Database, encoder: Encoder) -> None:
    """Give every chunk its vector."""
    vectors = Vectors(db)
    while pending := vectors.chunks_without_vectors(encoder.name, 4096):
        vectors.add(
            encoder.name,
            [chunk.chunk_id for chunk in pending],
            encoder.encode([chunk.text for chunk in pending], purpose="document"),
        )


def ranked(
    search: Search, question: str, arm: str, names: dict[int, str], encoder: Encoder | None
) -> list[str]:
    """Return the documents for a question, each where its first passage stands."""
    vector = encoder.encode([question])[0] if encoder is not None and arm != "keyword" else None
    weight = 0.0 if arm == "dense" else None
    hits = search.search(
        question,
        limit=_PASSAGES,
        vector=vector,
        embedder=encoder.name if encoder is not None else "",
        keyword_weight=weight,
    )
    return list(dict.fromkeys(names[hit.chunk.document_id] for hit in hits))[:DEPTH]


def ndcg(found: Sequence[str], grades: dict[str, float], depth: int = 10) -> float:
    """Return the normalised discounted cumulative gain, 0 where nothing is relevant."""
    best = _gain(sorted((grade for grade in grades.values() if grade > 0), reverse=True)[:depth])
    return _gain(max(0.0, grades.get(name, 0.0)) for name in found[:depth]) / best if best else 0.0


def recall(found: Sequence[str], grades: dict[str, float], depth: int) -> float:
    """Return the share of the relevant documents among the first ones."""
    relevant = {name for name, grade in grades.items() if grade > 0}
    return len(relevant & set(found[:depth])) / len(relevant) if relevant else 0.0


def measure(content: RetrievalSet, arm: str, encoder: Encoder | None) -> dict[str, object]:
    """Index and search a set; return its figures."""
    started = time.perf_counter()
    token_offsets = token_offsets_of(encoder)
    questions = {
        name: text
        for name, text in content.questions.items()
        if any(grade > 0 for grade in content.judgements.get(name, {}).values())
    }
    with Database.in_memory() as db:
        names = index(db, content, token_offsets)
        if encoder is not None and arm != "keyword":
            embed_all(db, encoder)
            encoder.encode(list(questions.values()))
        search = Search(db)
        indexed = time.perf_counter()
        found: dict[str, list[str]] = {}
        times = []
        for name, text in questions.items():
            before = time.perf_counter()
            found[name] = ranked(search, text, arm, names, encoder)
            times.append(time.perf_counter() - before)
    judged = content.judgements
    return {
        "arm": arm,
        "documents": len(names),
        "questions": len(questions),
        "ndcg@10": _mean(ndcg(found[name], judged[name]) for name in questions),
        "recall@5": _mean(recall(found[name], judged[name], 5) for name in questions),
        "recall@100": _mean(recall(found[name], judged[name], 100) for name in questions),
        "seconds": round(time.perf_counter() - started, 2),
        "index_seconds": round(indexed - started, 2),
        "query_ms": round(1000 * statistics.median(times), 2) if times else None,
    }


def find_embedder(given: Path | None) -> Path | None:
    """Return the folder of the embedder: the one given, or that of the tests."""
    default = Path.home() / ".cache" / "inglenook-test-models"
    path = given or Path(os.environ.get("INGLENOOK_TEST_MODELS", default)) / "all-MiniLM-L6-v2"
    return path if path.is_dir() else None


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure; returns the exit status."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--arm", choices=("keyword", "dense", "hybrid"), default="hybrid")
    parser.add_argument("--embedder", type=Path, help="a sentence encoder's folder (default: the tests')")
    parser.add_argument("--vectors", type=Path, help="keep vectors in this folder for the next run")
    parser.add_argument("--json", action="store_true", help="print only the JSON object")
    options = parser.parse_args(arguments)

    model = find_embedder(options.embedder)
    if model is None and options.arm != "keyword":
        parser.error("there is no embedder; --embedder names its folder, or use --arm keyword")
    encoder = Encoder(model, options.vectors) if model is not None else None
    try:
        figures = {"set": options.folder.name, **measure(read_folder(options.folder), options.arm, encoder)}
    finally:
        if encoder is not None:
            encoder.close()
    if not options.json:
        for name, value in figures.items():
            print(f"{name:<14} {value}")
    print(json.dumps(figures))
    return 0


def token_offsets_of(encoder: Encoder | None) -> TokenOffsets:
    """Return how the encoder's tokenizer cuts a text, or an approximation without one."""
    if encoder is None or not encoder.tokenizer.is_file():
        return approximate_tokens
    tokenizer = Tokenizer.from_file(str(encoder.tokenizer))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return lambda text: tokenizer.encode(text, add_special_tokens=False).offsets


def _gain(grades: Iterable[float]) -> float:
    return sum(grade / math.log2(rank + 2) for rank, grade in enumerate(grades))


def _mean(values: Iterable[float]) -> float:
    every = list(values)
    return round(sum(every) / len(every), 4) if every else 0.0


if __name__ == "__main__":
    sys.exit(main())
