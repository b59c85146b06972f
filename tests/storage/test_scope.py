"""Which documents a scope holds, and that a scoped search ranks as the whole one does, less what is outside."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable

import numpy as np
import pytest

from inglenook.storage.database import Database
from inglenook.storage.document_collections import DocumentCollections
from inglenook.storage.documents import Documents
from inglenook.storage.records import Document
from inglenook.storage.scope import Scope, documents_in, searched_chunks
from inglenook.storage.search import Search
from inglenook.storage.vectors import Vectors

AddDocument = Callable[..., Document]
_2021_NS = 1_623_000_000 * 10**9


def _add(db: Database, name: str, *, title: str = "", modified_at_ns: int = _2021_NS) -> int:
    documents = Documents(db)
    document, _ = documents.add(
        f"/papers/{name}",
        name=name.rsplit("/", 1)[-1],
        sha256=hashlib.sha256(name.encode()).hexdigest(),
        size_bytes=1,
        modified_at_ns=modified_at_ns,
    )
    documents.begin_version(document.version_id)
    documents.finish_version(document.version_id, title=title)
    return document.id


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("annual", ["Annual report 2019.pdf", "annual [draft].txt"]),
        ("ANNUAL*", ["Annual report 2019.pdf", "annual [draft].txt"]),
        ("*.txt", ["annual [draft].txt"]),
        ("[draft]", ["annual [draft].txt"]),
        ("übersicht", ["ÜBERSICHT.md"]),
        ("U\u0308bersicht", ["ÜBERSICHT.md"]),
        ("2019?pdf", []),
        ("*2019?pdf", ["Annual report 2019.pdf"]),
        ("old/*", []),
        ("*/old/*", ["minutes.pdf"]),
        ('" OR 1=1 --', []),
        ("%", []),
        ("_", []),
    ],
)
def test_names_are_matched_as_a_person_means_them(db: Database, pattern: str, found: list[str]) -> None:
    for name in ("Annual report 2019.pdf", "annual [draft].txt", "ÜBERSICHT.md", "old/minutes.pdf"):
        _add(db, name)

    ids = documents_in(db, Scope(names=(pattern,)))

    assert [Documents(db).get(id_).name for id_ in ids] == found


@pytest.mark.parametrize(
    ("year", "found"),
    [
        (2019, ["report-2019.pdf", "2018-2019.pdf"]),
        (2018, ["2018-2019.pdf"]),
        (2021, ["minutes.pdf", "id20190.pdf"]),
        (1987, ["titled.pdf"]),
        (2020, []),
    ],
)
def test_year_is_that_of_name_or_title_or_else_of_the_last_change(
    db: Database, year: int, found: list[str]
) -> None:
    for name in ("report-2019.pdf", "2018-2019.pdf", "minutes.pdf", "id20190.pdf"):
        _add(db, name)
    _add(db, "titled.pdf", title="Accounts for 1987")

    ids = documents_in(db, Scope(years=(year,)))

    assert [Documents(db).get(id_).name for id_ in ids] == found


def test_parts_narrow_each_other_and_the_trash_is_never_inside(db: Database) -> None:
    ids = [_add(db, f"{number} {year}.txt") for year in (2001, 2002) for number in range(3)]
    DocumentCollections(db).put("Letters", ids[::2])
    Documents(db).trash(ids[4])

    assert documents_in(db, Scope()) == [ids[0], ids[1], ids[2], ids[3], ids[5]]
    assert documents_in(db, Scope(collections=("letters",))) == [ids[0], ids[2]]
    assert documents_in(db, Scope(collections=("letters",), document_ids=tuple(ids[1:]))) == [ids[2]]
    assert documents_in(db, Scope(collections=("Letters",), years=(2002,))) == []
    assert documents_in(db, Scope(collections=("Letters", "none"), names=("0 ", "1 "))) == [ids[0]]
    assert documents_in(db, Scope(document_ids=())) == []


def _passages(db: Database, add_document: AddDocument, rng: random.Random) -> list[int]:
    """Documents of a few pages each, one of them with an unfinished new version; return their ids."""
    words = [f"word{i}" for i in range(40)]
    ids = []
    for number in range(12):
        texts = [" ".join(rng.choices(words, k=12)) for _ in range(rng.randint(1, 6))]
        ids.append(add_document(*texts, path=f"/{number}", sha256=str(number)).id)
    add_document("word1 word2 anew", path="/3", sha256="3 anew")
    unfinished, _ = Documents(db).add("/5", name="5", sha256="5 anew", size_bytes=1, modified_at_ns=1)
    Documents(db).begin_version(unfinished.version_id)
    Documents(db).trash(ids[7])
    return ids


@pytest.mark.parametrize("seed", range(6))
def test_scoped_search_is_the_whole_search_less_what_is_outside(
    db: Database, add_document: AddDocument, seed: int
) -> None:
    rng = random.Random(seed)
    ids = _passages(db, add_document, rng)
    vectors, values = Vectors(db), np.random.default_rng(seed)
    pending = vectors.chunks_without_vectors("m", 1000)
    vectors.add("m", [p.chunk_id for p in pending], values.standard_normal((len(pending), 16), np.float32))
    search, vector = Search(db), values.standard_normal(16).astype(np.float32)
    question = " ".join(f"word{rng.randrange(40)}" for _ in range(5))
    inside = set(rng.sample(ids, k=rng.randint(1, len(ids))))

    for given in ({}, {"vector": vector, "embedder": "m", "keyword_weight": 0.0}):
        whole = search.search(question, limit=500, **given)
        scoped = search.search(question, limit=500, document_ids=inside, **given)

        assert [hit.chunk.id for hit in scoped] == [
            hit.chunk.id for hit in whole if hit.chunk.document_id in inside
        ]
        assert ids[7] not in {hit.chunk.document_id for hit in whole}


def test_nothing_is_outside_where_every_document_is_ticked(db: Database, add_document: AddDocument) -> None:
    ids = [add_document("one", "two", path=f"/{n}", sha256=str(n)).id for n in range(3)]

    assert searched_chunks(db, ids).is_everything
    assert searched_chunks(db, None).is_everything
    some = searched_chunks(db, ids[:2])
    assert not some.is_everything
    assert some.ranges.tolist() == [[1, 4]]
    assert searched_chunks(db, []).is_empty
