"""Which page is found for questions about annual reports (FinanceBench): 23 questions, 27 pages of evidence, 10 filings.

`recall@5` is the share of questions with any evidence among the first five distinct pages. Our own keyword search of the
same run is the baseline. "chosen" searches only the filing that the question is about. Every question is also asked of that
filing, and of those of the other companies, which do not hold its answer: "over_refusal" and "refused_elsewhere" are
shares of refusals by a gate that was not set on these questions.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from retrieval import Encoder, embed_all

from inglenook.app.answers.retrieval import gather
from inglenook.storage.database import Database
from inglenook.storage.documents import Documents
from inglenook.storage.parsing.client import ParserClient
from inglenook.storage.records import Hit
from inglenook.storage.search import Search

_DEPTH = 100


def finance_figures(folder: Path, encoder: Encoder) -> dict[str, object]:
    """Read the filings of a folder with `questions.jsonl` and `pdfs/`, and ask every question."""
    lines = (folder / "questions.jsonl").read_text(encoding="utf-8").splitlines()
    questions = [json.loads(line) for line in lines if line.strip()]
    ids: dict[str, int] = {}
    num_pages = 0
    with Database.in_memory() as db, ParserClient(tokenizer=encoder.tokenizer) as parser:
        documents = Documents(db)
        for path in sorted((folder / "pdfs").glob("*.pdf")):
            parsed = parser.parse(path)
            document, _ = documents.add(
                str(path), name=path.name, sha256=parsed.sha256, size_bytes=1, modified_at_ns=1
            )
            documents.store(document.version_id, parsed)
            ids[path.stem] = document.id
            num_pages += len(parsed.pages)
        embed_all(db, encoder)
        vectors = encoder.encode([question["question"] for question in questions])
        search = Search(db)
        found: dict[str, int] = {}
        refused = {"over_refusal": 0, "refused_elsewhere": 0}
        for question, vector in zip(questions, vectors, strict=True):
            evidence = {(ids[e["doc_name"]], e["evidence_page_num"]) for e in question["evidence"]}
            company = question["doc_name"].split("_")[0]
            elsewhere = [id_ for name, id_ in ids.items() if name.split("_")[0] != company]
            own = [ids[question["doc_name"]]]
            for key, asked in (("over_refusal", own), ("refused_elsewhere", elsewhere)):
                judged = gather(
                    db,
                    search,
                    question["question"],
                    asked,
                    whole_bytes=0,
                    vector=vector,
                    embedder=encoder.name,
                )
                refused[key] += judged.is_refusal
            for scope, within in (("all", None), ("chosen", [ids[question["doc_name"]]])):
                for arm, given in (("keyword", None), ("hybrid", vector)):
                    hits = search.search(
                        question["question"],
                        limit=_DEPTH,
                        vector=given,
                        embedder=encoder.name,
                        keyword_weight=1.0 if given is None else None,
                        document_ids=within,
                    )
                    pages = _pages(hits)
                    for depth in (5, 20):
                        key = f"{arm}_{scope}_recall@{depth}"
                        found[key] = found.get(key, 0) + bool(evidence & set(pages[:depth]))
    return {
        "filings": len(ids),
        "filing_pages": num_pages,
        "questions": len(questions),
        **{key: round(count / len(questions), 3) for key, count in sorted(found.items())},
        **{f"finance_{key}": round(count / len(questions), 3) for key, count in refused.items()},
    }


def _pages(hits: Sequence[Hit]) -> list[tuple[int, int]]:
    """Return the distinct pages of hits, each where its first passage stands."""
    return list(dict.fromkeys((hit.chunk.document_id, hit.chunk.place.page_index) for hit in hits))
