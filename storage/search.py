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
from inglenook.storage.scope import ScopedChunks, searched_chunks
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
        scope = searched_chunks(self._db, document_ids)
        depth = max(ARM_DEPTH, limit)
        if keyword_weight is None:
            keyword_weight = keyword_weight_for(question, embedder)
        by_words = self._keyword_arm(question, scope, depth) if keyword_weight > 0 else []
        by_meaning: Ranking = []
        if vector is not None and keyword_weight < 1 and not self._vectors.is_overtaking(embedder):
            allowed = None if scope.is_everything else scope.ids
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
        return self._count("chunk_words", word) or (
            self._count("chunk_trigrams", word) if len(word) == 3 else 0
        )

    def count_with_piece(self, piece: str) -> int:
        """Return how many passages have a trigram inside their words, or a shorter piece as a word, up to a limit."""
        return self._count("chunk_trigrams" if len(piece) == 3 else "chunk_words", piece)

    def _count(self, table: Table, term: str) -> int:
        row = self._db.row(
            f"SELECT count(*) FROM (SELECT 1 FROM {table} WHERE {table} MATCH ? LIMIT {_MAX_COUNTED})",
            (quoted(term),),
        )
        return int(row[0]) if row else 0

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

    def _keyword_arm(self, question: str, scope: ScopedChunks, depth: int) -> Ranking:
        by_words = self._matches("chunk_words", words_terms(question), scope, depth)
        weight = trigram_weight_for(question)
        if weight == 0:
            return by_words
        by_trigrams = self._matches("chunk_trigrams", trigrams_terms(question), scope, depth)
        return fuse_scores((from_zero(by_words), 1 - weight), (from_zero(by_trigrams), weight))[:depth]

    def _matches(self, table: Table, terms: list[str], scope: ScopedChunks, depth: int) -> Ranking:
        if not terms or scope.is_empty:
            return []
        query = any_of(self._pruned(table, terms))
        if scope.is_everything or 2 * scope.count > self.num_passages():
            # Of a wide scope the best of all are mostly inside.
            best = self._db.rows(
                f"SELECT rowid, -rank FROM {table} WHERE {table} MATCH ? ORDER BY rank, rowid LIMIT ?",
                (query, depth if scope.is_everything else 4 * depth),
            )
            inside = scope.is_everything or np.isin([row[0] for row in best], scope.ids).tolist()
            kept = best if inside is True else [row for row, keep in zip(best, inside, strict=True) if keep]
            if scope.is_everything or len(best) < 4 * depth or len(kept) >= depth:
                return [(row[0], row[1]) for row in kept][:depth]
        return self._matches_in_ranges(table, query, scope, depth)

    def _matches_in_ranges(self, table: Table, query: str, scope: ScopedChunks, depth: int) -> Ranking:
        """Rank only what is inside. The plus signs keep SQLite from ranking the rest, too."""
        bounds = (int(scope.ranges[0, 0]), int(scope.ranges[-1, 1]))
        is_one = len(scope.ranges) == 1
        inside = "" if is_one else "AND +rowid IN (SELECT value FROM json_each(?))"
        rows = self._db.rows(
            f"SELECT rowid, -rank FROM {table} WHERE {table} MATCH ? AND rowid BETWEEN ? AND ? {inside} "
            "ORDER BY +rank, +rowid LIMIT ?",
            (query, *bounds, *(() if is_one else (json.dumps(scope.ids.tolist()),)), depth),
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
