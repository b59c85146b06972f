"""Whether a question is refused that the documents cannot answer, and only that: XQuAD with paragraphs taken out.

Every question is asked three times: of all paragraphs (it must be answered), without those that hold its answer
("paragraph_out"), and without its whole article ("article_out"). The product's own search and gate decide; no model
runs. `--language` takes another language, for which the gate is made to be careful.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import numpy as np
from retrieval import Encoder, embed_all

from inglenook.app.answers.retrieval import gather
from inglenook.storage.chunking import TokenOffsets, chunk_page
from inglenook.storage.database import Database
from inglenook.storage.documents import Documents
from inglenook.storage.parsing.document import ParsedDocument, ParsedPage
from inglenook.storage.search import Search


def refusal_figures(
    file: Path, encoder: Encoder | None, token_offsets: TokenOffsets, num_questions: int | None = None
) -> dict[str, object]:
    """Ask `num_questions` of the set, evenly spread, or all."""
    content = json.loads(file.read_text(encoding="utf-8"))
    counts = {"answerable": 0, "paragraph_out": 0, "article_out": 0}
    with Database.in_memory() as db:
        documents, asked = Documents(db), []
        texts: dict[int, tuple[int, str]] = {}
        with db.atomic():
            for article, paragraphs in enumerate(entry["paragraphs"] for entry in content["data"]):
                for paragraph in paragraphs:
                    document_id = _add(documents, paragraph["context"], token_offsets)
                    texts[document_id] = (article, paragraph["context"].lower())
                    asked += [
                        (qa["question"], article, document_id, [a["text"].lower() for a in qa["answers"]])
                        for qa in paragraph["qas"]
                    ]
        asked = asked[:: max(1, len(asked) // num_questions)][:num_questions] if num_questions else asked
        vectors = None
        if encoder is not None:
            embed_all(db, encoder)
            vectors = encoder.encode([question for question, *_ in asked])
        search = Search(db)
        for number, (question, article, gold, answers) in enumerate(asked):
            scopes = {
                "answerable": list(texts),
                "paragraph_out": [
                    i for i, (_, text) in texts.items() if i != gold and not any(a in text for a in answers)
                ],
                "article_out": [i for i, (other, _) in texts.items() if other != article],
            }
            vector = None if vectors is None else np.asarray(vectors[number])
            for name, ids in scopes.items():
                evidence = gather(
                    db,
                    search,
                    question,
                    ids,
                    whole_bytes=0,
                    vector=vector,
                    embedder=encoder.name if encoder is not None else "",
                )
                counts[name] += evidence.is_refusal
    return {
        "asked": len(asked),
        "over_refusal": round(counts["answerable"] / len(asked), 3),
        "refused_paragraph_out": round(counts["paragraph_out"] / len(asked), 3),
        "refused_article_out": round(counts["article_out"] / len(asked), 3),
    }


def _add(documents: Documents, text: str, token_offsets: TokenOffsets) -> int:
    page = ParsedPage(index=0, text=text)
    number = hashlib.sha256(text.encode()).hexdigest()
    document, _ = documents.add(
        f"/{number}", name=f"{number}.txt", sha256=number, size_bytes=1, modified_at_ns=1
    )
    chunks = tuple(chunk_page(page, token_offsets=token_offsets))
    documents.store(
        document.version_id,
        ParsedDocument(kind="text", sha256=number, size_bytes=1, pages=(page,), chunks=chunks),
    )
    return document.id
