"""Blocks of 1,024 int8 rows, in which the vectors of chunks lie.

A vector is scaled to length one and kept as int8 with one float32 scale. A block is allotted whole and filled through
blob handles, so adding or removing a few rows writes a few kilobytes. `chunk_vectors` says in which slot a chunk's
vector lies; a removed vector is zeroed, for an embedding says much about its text, and its slot is used again.
The functions here are parts of their caller's transaction.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from inglenook.storage.database import Database
from inglenook.storage.driver import Row
from inglenook.storage.errors import InvalidValueError

BLOCK_ROWS = 1024


@dataclass(frozen=True, slots=True, eq=False)
class Block:
    """A block as it was read: chunk_ids int64 [1024] with 0 for a free slot, scales [1024], rows int8 [1024, D]."""

    embedder_id: int
    revision: int
    chunk_ids: NDArray[np.int64]
    scales: NDArray[np.float32]
    rows: NDArray[np.int8]

    @property
    def size_bytes(self) -> int:
        """The memory it takes."""
        return self.chunk_ids.nbytes + self.scales.nbytes + self.rows.nbytes


@dataclass(frozen=True, slots=True, eq=False)
class SignBlock:
    """The signs of a block's rows: chunk_ids int64 [1024] with 0 for a free slot, signs as `signs_of` gives them."""

    revision: int
    chunk_ids: NDArray[np.int64]
    signs: NDArray[np.uint8] | NDArray[np.uint64]


def quantised(values: NDArray[np.float32]) -> tuple[NDArray[np.int8], NDArray[np.float32]]:
    """Scale rows [N, D] to length one and return them as int8 [N, D] with scales [N]; a zero row stays zero.

    Raises:
        InvalidValueError: a value is not finite.
    """
    if not np.isfinite(values).all():
        raise InvalidValueError("Vectors must be finite numbers, got NaN or infinity.")
    # By the greatest value first, so that no square overflows.
    largest = np.abs(values).max(axis=1, keepdims=True, initial=0.0)
    unit = values / np.where(largest > 0, largest, 1)
    unit = unit / np.maximum(np.linalg.norm(unit, axis=1, keepdims=True), 1e-12)
    scales = np.abs(unit).max(axis=1, initial=0.0) / 127
    rows = np.rint(unit / np.where(scales > 0, scales, 1)[:, None])
    return rows.astype(np.int8), scales.astype(np.float32)


def signs_of(is_positive: NDArray[np.bool_]) -> NDArray[np.uint8] | NDArray[np.uint64]:
    """Pack booleans [N, D] into bits, as whole words of 64 where D allows it: uint64 [N, D / 64], else uint8 [N, D / 8]."""
    packed = np.packbits(is_positive, axis=1)
    return packed.view(np.uint64) if packed.shape[1] % 8 == 0 else packed


def append_rows(
    db: Database,
    embedder_id: int,
    chunk_ids: Sequence[int],
    rows: NDArray[np.int8],
    scales: NDArray[np.float32],
) -> None:
    """Put rows [N, D] into free slots, in new blocks where there are none."""
    done = 0
    while done < len(chunk_ids):
        block_id, ids = _block_with_room(db, embedder_id, rows.shape[1])
        slots = np.flatnonzero(ids == 0)[: len(chunk_ids) - done].tolist()
        if not slots:
            # Counted as having room, but full: leave it alone from now on.
            _changed(db, block_id, BLOCK_ROWS)
            continue
        part = range(done, done + len(slots))
        _write(
            db,
            block_id,
            slots,
            [chunk_ids[i] for i in part],
            scales[done:][: len(slots)],
            rows[done:][: len(slots)],
        )
        db.executemany(
            "INSERT INTO chunk_vectors(embedder_id, chunk_id, block_id, slot) VALUES (?, ?, ?, ?)",
            [(embedder_id, chunk_ids[i], block_id, slot) for i, slot in zip(part, slots, strict=True)],
        )
        _changed(db, block_id, len(slots))
        done += len(slots)


