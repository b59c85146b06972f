"""Finding the passages that a question is about: by words and by meaning, fused.

The keyword arm ranks by bm25, with a heading or title counting double; scripts and languages that a word index serves
badly are ranked by trigrams as well. The vector arm ranks by cosine. Each ranking is brought to the scale 0 to 1 and the
weighted sum orders the hits, which measured better than fusing ranks on all public sets (tests/bench/retrieval.py).
A fused score orders hits and says nothing else: no threshold belongs on it.

Reads only; for the reader's connection and its thread.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from inglenook.storage.database import Database
from inglenook.storage.driver import Row
from inglenook.storage.languages import keyword_weight_for, trigram_weight_for
from inglenook.storage.match_query import any_of, quoted, trigrams_terms, words_terms
from inglenook.storage.packing import unpack_rectangles
from inglenook.storage.records import Hit, IndexedChunk, Place
from inglenook.storage.rescoring import DEPTH, rescored
from inglenook.storage.text import from_json
from inglenook.storage.vectors import Vectors

RANK_OFFSET = 60
ARM_DEPTH = 200
# With so many passages, terms that stand in more than this share of them cost most of the time and tell little. Below, they
# are kept: on a small collection of one subject leaving them out costs quality.
PRUNED_FROM = 50_000
_MAX_SHARE = 0.2
_MAX_COUNTED = 5000
_MAX_TRIGRAM_SHARE = 0.05

Ranking = list[tuple[int, float]]
"""Chunk ids with their scores, best first."""

Table = Literal["chunk_words", "chunk_trigrams"]

_CHUNKS = """
SELECT c.id, v.document_id, c.version_id, d.name, v.num_pages, c.text, c.page_index, c.page_label, c.char_start,
    c.char_end, c.first_line, c.last_line, c.rectangles, c.heading_path, c.context
