"""What a model answers from passages, and whether its sentences rest on them: answerable questions of XQuAD.

The product's search over all paragraphs finds the passages, its prompt asks, its code cites. `contains_gold`: the answer
has the words that people marked. `citation_precision`: of the sentences with a citation, those whose every number,
name and quotation stands in what is cited; the program cites no others, so two more figures judge it from outside:
`quotes_gold`, of the answers with the marked words and a citation, those whose quotes have the marked words, and
`cited_elsewhere`, of the answers held against the passages of another question, those that get a citation all the
same. `citation_recall`: of the sentences that claim something, those with a citation. `cites_gold`: a citation is of the
paragraph that the question was asked about. `wrong_cited`: of the answers without the marked words, those with a
citation; they may say, rightly cited, something that was not asked.
"""

from __future__ import annotations

import json
import sys
import time
from collections import Counter
from pathlib import Path

from retrieval import Encoder, embed_all

from inglenook.app.answers.citations import attach, verified_ranges
from inglenook.app.answers.prompts import Room, build_prompt
from inglenook.app.answers.retrieval import gather
from inglenook.app.answers.sentence_checks import sentence_checks
from inglenook.app.answers.token_estimate import TokenEstimate
from inglenook.engine.client import EngineClient
from inglenook.engine.request import LoadOptions, Request, SamplingParams
from inglenook.storage.chunking import TokenOffsets, chunk_page
from inglenook.storage.database import Database
from inglenook.storage.documents import Documents
from inglenook.storage.parsing.document import ParsedDocument, ParsedPage
from inglenook.storage.records import Hit
from inglenook.storage.search import Search

MAX_TOKENS = 60
CONTEXT = 4096


def answer_figures(
    file: Path,
    encoder: Encoder,
    token_offsets: TokenOffsets,
    model: Path,
    *,
    num_questions: int,
    num_passages: int,
    first: int = 0,
    num_threads: int | None = None,
    max_seconds: float = float("inf"),
    kept: Path | None = None,
) -> dict[str, object]:
    """Ask `num_questions`, evenly spread over the set from the `first`, with the best `num_passages` each.

    No question is begun after `max_seconds`; "asked" says how many were. Replies are taken from the file `kept` and
    added to it, so that the next run goes on; how they are cited is worked out anew each time.
    """
    replies = _Replies(kept, f"{model.name}, {num_passages} passages")
    content = json.loads(file.read_text(encoding="utf-8"))
    totals: Counter[str] = Counter()
    before: tuple[Hit, ...] = ()
    with Database.in_memory() as db, EngineClient.in_process() as client:
        documents, asked = Documents(db), []
        with db.atomic():
            for number, paragraph in enumerate(p for entry in content["data"] for p in entry["paragraphs"]):
                page = ParsedPage(index=number, text=paragraph["context"])
                document_id = _add(documents, page, token_offsets)
                asked += [
                    (qa["question"], document_id, [a["text"] for a in qa["answers"]])
                    for qa in paragraph["qas"]
                ]
        embed_all(db, encoder)
        asked = asked[first :: max(1, len(asked) // num_questions)][:num_questions]
        search, estimate = Search(db), TokenEstimate()
        is_loaded = False
        started, num_asked = time.monotonic(), 0
        every = [document.id for document in documents.entries()]
        for number, (question, gold, answers) in enumerate(asked, 1):
            is_known = question in replies.texts
            if not is_known and time.monotonic() - started > max_seconds:
                continue
            num_asked += 1
            vector = encoder.encode([question])[0]
            evidence = gather(
                db,
                search,
                question,
                every,
                whole_bytes=0,
                vector=vector,
                embedder=encoder.name,
                may_refuse=False,
            )
            passages = evidence.candidates[:num_passages]
            prompt = build_prompt(
                question, room=Room.of(CONTEXT, MAX_TOKENS), count=estimate.count, passages=passages
            )
            if not is_known:
                if not is_loaded:
                    options = LoadOptions(context_length=CONTEXT, num_threads=num_threads)
                    client.load(model, options=options).result()
                    is_loaded = True
                handle = client.submit(
                    Request(
                        messages=prompt.messages,
                        sampling=SamplingParams(temperature=0.0, max_tokens=MAX_TOKENS),
                    )
                )
                handle.result()
                replies.add(question, handle.text())
            text = replies.texts[question]
            # The product cites from all candidates; those that the model was not given cannot be what it read.
            sources = attach(text, prompt.passages, question)
            verified = verified_ranges(text, sources)
            claiming = [c for c in sentence_checks(text, sources) if c.status != "nothing"]
            is_right = any(answer.lower() in text.lower() for answer in answers)
            quotes = " ".join(source.quote for source in sources if source.is_cited).lower()
            totals["gold"] += is_right
            totals["right_cited"] += is_right and bool(quotes)
            totals["quotes_gold"] += is_right and any(answer.lower() in quotes for answer in answers)
            totals["wrong_cited"] += not is_right and bool(quotes)
            elsewhere = [hit for hit in before if hit.chunk.document_id != gold]
            totals["elsewhere"] += bool(elsewhere)
            totals["cited_elsewhere"] += any(s.is_cited for s in attach(text, elsewhere, question))
            # The question before is of the same article most often: the hardest passages that are not its own.
            before = prompt.passages
            totals["cited"] += len(verified)
            totals["verified"] += sum(verified.values())
            totals["claiming"] += len(claiming)
            totals["claiming_cited"] += sum((c.start, c.end) in verified for c in claiming)
            totals["cites_gold"] += any(s.is_cited and s.document_id == gold for s in sources)
            print(f"\ranswered {number} of {len(asked)}", end="", file=sys.stderr)
    return {
        "model": model.name,
        "asked": num_asked,
        "passages": num_passages,
        "contains_gold": round(totals["gold"] / max(1, num_asked), 3),
        "citation_precision": round(totals["verified"] / max(1, totals["cited"]), 3),
        "citation_recall": round(totals["claiming_cited"] / max(1, totals["claiming"]), 3),
        "quotes_gold": round(totals["quotes_gold"] / max(1, totals["right_cited"]), 3),
        "cited_elsewhere": round(totals["cited_elsewhere"] / max(1, totals["elsewhere"]), 3),
        "wrong_cited": round(totals["wrong_cited"] / max(1, num_asked - totals["gold"]), 3),
        "cites_gold": round(totals["cites_gold"] / max(1, num_asked), 3),
    }


class _Replies:
    """Replies by question, of one way of asking; in a file of JSON lines if there is one."""

    def __init__(self, file: Path | None, way: str) -> None:
        self._file, self._way = file, way
        self.texts: dict[str, str] = {}
        for line in file.read_text(encoding="utf-8").splitlines() if file and file.exists() else ():
            known_way, question, text = json.loads(line)
            if known_way == way:
                self.texts[question] = text

    def add(self, question: str, text: str) -> None:
        self.texts[question] = text
        if self._file is not None:
            with self._file.open("a", encoding="utf-8") as out:
                out.write(json.dumps([self._way, question, text], ensure_ascii=False) + "\n")


def _add(documents: Documents, page: ParsedPage, token_offsets: TokenOffsets) -> int:
    name = f"{page.index}.txt"
    document, _ = documents.add(f"/{name}", name=name, sha256=name, size_bytes=1, modified_at_ns=1)
    page = ParsedPage(index=0, text=page.text)
    parsed = ParsedDocument(
        kind="text",
        sha256=name,
        size_bytes=1,
        pages=(page,),
        chunks=tuple(chunk_page(page, token_offsets=token_offsets)),
    )
    documents.store(document.version_id, parsed)
    return document.id