def drop_vectors(db: Database, chunk_ids: Iterable[int]) -> None:
    """Remove the vectors of some chunks, of every embedder, and zero where they lay."""
    where = "chunk_id IN (SELECT value FROM json_each(?))"
    ids = (json.dumps(list(chunk_ids)),)
    by_block: dict[int, list[int]] = defaultdict(list)
    for block_id, slot in db.rows(f"SELECT block_id, slot FROM chunk_vectors WHERE {where}", ids):
        by_block[block_id].append(slot)
    db.execute(f"DELETE FROM chunk_vectors WHERE {where}", ids)
    for block_id, slots in by_block.items():
        row = db.row(
            "SELECT b.num_alive, length(r.rows) FROM vector_blocks b JOIN vector_rows r ON r.block_id = b.id "
            "WHERE b.id = ?",
            (block_id,),
        )
        if row is None:
            continue
        if row[0] <= len(slots):
            db.execute("DELETE FROM vector_blocks WHERE id = ?", (block_id,))
            continue
        zeros = np.zeros((len(slots), row[1] // BLOCK_ROWS), np.int8)
        _write(db, block_id, slots, [0] * len(slots), np.zeros(len(slots), np.float32), zeros)
        _changed(db, block_id, -len(slots))


def keep_vectors(db: Database, *, old_versions: Sequence[int], new_version: int) -> None:
    """Give the vectors of old versions' chunks to the chunks of the new version with the same text and headings."""
    new_chunks: dict[bytes, list[int]] = defaultdict(list)
    for chunk_id, content_hash in db.rows(
        "SELECT id, content_hash FROM chunks WHERE version_id = ? ORDER BY id DESC", (new_version,)
    ):
        new_chunks[content_hash].append(chunk_id)
    heirs: dict[int, int] = {}
    for chunk_id, content_hash in db.rows(
        "SELECT id, content_hash FROM chunks WHERE version_id IN (SELECT value FROM json_each(?)) AND EXISTS "
        "(SELECT 1 FROM chunk_vectors WHERE chunk_id = chunks.id) ORDER BY id",
        (json.dumps(list(old_versions)),),
    ):
        if new_chunks[content_hash]:
            heirs[chunk_id] = new_chunks[content_hash].pop()
    moves: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for embedder_id, chunk_id, block_id, slot in _vectors_of(db, heirs):
        changed = db.execute(
            "UPDATE OR IGNORE chunk_vectors SET chunk_id = ? WHERE embedder_id = ? AND chunk_id = ?",
            (heirs[chunk_id], embedder_id, chunk_id),
        )
        if changed.rowcount == 1:
            moves[block_id].append((slot, heirs[chunk_id]))
    for block_id, slots in moves.items():
        pieces = [(slot * 8, heir.to_bytes(8, "little")) for slot, heir in slots]
        db.write_blob("vector_rows", "chunk_ids", block_id, pieces)
        _changed(db, block_id, 0)


def read_block(db: Database, block_id: int, dimension: int) -> Block | None:
    """Return a block, or None where it is gone or its blobs have not the sizes they must have."""
    row = db.row(
        "SELECT b.embedder_id, b.revision, r.chunk_ids, r.scales, r.rows FROM vector_blocks b "
        "JOIN vector_rows r ON r.block_id = b.id WHERE b.id = ?",
        (block_id,),
    )
    if row is None or (len(row[2]), len(row[3]), len(row[4])) != (
        8 * BLOCK_ROWS,
        4 * BLOCK_ROWS,
        dimension * BLOCK_ROWS,
    ):
        return None
    return Block(
        row[0],
        row[1],
        np.frombuffer(row[2], "<i8").astype(np.int64, copy=False),
        np.frombuffer(row[3], "<f4").astype(np.float32, copy=False),
        np.frombuffer(row[4], np.int8).reshape(BLOCK_ROWS, dimension),
    )


def read_rows(
    db: Database, block_id: int, slots: Sequence[int], dimension: int
) -> tuple[NDArray[np.int8], NDArray[np.float32]]:
    """Return some rows of a block, int8 [N, D], with their scales [N]."""
    rows = db.read_blob("vector_rows", "rows", block_id, [(slot * dimension, dimension) for slot in slots])
    scales = db.read_blob("vector_rows", "scales", block_id, [(slot * 4, 4) for slot in slots])
    return (
        np.frombuffer(b"".join(rows), np.int8).reshape(len(slots), dimension),
        np.frombuffer(b"".join(scales), "<f4").astype(np.float32, copy=False),
    )


def _block_with_room(db: Database, embedder_id: int, dimension: int) -> tuple[int, NDArray[np.int64]]:
    row = db.row(
        "SELECT b.id, r.chunk_ids FROM vector_blocks b JOIN vector_rows r ON r.block_id = b.id "
        f"WHERE b.embedder_id = ? AND b.num_alive < {BLOCK_ROWS} ORDER BY b.id LIMIT 1",
        (embedder_id,),
    )
    if row is not None:
        return int(row[0]), np.frombuffer(row[1], "<i8").astype(np.int64, copy=False)
    block_id = int(
        db.execute(
            "INSERT INTO vector_blocks(embedder_id, num_alive, revision) VALUES (?, 0, 0)", (embedder_id,)
        ).lastrowid
        or 0
    )
    db.execute(
        "INSERT INTO vector_rows(block_id, chunk_ids, scales, rows) VALUES (?, zeroblob(?), zeroblob(?), zeroblob(?))",
        (block_id, 8 * BLOCK_ROWS, 4 * BLOCK_ROWS, dimension * BLOCK_ROWS),
    )
    return block_id, np.zeros(BLOCK_ROWS, np.int64)


def _write(
    db: Database,
    block_id: int,
    slots: Sequence[int],
    chunk_ids: Sequence[int],
    scales: NDArray[np.float32],
    rows: NDArray[np.int8],
) -> None:
    columns = (
        ("chunk_ids", np.asarray(chunk_ids, "<i8")[:, None]),
        ("scales", scales.astype("<f4")[:, None]),
        ("rows", rows),
    )
    for name, values in columns:
        width = values.itemsize * values.shape[1]
        pieces = [(slot * width, value.tobytes()) for slot, value in zip(slots, values, strict=True)]
        db.write_blob("vector_rows", name, block_id, pieces)


def _changed(db: Database, block_id: int, alive: int) -> None:
    db.execute(
        "UPDATE vector_blocks SET num_alive = num_alive + ?, revision = revision + 1 WHERE id = ?",
        (alive, block_id),
    )


def _vectors_of(db: Database, chunk_ids: Iterable[int]) -> list[Row]:
    return db.rows(
        "SELECT embedder_id, chunk_id, block_id, slot FROM chunk_vectors "
        "WHERE chunk_id IN (SELECT value FROM json_each(?))",
        (json.dumps(list(chunk_ids)),),
    )