FROM chunks c JOIN document_versions v ON v.id = c.version_id JOIN documents d ON d.id = v.document_id
"""


class Search:
    """Searches the documents of one connection's database."""

    def __init__(self, database: Database, vectors: Vectors | None = None) -> None:
        self._db = database
        self._vectors = vectors or Vectors(database)

    def search(
        self,
        question: str,
        *,
        limit: int,
        vector: NDArray[np.float32] | None = None,
        embedder: str = "",
        keyword_weight: float | None = None,
        document_ids: Iterable[int] | None = None,
    ) -> list[Hit]:
        """Return the best passages, best first, from all documents or those of `document_ids`.

        Without `vector` (the question's embedding by `embedder`) only words are searched. `keyword_weight`, from 0 to
        1, is by default chosen by the question's language and the embedder's. Only words are searched, too, while this
        embedder's vectors are still being made beside those of another. A document in the trash, or a version that is
        not complete yet while an older one is there, is never found.
        """
        versions = self._versions(document_ids)
        depth = max(ARM_DEPTH, limit)
        if keyword_weight is None:
            keyword_weight = keyword_weight_for(question, embedder)
        by_words = self._keyword_arm(question, versions, depth) if keyword_weight > 0 else []
        by_meaning: Ranking = []
        if vector is not None and keyword_weight < 1 and not self._vectors.is_overtaking(embedder):
            allowed = (
                None if document_ids is None and self._all_searched(versions) else self._chunk_ids(versions)
            )
            by_meaning = self._vectors.search(embedder, vector, limit=depth, allowed=allowed)
        fused = fuse_scores(
            (from_zero(by_words), keyword_weight), (from_least(by_meaning), 1 - keyword_weight)
        )
        # Each arm alone is left as it is, for comparison.
        is_fused = bool(by_words) and bool(by_meaning)
        fused = fused[: max(limit, DEPTH) if is_fused else limit]
        chunks = {chunk.id: chunk for chunk in self.chunks([chunk_id for chunk_id, _ in fused])}
        ranks = [{chunk_id: i for i, (chunk_id, _) in enumerate(arm)} for arm in (by_words, by_meaning)]
        cosines = dict(by_meaning)
        hits = [
            Hit(
                chunks[chunk_id],
                score,
                ranks[0].get(chunk_id),
                ranks[1].get(chunk_id),
                # One that only words found is further off than the last that meaning found.
                cosines.get(chunk_id, by_meaning[-1][1] if by_meaning else None),
            )
            for chunk_id, score in fused
            if chunk_id in chunks
        ]
        return (rescored(question, hits) if is_fused else hits)[:limit]

    def num_passages(self) -> int:
        """Return how many passages are stored, or a little more where some were deleted."""
        row = self._db.row("SELECT max(id) FROM chunks")
        return int(row[0] or 0) if row else 0

    def count_with(self, word: str) -> int:
        """Return how many passages have a word, or a trigram that no word of theirs is, counted up to a limit."""
        for table in ("chunk_words", "chunk_trigrams") if len(word) == 3 else ("chunk_words",):
            row = self._db.row(
                f"SELECT count(*) FROM (SELECT 1 FROM {table} WHERE {table} MATCH ? LIMIT {_MAX_COUNTED})",
                (quoted(word),),
            )
            if row and row[0]:
                return int(row[0])
        return 0

    def chunks(self, chunk_ids: Sequence[int]) -> list[IndexedChunk]:
        """Return those chunks that are still there, in the order of the ids given."""
        rows = self._db.rows(
            f"{_CHUNKS} WHERE c.id IN (SELECT value FROM json_each(?))", (json.dumps(list(chunk_ids)),)
        )
        found = {row[0]: _chunk(row) for row in rows}
        return [found[i] for i in chunk_ids if i in found]

    def chunks_of_page(self, version_id: int, page_index: int) -> list[IndexedChunk]:
        """Return the chunks of one page in order."""
        rows = self._db.rows(
            f"{_CHUNKS} WHERE c.version_id = ? AND c.page_index = ? ORDER BY c.id", (version_id, page_index)
        )
        return [_chunk(row) for row in rows]

    def _keyword_arm(self, question: str, versions: list[int], depth: int) -> Ranking:
        by_words = self._matches("chunk_words", words_terms(question), versions, depth)
        weight = trigram_weight_for(question)
        if weight == 0:
            return by_words
        by_trigrams = self._matches("chunk_trigrams", trigrams_terms(question), versions, depth)
        return fuse_scores((from_zero(by_words), 1 - weight), (from_zero(by_trigrams), weight))[:depth]

    def _matches(self, table: Table, terms: list[str], versions: list[int], depth: int) -> Ranking:
        if not terms or not versions:
            return []
        query = any_of(self._pruned(table, terms))
        # Looking up each match's version costs as much as ranking it, so the best are looked up first, which is
        # enough unless most of them are out of scope.
        best = self._db.rows(
            f"SELECT rowid, -rank FROM {table} WHERE {table} MATCH ? ORDER BY rank, rowid LIMIT ?",
            (query, 4 * depth),
        )
        allowed = {
            row[0]
            for row in self._db.rows(
                "SELECT id FROM chunks WHERE id IN (SELECT value FROM json_each(?)) "
                "AND version_id IN (SELECT value FROM json_each(?))",
                (json.dumps([row[0] for row in best]), json.dumps(versions)),
            )
        }
        if len(best) < 4 * depth or len(allowed) >= depth:
            return [(row[0], row[1]) for row in best if row[0] in allowed][:depth]
        rows = self._db.rows(
            f"SELECT f.rowid, -f.rank FROM {table} f JOIN chunks c ON c.id = f.rowid WHERE {table} MATCH ? "
            "AND c.version_id IN (SELECT value FROM json_each(?)) ORDER BY f.rank, f.rowid LIMIT ?",
            (query, json.dumps(versions), depth),
        )
        return [(row[0], row[1]) for row in rows]

    def _pruned(self, table: Table, terms: list[str]) -> list[str]:
        """Leave out the terms that nearly every passage has, where there are very many passages."""
        row = self._db.row("SELECT max(id) FROM chunks")
        num_chunks = int(row[0] or 0) if row else 0
        if num_chunks < PRUNED_FROM:
            return terms
        most = int(num_chunks * (_MAX_SHARE if table == "chunk_words" else _MAX_TRIGRAM_SHARE))
        sql = f"SELECT 1 FROM {table} WHERE {table} MATCH ? LIMIT 1 OFFSET ?"
        return [term for term in terms if self._db.row(sql, (term, most)) is None] or terms

    def _versions(self, document_ids: Iterable[int] | None) -> list[int]:
        sql = "SELECT current_version_id FROM documents WHERE trashed_at_ms IS NULL AND current_version_id IS NOT NULL"
        if document_ids is None:
            return [row[0] for row in self._db.rows(sql)]
        ids = json.dumps(list(document_ids))
        return [row[0] for row in self._db.rows(f"{sql} AND id IN (SELECT value FROM json_each(?))", (ids,))]

    def _all_searched(self, versions: list[int]) -> bool:
        """Return whether no chunk belongs to a version outside `versions`, the usual case."""
        row = self._db.row("SELECT count(DISTINCT version_id) FROM chunks")
        with_chunks = row[0] if row else 0
        own = self._db.row(
            "SELECT count(*) FROM json_each(?) j WHERE EXISTS (SELECT 1 FROM chunks WHERE version_id = j.value)",
            (json.dumps(versions),),
        )
        return bool(own is not None and own[0] == with_chunks)

    def _chunk_ids(self, versions: list[int]) -> NDArray[np.int64]:
        rows = self._db.rows(
            "SELECT id FROM chunks WHERE version_id IN (SELECT value FROM json_each(?))",
            (json.dumps(versions),),
        )
        return np.array([row[0] for row in rows], np.int64)


