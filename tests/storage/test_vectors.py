"""Vectors in blocks, searched exactly."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from inglenook.storage.database import Database
from inglenook.storage.documents import Documents
from inglenook.storage.errors import InvalidValueError
from inglenook.storage.records import Document
from inglenook.storage.search import Search
from inglenook.storage.vector_blocks import BLOCK_ROWS, drop_vectors, quantised
from inglenook.storage.vectors import Vectors

AddDocument = Callable[..., Document]


def _ids(vectors: Vectors, embedder: str = "m") -> list[int]:
    return [waiting.chunk_id for waiting in vectors.chunks_without_vectors(embedder, 100_000)]


def test_work_list_has_context_and_shrinks(db: Database, add_document: AddDocument) -> None:
    add_document("one", "two", title="Title")
    vectors = Vectors(db)

    first = vectors.chunks_without_vectors("m", 1)
    saved = vectors.add("m", [first[0].chunk_id], np.ones((1, 3), np.float32))

    assert [(w.text, w.document_id) for w in first] == [("Title\none", 1)]
    assert saved == 1
    assert [w.text for w in vectors.chunks_without_vectors("m", 9)] == ["Title\ntwo"]
    assert len(vectors.chunks_without_vectors("other", 9)) == 2
    assert (vectors.count("m"), vectors.count("other")) == (1, 0)


def test_search_over_blocks_is_exact_up_to_quantisation(db: Database, add_document: AddDocument) -> None:
    random = np.random.default_rng(3)
    add_document(*[f"text {n}" for n in range(2500)])
    vectors = Vectors(db)
    ids = _ids(vectors)
    values = random.normal(size=(2500, 48)).astype(np.float32)
    for start in range(0, 2500, 700):
        vectors.add("m", ids[start : start + 700], values[start : start + 700])

    query = random.normal(size=48).astype(np.float32)
    found = vectors.search("m", query, limit=20)

    unit = values / np.linalg.norm(values, axis=1, keepdims=True)
    cosines = dict(zip(ids, (unit @ (query / np.linalg.norm(query))).tolist(), strict=True))
    assert [score for _, score in found] == sorted((score for _, score in found), reverse=True)
    assert max(abs(cosines[chunk_id] - score) for chunk_id, score in found) < 0.01
    assert {chunk_id for chunk_id, _ in found[:5]} <= set(sorted(cosines, key=cosines.__getitem__)[-20:])
    assert db.rows("SELECT num_alive FROM vector_blocks ORDER BY id") == [(1024,), (1024,), (452,)]


def test_small_cache_gives_the_same_answers(db: Database, add_document: AddDocument) -> None:
    add_document(*[f"text {n}" for n in range(1500)])
    vectors, starved = Vectors(db), Vectors(db, cache_bytes=100_000)
    vectors.add("m", _ids(vectors), np.random.default_rng(1).normal(size=(1500, 48)).astype(np.float32))
    query = np.ones(48, np.float32)

    assert starved.search("m", query, limit=9) == vectors.search("m", query, limit=9)
    assert len(starved._cached) == 1


def test_deleted_chunks_are_not_found_and_their_rows_are_zero(
    db: Database, add_document: AddDocument
) -> None:
    one = add_document("a", "b", path="/a", sha256="1" * 64)
    add_document("c", path="/b", sha256="2" * 64)
    vectors = Vectors(db)
    ids = _ids(vectors)
    vectors.add("m", ids, np.ones((3, 16), np.float32))
    vectors.search("m", np.ones(16, np.float32), limit=9)

    Documents(db).delete(one.id)

    found = vectors.search("m", np.ones(16, np.float32), limit=9)
    row = db.row("SELECT rows, scales, chunk_ids FROM vector_rows")
    assert [chunk_id for chunk_id, _ in found] == [ids[2]]
    assert row is not None
    assert np.count_nonzero(np.frombuffer(row[0], np.int8)) == 16
    assert np.count_nonzero(np.frombuffer(row[1], np.float32)) == 1
    assert np.frombuffer(row[2], np.int64)[:4].tolist() == [0, 0, ids[2], 0]


def test_freed_rows_are_used_again_and_empty_blocks_go(db: Database, add_document: AddDocument) -> None:
    add_document(*[f"text {n}" for n in range(BLOCK_ROWS + 10)])
    vectors = Vectors(db)
    ids = _ids(vectors)
    values = np.random.default_rng(2).normal(size=(len(ids), 4)).astype(np.float32)
    vectors.add("m", ids, values)

    with db.atomic():
        drop_vectors(db, ids[5:25])
        drop_vectors(db, ids[BLOCK_ROWS:])
    after_drop = db.rows("SELECT num_alive FROM vector_blocks")
    vectors.add("m", ids[BLOCK_ROWS:], values[BLOCK_ROWS:])

    assert after_drop == [(BLOCK_ROWS - 20,)]
    assert db.rows("SELECT num_alive FROM vector_blocks") == [(BLOCK_ROWS - 10,)]
    alive = {chunk_id for chunk_id, _ in vectors.search("m", values[0], limit=5000)}
    assert alive == set(ids) - set(ids[5:25])


def test_chunks_that_are_gone_or_done_are_passed_over(db: Database, add_document: AddDocument) -> None:
    add_document("a", "b")
    vectors = Vectors(db)
    one, two = _ids(vectors)
    vectors.add("m", [one], np.ones((1, 4), np.float32))

    saved = vectors.add("m", [one, 999, two, two], np.ones((4, 4), np.float32))

    assert saved == 1
    assert vectors.count("m") == 2


def test_embedders_are_kept_apart(db: Database, add_document: AddDocument) -> None:
    add_document("a")
    vectors = Vectors(db)
    vectors.add("m", _ids(vectors), np.ones((1, 4), np.float32))
    vectors.add("n", _ids(vectors, "n"), np.ones((1, 6), np.float32))

    assert len(vectors.search("m", np.ones(4, np.float32), limit=1)) == 1
    assert len(vectors.search("n", np.ones(6, np.float32), limit=1)) == 1
    assert vectors.search("unknown", np.ones(5, np.float32), limit=1) == []


@pytest.mark.parametrize(
    ("shape", "words"),
    [((2, 4), "1 chunks need"), ((1, 0), "1 to 8192"), ((4,), r"got \[4\]"), ((1, 9000), "9000")],
)
def test_vectors_of_a_wrong_shape_are_refused(
    db: Database, add_document: AddDocument, shape: tuple[int, ...], words: str
) -> None:
    add_document("a")

    with pytest.raises(InvalidValueError, match=words):
        Vectors(db).add("m", [1], np.ones(shape, np.float32))


def test_wrong_numbers_and_dimensions_are_refused(db: Database, add_document: AddDocument) -> None:
    add_document("a", "b")
    vectors = Vectors(db)
    with pytest.raises(InvalidValueError, match="NaN or infinity"):
        vectors.add("m", [1], np.array([[1, np.nan]], np.float32))
    vectors.add("m", [1], np.ones((1, 4), np.float32))

    with pytest.raises(InvalidValueError, match="have 4 numbers, got 5"):
        vectors.add("m", [2], np.ones((1, 5), np.float32))
    with pytest.raises(InvalidValueError, match="4 numbers, got 3"):
        vectors.search("m", np.ones(3, np.float32), limit=1)


@settings(deadline=None)
@given(arrays(np.float32, (3, 5), elements=st.floats(width=32, allow_nan=False, allow_infinity=False)))
def test_quantised_rows_point_where_they_did(values: np.ndarray) -> None:
    rows, scales = quantised(values)

    for value, row, scale in zip(values.astype(np.float64), rows, scales, strict=True):
        length = np.linalg.norm(value)
        if length > 1e-30:
            assert np.abs(row * np.float64(scale) - value / length).max() <= scale * 0.51 + 1e-6
        assert np.abs(row).max() <= 127


def test_unchanged_chunks_of_a_new_version_keep_their_vectors(
    db: Database, add_document: AddDocument
) -> None:
    add_document("same", "same", "old", "moved", sha256="1" * 64)
    vectors = Vectors(db)
    vectors.add("m", _ids(vectors), np.eye(4, dtype=np.float32))

    add_document("moved", "new", "same", "same", sha256="2" * 64)

    waiting = vectors.chunks_without_vectors("m", 9)
    best = vectors.search("m", np.array([0, 0, 0, 1], np.float32), limit=1)[0][0]
    assert [w.text for w in waiting] == ["new"]
    assert db.row("SELECT text FROM chunks WHERE id = ?", (best,)) == ("moved",)
    assert vectors.count("m") == 3
    assert db.check() == []


def test_search_by_signs_finds_what_the_exact_search_finds(
    db: Database, add_document: Callable[..., Document], monkeypatch: pytest.MonkeyPatch
) -> None:
    add_document(*(f"page {i}" for i in range(1500)))
    vectors, rng = Vectors(db), np.random.default_rng(5)
    ids = [waiting.chunk_id for waiting in vectors.chunks_without_vectors("m", 2000)]
    # Clusters, as embeddings have, and not noise in which nothing is near anything.
    values = rng.standard_normal((50, 64))[np.arange(1500) % 50] + 0.3 * rng.standard_normal((1500, 64))
    vectors.add("m", ids, values.astype(np.float32))
    query, allowed = values[3].astype(np.float32), np.array(ids[3::4], np.int64)
    exact = [vectors.search("m", query, limit=10, allowed=each) for each in (None, allowed)]

    monkeypatch.setattr("inglenook.storage.vectors.BITS_FROM", 1000)
    by_signs = [vectors.search("m", query, limit=10, allowed=each) for each in (None, allowed)]

    assert [[i for i, _ in found] for found in by_signs] == [[i for i, _ in found] for found in exact]
    assert by_signs[0][0][1] == pytest.approx(exact[0][0][1], abs=1e-5)
    assert vectors.search("m", query, limit=3, allowed=np.array([], np.int64)) == []


def test_another_embedder_is_built_beside_and_takes_over_when_it_is_complete(
    db: Database, add_document: AddDocument
) -> None:
    add_document(*(f"passage {i}" for i in range(20)))
    vectors, search = Vectors(db), Search(db)
    vectors.add("old", _ids(vectors, "old"), np.ones((20, 4), np.float32))
    some = _ids(vectors, "new")
    vectors.add("new", some[:10], np.ones((10, 6), np.float32))

    def by_meaning(name: str, dimension: int) -> int:
        hits = search.search("zebra", limit=30, vector=np.ones(dimension, np.float32), embedder=name)
        return sum(hit.vector_rank is not None for hit in hits)

    assert (by_meaning("old", 4), by_meaning("new", 6)) == (20, 0)

    vectors.add("new", some[10:], np.ones((10, 6), np.float32))

    assert by_meaning("new", 6) == 20
    assert vectors.drop_others("new") == 1
    assert by_meaning("new", 6) == 20
    assert by_meaning("old", 4) == 0
    assert db.row("SELECT count(*) FROM vector_rows") == (1,)
    assert db.check() == []
