"""Whether search finds what people judged relevant, on public sets; prints its figures.

Floors are a little below what was measured, so that a change that costs quality shows.
"""

from __future__ import annotations

import json
import math
import re
from pathlib import Path

import pytest

from inglenook.storage.database import Database
from inglenook.storage.documents import Documents
from inglenook.storage.parsing.document import Chunk, ParsedDocument, ParsedPage
from inglenook.storage.search import Search

pytestmark = pytest.mark.slow


def _index(db: Database, passages: list[tuple[str, str]]) -> None:
    """Make one document with a page and a chunk for each title and text, in order."""
    pages = tuple(ParsedPage(index=i, text=text) for i, (_, text) in enumerate(passages))
    chunks = tuple(
        Chunk(page_index=i, page_label=None, start=0, end=len(text), text=text, context=title)
        for i, (title, text) in enumerate(passages)
    )
    documents = Documents(db)
    document, _ = documents.add("/set", name="set", sha256="1", size_bytes=1, modified_at_ns=1)
    parsed = ParsedDocument(kind="text", sha256="1", size_bytes=1, pages=pages, chunks=chunks)
    documents.store(document.version_id, parsed)


def _ndcg(db: Database, questions: list[tuple[str, set[int]]]) -> float:
    """Return the mean nDCG@10 with binary judgements; `questions` have the page indexes of their answers."""
    search, total = Search(db), 0.0
    for question, relevant in questions:
        hits = search.search(question, limit=10)
        gain = sum(
            1 / math.log2(rank + 2) for rank, hit in enumerate(hits) if hit.chunk.place.page_index in relevant
        )
        total += gain / sum(1 / math.log2(rank + 2) for rank in range(min(10, len(relevant))))
    return total / len(questions)


def test_cranfield(db: Database, shared: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = shared / "data" / "cranfield"
    records = re.split(r"^\.I \d+\s*$", (folder / "cran.all.1400").read_text(), flags=re.M)[1:]
    fields = [
        dict(re.findall(r"^\.(\w)\s*\n(.*?)(?=^\.\w\s*$|\Z)", record, flags=re.M | re.S))
        for record in records
    ]
    _index(db, [(" ".join(f.get("T", "").split()), f.get("W", "")) for f in fields])
    texts = re.split(r"^\.I \d+\s*$", (folder / "cran.qry").read_text(), flags=re.M)[1:]
    relevant: dict[int, set[int]] = {}
    for line in (folder / "cranqrel").read_text().splitlines():
        # The last column is how relevant, from 1 (a complete answer) to 4; -1 is "of no interest".
        question, document, grade = [*line.split(), "1"][:3]
        if int(grade) > 0:
            relevant.setdefault(int(question), set()).add(int(document) - 1)

    questions = [
        (text.replace(".W", "", 1), relevant[n]) for n, text in enumerate(texts, start=1) if n in relevant
    ]
    value = _ndcg(db, questions)

    with capsys.disabled():
        print(f"\nCranfield: nDCG@10 {value:.3f} over {len(questions)} questions, {len(fields)} passages")
    assert value > 0.388


def test_npl(db: Database, shared: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = shared / "data" / "npl"

    def records(name: str) -> dict[int, str]:
        parts = re.split(r"^\s*/\s*$", (folder / name).read_text(), flags=re.M)
        pairs = [part.strip().split(maxsplit=1) for part in parts if part.strip()]
        return {int(pair[0]): pair[1] for pair in pairs if len(pair) == 2}

    texts = records("doc-text")
    places = {number: i for i, number in enumerate(texts)}
    _index(db, [("", text) for text in texts.values()])
    judged = records("rlv-ass")
    questions = [
        (text.lower(), {places[int(n)] for n in judged[number].split() if int(n) in places})
        for number, text in records("query-text").items()
    ]

    value = _ndcg(db, questions)

    with capsys.disabled():
        print(f"\nNPL: nDCG@10 {value:.3f} over {len(questions)} questions, {len(texts)} passages")
    assert value > 0.431


@pytest.mark.parametrize(
    ("language", "floor"),
    [
        ("en", 0.964),
        ("de", 0.957),
        ("es", 0.956),
        ("ru", 0.949),
        ("ar", 0.951),
        ("th", 0.971),
        ("hi", 0.956),
        ("zh", 0.961),
    ],
)
def test_xquad(
    db: Database, shared: Path, language: str, floor: float, capsys: pytest.CaptureFixture[str]
) -> None:
    content = json.loads((shared / "data" / "xquad" / f"xquad.{language}.json").read_text(encoding="utf-8"))
    paragraphs = [paragraph for article in content["data"] for paragraph in article["paragraphs"]]
    _index(db, [("", paragraph["context"]) for paragraph in paragraphs])
    questions = [(qa["question"], {i}) for i, paragraph in enumerate(paragraphs) for qa in paragraph["qas"]]

    value = _ndcg(db, questions)

    with capsys.disabled():
        print(f"\nXQuAD {language}: nDCG@10 {value:.3f} over {len(questions)} questions")
    assert value > floor
