"""What a question is answered from: small documents whole, or the best passages of the ticked ones.

One function for the window and the command line; it reads the database and belongs on the reader's thread. A question
that leans on the one before ("and in 2023?") is also searched together with it. Near-duplicates are dropped, and of
several documents none fills all places.
"""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from inglenook.app.answers.claims import terms
from inglenook.app.answers.prompts import WholeDocument, whole_size_bytes
from inglenook.app.answers.sufficiency import is_question, refusal, sufficiency
from inglenook.app.answers.whole_requests import answer_by_counting, read_notice, spread_chunks, whole_request
from inglenook.storage.database import Database
from inglenook.storage.documents import Documents
from inglenook.storage.errors import NotFoundError
from inglenook.storage.records import Document, Hit
from inglenook.storage.search import Search

MAX_HITS = 24
MAX_PER_DOCUMENT = 4

_DEPTH = 50
_DELETED = "A ticked document has been deleted and was not searched."
_NOTHING_TO_SEARCH = "None of the ticked documents can be searched."
_ASK_WITHOUT = "Take their ticks away to ask the model alone."
_SAME = 0.95
_FOLLOW_UP_WORDS = 12
_LEANS = re.compile(
    r"\b(?:it|its|that|this|these|those|they|them|their|he|she|him|her|same|yes|no|why|and|also|more|else)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Evidence:
    """What was found. `candidates` are the passages that a sentence of the reply may rest on, best first.

    Either `whole` goes into the prompt, or as many of the candidates as fit. `notices` are sentences for the user.
    `answer`, where there is one, is said in place of the model's: what was counted or listed in the database, or, with
    `is_refusal`, that the passages cannot hold what was asked; the candidates are then the nearest.
    """

    whole: tuple[WholeDocument, ...] = ()
    candidates: tuple[Hit, ...] = ()
    num_documents: int = 0
    notices: tuple[str, ...] = ()
    answer: str = ""
    is_refusal: bool = False


def gather(
    db: Database,
    search: Search,
    question: str,
    document_ids: Sequence[int],
    *,
    whole_bytes: int,
    previous_question: str = "",
    vector: NDArray[np.float32] | None = None,
    embedder: str = "",
    may_refuse: bool = True,
) -> Evidence:
    """Find what to answer from in the documents given; those that are gone or have no text yet are said so.

    With `may_refuse` a question whose answer the passages can hardly hold is refused (sufficiency.py).

    `search` is of the same connection; kept between questions it has vectors in memory. Documents go in whole when all of them together have at most `whole_bytes`.
    """
    documents, notices = _ready(Documents(db), document_ids)
    if not documents:
        # An answer from the model's own memory would read as one from the documents.
        is_there = len(notices) > notices.count(_DELETED)
        if is_there and may_refuse:
            answer = " ".join((_NOTHING_TO_SEARCH, *notices, _ASK_WITHOUT))
            return Evidence(answer=answer, is_refusal=True)
        return Evidence(notices=tuple(notices))
    ids = [document.id for document in documents]
    request = whole_request(question)
    if request is not None:
        answer = answer_by_counting(Documents(db), documents, request)
        if answer:
            return Evidence((), (), len(documents), tuple(notices), answer)
    whole = _whole(Documents(db), documents, whole_bytes)
    if request is not None and not whole:
        chunks = spread_chunks(search, documents)
        notices.append(read_notice(chunks, documents))
        spread = tuple(Hit(chunk, 0.0, None, None) for chunk in chunks)
        return Evidence((), spread, len(documents), tuple(notices))
    hits = _search(search, question, ids, previous_question, vector, embedder)
    if whole:
        seen = {hit.chunk.id for hit in hits}
        rest = [
            chunk
            for document in documents
            for page_index in range(document.num_pages)
            for chunk in search.chunks_of_page(document.version_id, page_index)
            if chunk.id not in seen
        ]
        hits += [Hit(chunk, 0.0, None, None) for chunk in rest]
    else:
        hits = _selected(hits, per_document=MAX_PER_DOCUMENT if len(documents) > 1 else MAX_HITS)
        leans = bool(previous_question) and is_follow_up(question)
        if may_refuse and not leans and is_question(question):
            used = embedder if vector is not None else ""
            found = sufficiency(
                question,
                hits,
                num_passages=search.num_passages(),
                count_with=search.count_with,
                count_with_piece=search.count_with_piece,
                embedder=used,
            )
            if not found.is_enough:
                names = [document.name for document in documents]
                return Evidence((), tuple(hits), len(names), tuple(notices), refusal(hits, names), True)
    return Evidence(whole, tuple(hits), len(documents), tuple(notices))


def is_follow_up(question: str) -> bool:
    """Whether a question may need the one before it to be understood."""
    return len(question.split()) <= _FOLLOW_UP_WORDS or _LEANS.search(question) is not None


def _ready(documents: Documents, document_ids: Sequence[int]) -> tuple[list[Document], list[str]]:
    ready, notices = [], []
    for document_id in dict.fromkeys(document_ids):
        try:
            document = documents.get(document_id)
        except NotFoundError:
            notices.append(_DELETED)
            continue
        if document.num_chunks and document.trashed_at_ms is None:
            ready.append(document)
            if document.status in ("waiting", "parsing"):
                notices.append(f"{document.name} is still being read; only what is read so far was searched.")
        elif document.status in ("failed", "locked"):
            notices.append(f"{document.name} was not searched. {document.error}")
        elif document.trashed_at_ms is None:
            notices.append(f"{document.name} is still being read and was not searched yet.")
    return ready, notices


def _whole(documents: Documents, wanted: Sequence[Document], whole_bytes: int) -> tuple[WholeDocument, ...]:
    """Return all documents with their pages, or nothing where they are too large or not read to the end."""
    result: list[WholeDocument] = []
    for document in wanted:
        # UTF-8 has at least as many bytes as PDF text characters; the file itself says nothing for a PDF.
        if document.status != "ready" or document.num_pages > whole_bytes // 24 + 1:
            return ()
        pages = tuple(documents.pages(document.version_id))
        whole_bytes -= whole_size_bytes(pages)
        if whole_bytes < 0:
            return ()
        result.append(WholeDocument(document.id, document.name, pages))
    return tuple(result)


def _search(
    search: Search,
    question: str,
    document_ids: Sequence[int],
    previous_question: str,
    vector: NDArray[np.float32] | None,
    embedder: str,
) -> list[Hit]:
    hits = search.search(question, limit=_DEPTH, vector=vector, embedder=embedder, document_ids=document_ids)
    if not previous_question or not is_follow_up(question):
        return hits
    wider = search.search(f"{previous_question}\n{question}", limit=_DEPTH, document_ids=document_ids)
    # Taken in turn, so that the best of either is near the top whatever the other ranks first.
    pairs = itertools.zip_longest(wider, hits)
    return list({hit.chunk.id: hit for pair in pairs for hit in pair if hit is not None}.values())


def _selected(hits: Sequence[Hit], *, per_document: int) -> list[Hit]:
    """Drop near-duplicates and what exceeds a document's share; keep the order."""
    kept: list[Hit] = []
    words: list[set[str]] = []
    counts: Counter[int] = Counter()
    for hit in hits:
        if counts[hit.chunk.document_id] >= per_document:
            continue
        own = terms(hit.chunk.text)
        if any(_likeness(own, other) >= _SAME for other in words):
            continue
        kept.append(hit)
        words.append(own)
        counts[hit.chunk.document_id] += 1
        if len(kept) >= MAX_HITS:
            break
    return kept


def _likeness(one: set[str], other: set[str]) -> float:
    return len(one & other) / len(one | other) if one or other else 1.0
