"""Finding passages by words and by meaning."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from inglenook.storage.database import Database
from inglenook.storage.documents import Documents
from inglenook.storage.parsing.document import Rect
from inglenook.storage.records import Document
from inglenook.storage.search import Search, from_least, from_zero, fuse, fuse_scores
from inglenook.storage.vectors import Vectors

AddDocument = Callable[..., Document]


@pytest.mark.parametrize(
    ("text", "question"),
    [
        ("The herons were nesting.", "heron nest"),
        ("Das Übergrößenträger-Gerüst", "übergrößenträger"),
        ("Café crème brûlée", "cafe creme brulee"),
        ("北京大学的学生", "大学"),
        ("用户名", "用户"),
        ("東京タワー", "タワー"),
        ("itgc后台", "itgc"),
        ("서울특별시", "특별"),
        ("Сообщение о канарейках", "канарейка"),
        ("المكتبة الكبيرة", "مكتبة"),
        ("ประเทศไทยมีอากาศร้อน", "อากาศ"),
        ("भारत की राजधानी", "राजधानी"),
        ("the efﬁcient office", "efficient"),
        ("part no. XK-4711/b", "xk-4711"),
        ("infor\u00admation", "information"),
    ],
)
def test_question_finds_its_passage(
    db: Database, add_document: AddDocument, text: str, question: str
) -> None:
    add_document("Nothing to see here.", text, "Rien à voir ici.")

    hits = Search(db).search(question, limit=1)

    assert [hit.chunk.text for hit in hits] == [text]
    assert hits[0].keyword_rank == 0


def test_hit_knows_its_place(db: Database, add_document: AddDocument) -> None:
    document = add_document("first", "the second page", title="Title")

    chunk = Search(db).search("second", limit=1)[0].chunk

    assert (chunk.document_id, chunk.version_id, chunk.document_name) == (
        document.id,
        document.version_id,
        "a.pdf",
    )
    assert (chunk.place.page_index, chunk.place.page_label, chunk.num_pages, chunk.context) == (
        1,
        "2",
        2,
        "Title",
    )
    assert (chunk.place.char_start, chunk.place.char_end) == (0, 15)
    assert chunk.place.rectangles == (Rect(1.0, 2.0, 3.5, 4.25),)
    assert Search(db).chunks_of_page(document.version_id, 1) == [chunk]


def test_title_counts_double(db: Database, add_document: AddDocument) -> None:
    add_document("words about a heron", title="other", path="/a", sha256="1" * 64)
    add_document("words about a plant", title="heron", path="/b", sha256="2" * 64)

    hits = Search(db).search("heron", limit=2)

    assert [hit.chunk.context for hit in hits] == ["heron", "other"]


def test_scope_and_trash_are_kept_to(db: Database, add_document: AddDocument) -> None:
    one = add_document("a heron", path="/a", sha256="1" * 64)
    two = add_document("two herons", path="/b", sha256="2" * 64)
    three = add_document("three herons", path="/c", sha256="3" * 64)
    search, vectors, documents = Search(db), Vectors(db), Documents(db)
    waiting = vectors.chunks_without_vectors("m", 10)
    vectors.add("m", [w.chunk_id for w in waiting], np.eye(3, 8, dtype=np.float32))
    documents.trash(three.id)

    def found(ids: list[int] | None, vector: object) -> set[int]:
        hits = search.search("heron", limit=9, vector=vector, embedder="m", document_ids=ids)  # type: ignore[arg-type]
        return {hit.chunk.document_id for hit in hits}

    for vector in (None, np.ones(8, np.float32)):
        assert found(None, vector) == {one.id, two.id}
        assert found([two.id, three.id], vector) == {two.id}
        assert found([], vector) == set()
    documents.restore(three.id)
    assert found(None, np.ones(8, np.float32)) == {one.id, two.id, three.id}


def test_both_arms_are_fused_with_their_ranks(db: Database, add_document: AddDocument) -> None:
    add_document("heron", "heron and more words", "a grey bird")
    vectors = Vectors(db)
    ids = [w.chunk_id for w in vectors.chunks_without_vectors("m", 10)]
    vectors.add("m", ids, np.array([[0, 1], [1, 0.2], [1, 0]], np.float32))

    hits = Search(db).search("heron", limit=3, vector=np.array([1, 0], np.float32), embedder="m")

    assert [(h.chunk.text, h.keyword_rank, h.vector_rank) for h in hits] == [
        ("heron and more words", 1, 1),
        ("heron", 0, 2),
        ("a grey bird", None, 0),
    ]


def test_fusing_weighs_ranks_and_breaks_ties_by_id() -> None:
    assert [i for i, _ in fuse(([3, 2], 0.5), ([2, 1], 0.5))] == [2, 3, 1]
    assert [i for i, _ in fuse(([9], 0.5), ([4], 0.5))] == [4, 9]
    assert [i for i, _ in fuse(([9], 0.6), ([4], 0.4))] == [9, 4]


def test_scores_are_scaled_and_weighed() -> None:
    by_words, by_meaning = [(3, 8.0), (2, 4.0)], [(2, 0.9), (3, 0.8), (1, 0.5)]

    assert from_zero(by_words) == [(3, 1.0), (2, 0.5)]
    assert [i for i, _ in fuse_scores((from_zero(by_words), 0.5), (from_least(by_meaning), 0.5))] == [3, 2, 1]
    assert [i for i, _ in fuse_scores((from_zero(by_words), 0.1), (from_least(by_meaning), 0.9))] == [2, 3, 1]
    assert from_least([(7, 0.4)]) == from_zero([(7, 0.0)]) == [(7, 1.0)]
    assert from_zero([]) == from_least([]) == fuse_scores() == []


def test_a_question_in_german_finds_the_part_of_a_compound(db: Database, add_document: AddDocument) -> None:
    add_document("Das ist die Betriebsratsrichtlinie der Union.", "Das ist ein Reiher auf einem Bein.")

    hits = Search(db).search("Was verlangt die Richtlinie für Betriebsräte?", limit=1)

    assert [hit.chunk.text for hit in hits] == ["Das ist die Betriebsratsrichtlinie der Union."]


def test_terms_of_nearly_every_passage_are_left_out_only_where_there_are_many(
    db: Database, add_document: AddDocument, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_document(*(f"bird {i}" for i in range(9)), "heron bird")

    def found(question: str) -> int:
        return len(Search(db).search(question, limit=50))

    assert found("heron bird") == 10
    monkeypatch.setattr("inglenook.storage.search.PRUNED_FROM", 5)
    assert found("heron bird") == 1
    assert found("bird") == 10


def test_reader_finds_what_the_writer_has_just_added(
    file_db: Database, documents_of: Callable[[Database], AddDocument]
) -> None:
    with file_db.open_reader() as reader:
        search = Search(reader)
        before = search.search("heron", limit=3)
        document = documents_of(file_db)("a heron")
        vectors = Vectors(file_db)
        waiting = vectors.chunks_without_vectors("m", 5)
        vectors.add("m", [waiting[0].chunk_id], np.ones((1, 4), np.float32))

        hits = search.search("heron", limit=3, vector=np.ones(4, np.float32), embedder="m")

    assert before == []
    assert [(hit.chunk.document_id, hit.keyword_rank, hit.vector_rank) for hit in hits] == [
        (document.id, 0, 0)
    ]