def fuse(*arms: tuple[Sequence[int], float]) -> list[tuple[int, float]]:
    """Fuse rankings, each with its weight, into one: ids with their scores, best first, ties by the lower id."""
    scores: dict[int, float] = {}
    for ranking, weight in arms:
        for rank, chunk_id in enumerate(ranking, start=1):
            scores[chunk_id] = scores.get(chunk_id, 0.0) + weight / (RANK_OFFSET + rank)
    return sorted(scores.items(), key=lambda item: (-item[1], item[0]))


def fuse_scores(*arms: tuple[Ranking, float]) -> Ranking:
    """Add up the scores of rankings, each with its weight; best first, ties by the better rank in the first arms."""
    scores: dict[int, float] = {}
    for ranking, weight in arms:
        for chunk_id, score in ranking:
            scores[chunk_id] = scores.get(chunk_id, 0.0) + weight * score
    return sorted(scores.items(), key=lambda item: -item[1])


def from_zero(ranking: Ranking) -> Ranking:
    """Scale scores whose zero means "nothing", as that of bm25 does, so that the best is 1."""
    best = ranking[0][1] if ranking else 0.0
    return [(chunk_id, score / best if best > 0 else 1.0) for chunk_id, score in ranking]


def from_least(ranking: Ranking) -> Ranking:
    """Scale scores whose zero means nothing in particular, as that of a cosine, from 0 for the last to 1 for the best."""
    if not ranking:
        return []
    best, least = ranking[0][1], ranking[-1][1]
    return [
        (chunk_id, (score - least) / (best - least) if best > least else 1.0) for chunk_id, score in ranking
    ]


def _chunk(row: Row) -> IndexedChunk:
    place = Place(row[6], row[7], row[8], row[9], row[10], row[11], unpack_rectangles(row[12]))
    values = [*row[:6], place, tuple(map(str, from_json(row[13], list))), row[14]]
    return IndexedChunk(*values)
