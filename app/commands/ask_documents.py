"""`inglenook ask` about documents: answer from them, and say which page each part came from.

The same retrieval, prompts and citations as in the window, without Qt; `asked_documents.py` holds what is asked. With an
embedder in the library passages are searched by meaning as well as by words.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

from inglenook.app.answers import citations
from inglenook.app.answers.open_turn import MAX_NEAREST
from inglenook.app.answers.prompts import Prompt, Room, build_prompt, place_text
from inglenook.app.answers.retrieval import Evidence
from inglenook.app.answers.sentence_checks import is_baseless_answer, sentence_checks
from inglenook.app.answers.token_estimate import TokenEstimate
from inglenook.app.commands.ask_command import answer_record, print_json, stream, wait_for_model
from inglenook.app.commands.asked_documents import AskedDocuments, ProfileDocuments, preferred_embedder
from inglenook.app.commands.terminal import StatusLine, harmless, one_line
from inglenook.app.text.reasoning import part_reply
from inglenook.engine.client import EngineClient
from inglenook.engine.errors import ContextLengthError, EngineError
from inglenook.engine.request import Finished, Loaded, LoadOptions, Request
from inglenook.storage.records import NewSource

MAX_ATTEMPTS = 5
UNSUPPORTED = "Nothing in this answer was found in the documents. Check it against their pages."
_MOST_CHARS = 200


def answer_from_documents(
    options: argparse.Namespace,
    request: Request,
    load_options: LoadOptions,
    model: tuple[str, Path],
    make_client: Callable[[], EngineClient],
) -> int:
    """Answer one question from the documents named; returns the exit status."""
    name, path = model
    question = request.messages[-1]["content"] if request.messages else ""
    kept = None if options.document else ProfileDocuments(options)
    with (
        StatusLine() as status,
        kept or AskedDocuments(preferred_embedder(), options.password_file) as documents,
        make_client() as client,
    ):
        documents.read(options.document, status)
        loaded = wait_for_model(client.load(path, options=load_options), name, status)
        evidence, text, finished = _answer(client, request, loaded, documents, question, status, options)
    for sentence in (*evidence.notices, *finished.notices):
        status.notice(sentence)
    grounded = Grounded.of(_without_thought(text, loaded), evidence, question)
    if options.json:
        records = [source_record(source, documents.paths) for source in grounded.sources]
        print_json(
            answer_record(text, finished, name, loaded.backend, records)
            | {
                "unsupported": list(grounded.unsupported),
                "notices": [*status.notices, *grounded.notices],
            }
        )
    else:
        _print_sources(grounded)
    return 0


@dataclass(frozen=True, slots=True)
class Grounded:
    """What an answer rests on: its sources, the sentences that no passage says, and sentences about that."""

    sources: tuple[NewSource, ...]
    unsupported: tuple[str, ...] = ()
    notices: tuple[str, ...] = ()

    @classmethod
    def of(cls, reply: str, evidence: Evidence, question: str) -> Self:
        """Find the cited sources, then the passage closest to the question if it is not one of them."""
        if evidence.is_refusal:
            return cls(tuple(citations.as_source(hit) for hit in evidence.candidates[:MAX_NEAREST]))
        every = citations.attach(reply, evidence.candidates, question)
        cited = {
            (
                source.document_id,
                source.place.page_index,
                source.place.char_start,
                source.place.char_end,
            ): source
            for source in reversed(every)
            if source.is_cited
        }
        sources = list(reversed(cited.values()))
        for best in evidence.candidates[:1]:
            # A candidate of a document that is read whole may not have been found by the question.
            is_found = best.keyword_rank is not None or best.vector_rank is not None
            if is_found and all(source.chunk_id != best.chunk.id for source in sources):
                sources.append(citations.as_source(best))
        if evidence.answer or not evidence.candidates:
            return cls(tuple(sources))
        checks = sentence_checks(reply, every)
        missing = tuple(reply[c.start : c.end].strip() for c in checks if c.status == "not found")
        is_baseless = is_baseless_answer(checks, question)
        return cls(tuple(sources), missing, (UNSUPPORTED,) if is_baseless else ())


def _without_thought(text: str, loaded: Loaded) -> str:
    """Return the answer alone: what a model only thought is held against no passage."""
    tags = loaded.reasoning
    return part_reply(text, end_tag=tags.end if tags is not None and tags.is_open else "").answer


def source_record(source: NewSource, paths: dict[int, Path]) -> dict[str, object]:
    """Return a source as JSON has it; `ask --help` explains the keys. Pages count from 1."""
    place = source.place
    has_lines = place.first_line is not None
    return {
        "file": str(paths.get(source.document_id, source.document_name)),
        "page": None if has_lines else place.page_index + 1,
        "page_label": place.page_label,
        "lines": [place.first_line, place.last_line] if has_lines else None,
        "quote": source.quote,
        "cited": source.is_cited,
        # Only what was checked is cited.
        "verified": source.is_cited,
    }


def _answer(
    client: EngineClient,
    request: Request,
    loaded: Loaded,
    documents: AskedDocuments,
    question: str,
    status: StatusLine,
    options: argparse.Namespace,
) -> tuple[Evidence, str, Finished]:
    """Ask, with a shorter prompt each time that the engine says it is too long."""
    estimate = TokenEstimate()
    room = Room.of(loaded.context_length, request.sampling.max_tokens)
    whole_bytes = round(room.whole_tokens * estimate.bytes_per_token)
    evidence = documents.gather(question, whole_bytes=whole_bytes, client=client, status=status)
    if evidence.answer:
        if not options.json:
            print(harmless(evidence.answer))
        return evidence, evidence.answer, _said_without_model()
    system = next((m["content"] for m in request.messages or () if m["role"] == "system"), "")
    for attempt in range(MAX_ATTEMPTS):
        prompt = _prompt(question, room, estimate, system, evidence, is_first=attempt == 0)
        for sentence in prompt.notices:
            status.notice(sentence)
        handle = client.submit(replace(request, messages=prompt.messages))
        try:
            finished = stream(handle, status, quiet=options.json)
            return evidence, handle.text(), finished
        except EngineError as error:
            if not isinstance(error, ContextLengthError) or attempt + 1 == MAX_ATTEMPTS:
                options.text = handle.text()
                raise
            estimate.lower()
        finally:
            handle.cancel()
    raise AssertionError("the last attempt returns or raises")


def _said_without_model() -> Finished:
    return Finished(
        finish_reason="stop",
        prompt_tokens=0,
        cached_tokens=0,
        completion_tokens=0,
        ttft_s=None,
        tpot_s=None,
        seed=0,
        finish_reasons=("stop",),
    )


def _prompt(
    question: str, room: Room, estimate: TokenEstimate, system: str, evidence: Evidence, *, is_first: bool
) -> Prompt:
    is_whole = bool(evidence.whole) and is_first
    return build_prompt(
        question,
        room=room,
        count=estimate.count,
        system=system,
        whole=evidence.whole if is_whole else (),
        passages=() if is_whole else evidence.candidates,
    )


def _print_sources(grounded: Grounded) -> None:
    for sentence in grounded.notices:
        print(sentence)
    for sentence in () if grounded.notices else grounded.unsupported:
        print(one_line(f"Not found in the documents: “{_shortened(sentence)}”"))
    for number, source in enumerate(grounded.sources, 1):
        kind = "" if source.is_cited else "closest passage: "
        place = place_text(source.place)
        print(one_line(f"[{number}] {kind}{source.document_name}, {place}: “{_shortened(source.quote)}”"))


def _shortened(text: str) -> str:
    words = " ".join(text.split())
    return words if len(words) <= _MOST_CHARS else words[: _MOST_CHARS - 1] + "…"
