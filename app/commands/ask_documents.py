"""`inglenook ask` about documents: answer from them, and say which page each part came from.

The same retrieval, prompts and citations as in the window, without Qt; `asked_documents.py` holds what is asked. With an
embedder in the library passages are searched by meaning as well as by words.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from inglenook.app.answers import citations
from inglenook.app.answers.open_turn import MAX_NEAREST
from inglenook.app.answers.prompts import Prompt, Room, build_prompt, place_text
from inglenook.app.answers.retrieval import Evidence
from inglenook.app.answers.token_estimate import TokenEstimate
from inglenook.app.commands.ask_command import answer_record, print_json, stream, wait_for_model
from inglenook.app.commands.asked_documents import AskedDocuments, ProfileDocuments, preferred_embedder
from inglenook.app.commands.terminal import StatusLine, harmless
from inglenook.engine.client import EngineClient
from inglenook.engine.errors import ContextLengthError, EngineError
from inglenook.engine.request import Finished, Loaded, LoadOptions, Request
from inglenook.storage.records import NewSource

MAX_ATTEMPTS = 5


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
        kept or AskedDocuments(preferred_embedder()) as documents,
        make_client() as client,
    ):
        documents.read(options.document, status)
        loaded = wait_for_model(client.load(path, options=load_options), name, status)
        evidence, text, finished = _answer(client, request, loaded, documents, question, status, options)
    for sentence in (*evidence.notices, *finished.notices):
        status.notice(sentence)
    sources = chosen_sources(text, evidence, question)
    if options.json:
        records = [source_record(source, documents.paths, is_verified) for source, is_verified in sources]
        print_json(answer_record(text, finished, name, loaded.backend, records))
    else:
        _print_sources(sources)
    return 0


def chosen_sources(reply: str, evidence: Evidence, question: str) -> list[tuple[NewSource, bool]]:
    """Return the cited sources with whether each is verified, then the passage closest to the question if it is not one."""
    if evidence.is_refusal:
        return [(citations.as_source(hit), False) for hit in evidence.candidates[:MAX_NEAREST]]
    sources = citations.attach(reply, evidence.candidates, question)
    verified = citations.verified_ranges(reply, sources)
    chosen: dict[tuple[int, int, int, int], tuple[NewSource, bool]] = {}
    for source in sources:
        if source.is_cited and source.answer_range is not None:
            place = source.place
            key = (source.document_id, place.page_index, place.char_start, place.char_end)
            chosen.setdefault(key, (source, verified.get(source.answer_range, False)))
    result = list(chosen.values())
    for best in evidence.candidates[:1]:
        # A candidate of a document that is read whole may not have been found by the question.
        is_found = best.keyword_rank is not None or best.vector_rank is not None
        if is_found and all(source.chunk_id != best.chunk.id for source, _ in result):
            result.append((citations.as_source(best), False))
    return result


def source_record(source: NewSource, paths: dict[int, Path], is_verified: bool) -> dict[str, object]:
    """Return a source as JSON has it. Pages count from 1; a text without pages has lines instead.

    "cited": a sentence of the answer rests on it; false for the passage closest to the question. "verified": all
    numbers, names and quotations of that sentence stand in the quotes.
    """
    place = source.place
    has_lines = place.first_line is not None
    return {
        "file": str(paths.get(source.document_id, source.document_name)),
        "page": None if has_lines else place.page_index + 1,
        "page_label": place.page_label,
        "lines": [place.first_line, place.last_line] if has_lines else None,
        "quote": source.quote,
        "cited": source.is_cited,
        "verified": is_verified,
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


def _print_sources(sources: Sequence[tuple[NewSource, bool]]) -> None:
    for number, (source, is_verified) in enumerate(sources, 1):
        kind = "" if source.is_cited else "closest passage: "
        mark = " (not all of the sentence is in it)" if source.is_cited and not is_verified else ""
        quote = " ".join(source.quote.split())
        shown = quote if len(quote) <= 200 else quote[:199] + "…"
        print(
            harmless(f"[{number}] {kind}{source.document_name}, {place_text(source.place)}{mark}: “{shown}”")
        )
