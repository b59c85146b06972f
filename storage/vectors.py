"""Embeddings of chunks, searched exactly.

Each embedder (a model by name) has its own vectors; a chunk can have one of several. vector_blocks.py keeps them.

`Vectors` belongs to one connection. For searching it keeps blocks in memory up to a limit, and looks before each
search which have changed; beyond the limit blocks are read again for each search. From `BITS_FROM` vectors on only their
signs are kept, an eighth of the size: those that differ least from the question's are then compared exactly. Writing
goes through the writer.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from inglenook.storage.database import Database
from inglenook.storage.errors import InvalidValueError
from inglenook.storage.records import PendingVector
from inglenook.storage.vector_blocks import (
    BLOCK_ROWS,
    Block,
    SignBlock,
    append_rows,
    quantised,
    read_block,
    read_rows,
    signs_of,
)

MAX_DIMENSION = 8192
DEFAULT_CACHE_BYTES = 256 << 20
BITS_FROM = 300_000
_CANDIDATES_PER_HIT = 8
_OVERTAKEN = 0.9
_ROWS_AT_ONCE = 256


class Vectors:
    """Reads and writes the vectors of one connection's database."""

    def __init__(self, database: Database, *, cache_bytes: int = DEFAULT_CACHE_BYTES) -> None:
        self._db = database
        self._cache_bytes = cache_bytes
        self._cached: dict[int, Block] = {}
        self._signs: dict[int, SignBlock] = {}
        self._floats = np.empty((0, 0), np.float32)

    def chunks_without_vectors(self, embedder: str, limit: int) -> list[PendingVector]:
        """Return the next chunks to be embedded by `embedder`, newest document last."""
        rows = self._db.rows(
            "SELECT c.id, v.document_id, c.context, c.text FROM chunks c "
            "JOIN document_versions v ON v.id = c.version_id JOIN documents d ON d.id = v.document_id "
            "WHERE d.trashed_at_ms IS NULL AND NOT EXISTS (SELECT 1 FROM chunk_vectors cv JOIN embedders e "
            "ON e.id = cv.embedder_id WHERE e.name = ? AND cv.chunk_id = c.id) ORDER BY c.id LIMIT ?",
            (embedder, limit),
        )
        return [PendingVector(row[0], row[1], f"{row[2]}\n{row[3]}" if row[2] else row[3]) for row in rows]

    def count(self, embedder: str) -> int:
        """Return how many chunks have a vector of `embedder`."""
        row = self._db.row(
            "SELECT count(*) FROM chunk_vectors WHERE embedder_id = (SELECT id FROM embedders WHERE name = ?)",
            (embedder,),
        )
        return int(row[0]) if row else 0

    def is_overtaking(self, embedder: str) -> bool:
        """Return whether another embedder still has the vectors of most passages, and this one not nearly as many.

        Then a search by meaning would find little but what happens to be embedded anew.
        """
        counts = self.counts()
        return counts.get(embedder, 0) < _OVERTAKEN * max(counts.values(), default=0)

    def counts(self) -> dict[str, int]:
        """Return how many vectors there are of each embedder."""
        return {
            row[0]: int(row[1] or 0)
            for row in self._db.rows(
                "SELECT e.name, (SELECT sum(num_alive) FROM vector_blocks b WHERE b.embedder_id = e.id) FROM embedders e"
            )
        }

    def drop(self, embedder: str) -> None:
        """Delete all vectors of an embedder; fine if there are none."""
        with self._db.atomic():
            where = "embedder_id = (SELECT id FROM embedders WHERE name = ?)"
            self._db.execute(f"DELETE FROM chunk_vectors WHERE {where}", (embedder,))
            self._db.execute("DELETE FROM embedders WHERE name = ?", (embedder,))

    def drop_others(self, *kept: str) -> int:
        """Delete the vectors of all embedders but these, once one has its own; return how many embedders went."""
        with self._db.atomic():
            others = [row[0] for row in self._db.rows("SELECT name FROM embedders") if row[0] not in kept]
            for other in others:
                self.drop(other)
            return len(others)

    def add(self, embedder: str, chunk_ids: Sequence[int], vectors: NDArray[np.float32]) -> int:
        """Save the vectors of some chunks, float32 [N, D]; return how many were saved.

        Chunks that were deleted meanwhile, or have a vector already, are passed over.

        Raises:
            InvalidValueError: counts or dimensions do not fit, or a value is not finite.
        """
        values = np.asarray(vectors, dtype=np.float32)
        if values.ndim != 2 or len(values) != len(chunk_ids) or not 1 <= values.shape[1] <= MAX_DIMENSION:
            raise InvalidValueError(
                f"{len(chunk_ids)} chunks need vectors of the shape [{len(chunk_ids)}, 1 to {MAX_DIMENSION}], "
                f"got {list(values.shape)}."
            )
        rows, scales = quantised(values)
        with self._db.atomic():
            embedder_id = self._embedder_id(embedder, values.shape[1])
            wanted = {row[0] for row in self._db.rows(
                "SELECT id FROM chunks WHERE id IN (SELECT value FROM json_each(?1)) AND NOT EXISTS "
                "(SELECT 1 FROM chunk_vectors cv WHERE cv.embedder_id = ?2 AND cv.chunk_id = chunks.id)",
                (json.dumps(list(map(int, chunk_ids))), embedder_id),
            )}  # fmt: skip
            first = {
                int(chunk_id): i for i, chunk_id in reversed(list(enumerate(chunk_ids))) if chunk_id in wanted
            }
            order = sorted(first)
            picked = [first[chunk_id] for chunk_id in order]
            append_rows(self._db, embedder_id, order, rows[picked], scales[picked])
            return len(order)

    def search(
        self,
        embedder: str,
        vector: NDArray[np.float32],
        *,
        limit: int,
        allowed: NDArray[np.int64] | None = None,
    ) -> list[tuple[int, float]]:
        """Return the ids of the nearest chunks with their cosine, best first; ties by the lower id.

        `allowed` are the chunk ids to search among, None for all. An embedder without vectors finds nothing.

        Raises:
            InvalidValueError: the vector has another dimension than the stored ones, or is not finite.
        """
        row = self._db.row("SELECT id, dimension FROM embedders WHERE name = ?", (embedder,))
        query = np.asarray(vector, dtype=np.float32).ravel()
        if row is None or limit < 1:
            return []
        if len(query) != row[1] or not np.isfinite(query).all():
            raise InvalidValueError(
                f"A question for {embedder} needs a finite vector of {row[1]} numbers, got {len(query)}."
            )
        query = query / max(float(np.linalg.norm(query)), 1e-12)
        if self._num_stored(int(row[0])) >= BITS_FROM and hasattr(np, "bitwise_count"):
            return self._search_by_signs(int(row[0]), query, limit, allowed)
        found_ids: list[NDArray[np.int64]] = [np.empty(0, np.int64)]
        found: list[NDArray[np.float32]] = [np.empty(0, np.float32)]
        may_be_found = _membership(allowed)
        for block in self._blocks(int(row[0]), int(row[1])):
            keep = may_be_found(block.chunk_ids)
            num_kept = int(np.count_nonzero(keep))
            if not num_kept:
                continue
            ids, rows, scales = block.chunk_ids, block.rows, block.scales
            if num_kept < len(ids):
                ids, rows, scales = ids[keep], rows[keep], scales[keep]
            found_ids.append(ids)
            found.append(self._products(rows, query) * scales)
        every_id, every = np.concatenate(found_ids), np.concatenate(found)
        if len(every) > limit:
            least = np.partition(every, len(every) - limit)[len(every) - limit]
            # All that are as good as the last, so that among equals the lower id is taken.
            near = every >= least
            every_id, every = every_id[near], every[near]
        order = np.lexsort((every_id, -every))[:limit]
        return [(int(every_id[i]), float(every[i])) for i in order]

    def _search_by_signs(
        self, embedder_id: int, query: NDArray[np.float32], limit: int, allowed: NDArray[np.int64] | None
    ) -> list[tuple[int, float]]:
        signs = signs_of(query[None] > 0)[0]
        wanted = limit * _CANDIDATES_PER_HIT
        may_be_found = _membership(allowed)
        blocks = list(self._sign_blocks(embedder_id, len(query)))
        out_of_reach = np.iinfo(np.uint16).max
        distances = np.full((len(blocks), BLOCK_ROWS), out_of_reach, np.uint16)
        for number, (_, block) in enumerate(blocks):
            keep = may_be_found(block.chunk_ids)
            if keep.any():
                differing = np.bitwise_count(block.signs ^ signs).sum(axis=1, dtype=np.uint16)
                distances[number] = np.where(keep, differing, out_of_reach)
        flat = distances.ravel()
        nearest = np.argpartition(flat, wanted)[:wanted] if len(flat) > wanted else np.arange(len(flat))
        nearest = np.sort(nearest[flat[nearest] < out_of_reach])
        if not len(nearest):
            return []
        places = np.stack([nearest // BLOCK_ROWS, nearest % BLOCK_ROWS], axis=1)  # number of the block, slot
        ids = np.array([blocks[number][1].chunk_ids[slot] for number, slot in places.tolist()], np.int64)
        scores = np.empty(len(ids), np.float32)
        numbers, firsts = np.unique(places[:, 0], return_index=True)
        ends = [*firsts[1:].tolist(), len(places)]
        for number, first, end in zip(numbers.tolist(), firsts.tolist(), ends, strict=True):
            which = slice(first, end)
            rows, scales = read_rows(self._db, blocks[number][0], places[which, 1].tolist(), len(query))
            scores[which] = (rows.astype(np.float32) @ query) * scales
        order = np.lexsort((ids, -scores))[:limit]
        return [(int(ids[i]), float(scores[i])) for i in order]

    def _sign_blocks(self, embedder_id: int, dimension: int) -> Iterator[tuple[int, SignBlock]]:
        stored: dict[int, int] = {
            row[0]: row[1]
            for row in self._db.rows(
                "SELECT id, revision FROM vector_blocks WHERE embedder_id = ?", (embedder_id,)
            )
        }
        self._cached.clear()
        self._signs = {i: block for i, block in self._signs.items() if i in stored}
        for block_id, revision in stored.items():
            kept = self._signs.get(block_id)
            if kept is None or kept.revision != revision:
                block = read_block(self._db, block_id, dimension)
                if block is None:
                    continue
                kept = self._signs[block_id] = SignBlock(
                    block.revision, block.chunk_ids, signs_of(block.rows > 0)
                )
            yield block_id, kept

    def _products(self, rows: NDArray[np.int8], query: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return rows [N, D] times the query [D]; a few rows at a time as floats, which then stay in the processor."""
        if self._floats.shape[1] != len(query):
            self._floats = np.empty((_ROWS_AT_ONCE, len(query)), np.float32)
        products = np.empty(len(rows), np.float32)
        for start in range(0, len(rows), _ROWS_AT_ONCE):
            part = rows[start : start + _ROWS_AT_ONCE]
            floats = self._floats[: len(part)]
            np.copyto(floats, part)
            np.dot(floats, query, out=products[start : start + len(part)])
        return products

    def _num_stored(self, embedder_id: int) -> int:
        row = self._db.row("SELECT sum(num_alive) FROM vector_blocks WHERE embedder_id = ?", (embedder_id,))
        return int(row[0] or 0) if row else 0

    def _blocks(self, embedder_id: int, dimension: int) -> Iterator[Block]:
        stored: dict[int, int] = {
            row[0]: row[1]
            for row in self._db.rows(
                "SELECT id, revision FROM vector_blocks WHERE embedder_id = ?", (embedder_id,)
            )
        }
        for block_id in [i for i, block in self._cached.items() if block.embedder_id == embedder_id]:
            if block_id not in stored:
                del self._cached[block_id]
        room = self._cache_bytes - sum(block.size_bytes for block in self._cached.values())
        for block_id, revision in stored.items():
            block = self._cached.get(block_id)
            if block is None or block.revision != revision:
                if block is not None:
                    room += self._cached.pop(block_id).size_bytes
                block = read_block(self._db, block_id, dimension)
                if block is None:
                    continue
                if block.size_bytes <= room:
                    self._cached[block_id] = block
                    room -= block.size_bytes
            yield block

    def _embedder_id(self, name: str, dimension: int) -> int:
        row = self._db.row("SELECT id, dimension FROM embedders WHERE name = ?", (name,))
        if row is None:
            cursor = self._db.execute(
                "INSERT INTO embedders(name, dimension) VALUES (?, ?)", (name, dimension)
            )
            return int(cursor.lastrowid or 0)
        if row[1] != dimension:
            raise InvalidValueError(
                f"Vectors of {name} have {row[1]} numbers, got {dimension}; another model needs another name."
            )
        return int(row[0])


def _membership(allowed: NDArray[np.int64] | None) -> Callable[[NDArray[np.int64]], NDArray[np.bool_]]:
    """Return what says of chunk ids whether each may be found; 0, a free slot, never is."""
    if allowed is None:
        return lambda ids: ids > 0
    mask = np.zeros(int(allowed.max(initial=0)) + 2, np.bool_)
    mask[allowed] = True
    mask[0] = False
    last = len(mask) - 1  # never set, it stands for all ids beyond
    return lambda ids: mask[np.minimum(ids, last)]
