"""`inglenook ask --document FILE`: read the files, answer from them, and say which page each part came from.

The same retrieval, prompts and citations as in the window, without Qt: documents live in a temporary database that is
gone with the command, and the profile is never touched. With an embedder in the library passages are searched by
meaning as well as by words.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Self

import numpy as np
from numpy.typing import NDArray

from inglenook.app.answers import citations
from inglenook.app.answers.open_turn import MAX_NEAREST
from inglenook.app.answers.prompts import Prompt, Room, build_prompt, place_text
from inglenook.app.answers.retrieval import Evidence, gather
from inglenook.app.answers.token_estimate import TokenEstimate
from inglenook.app.commands.ask_command import answer_record, print_json, stream, wait_for_model
from inglenook.app.commands.terminal import StatusLine, harmless
from inglenook.app.errors import AppError
from inglenook.app.paths import user_folders
from inglenook.engine.client import EngineClient
from inglenook.engine.errors import ContextLengthError, EngineError
from inglenook.engine.memory import memory_state
from inglenook.engine.model_library import InstalledModel, ModelLibrary
from inglenook.engine.request import Finished, Loaded, LoadOptions, Request
from inglenook.storage.database import Database
from inglenook.storage.documents import Documents
from inglenook.storage.errors import StorageError
from inglenook.storage.parsing.client import ParserClient
from inglenook.storage.parsing.document import READABLE_FORMATS
from inglenook.storage.parsing.errors import ParsingError
from inglenook.storage.parsing.found_documents import find_documents
from inglenook.storage.records import NewSource
from inglenook.storage.search import Search
from inglenook.storage.vectors import Vectors

MAX_ATTEMPTS = 5
MAX_EMBEDDED = 4000
"""With more passages than this only words are searched: embedding them would take minutes."""

_BATCH = 32


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
    embedder = _embedder()
    with StatusLine() as status, AskedDocuments(embedder) as documents, make_client() as client:
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


class AskedDocuments:
    """Documents of one command, in a temporary database. A context manager."""

    def __init__(self, embedder: InstalledModel | None = None) -> None:
        self._embedder = embedder
        self._stack = contextlib.ExitStack()
        self.paths: dict[int, Path] = {}

    def __enter__(self) -> Self:
        """Make the database."""
        folder = self._stack.enter_context(tempfile.TemporaryDirectory(prefix="inglenook-"))
        with _as_app_error():
            self.database = self._stack.enter_context(Database.open(Path(folder) / "documents.db"))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    def read(self, paths: Sequence[Path], status: StatusLine) -> None:
        """Parse and store the files, and those in the folders, among `paths`.

        Raises:
            AppError: a file that was named cannot be read, or a folder holds nothing to read.
        """
        found = find_documents(paths)
        for skipped in found.skipped:
            if skipped.path in paths:
                reason = (
                    "is not there" if skipped.reason == "vanished" else f"was left out ({skipped.reason})"
                )
                if skipped.reason != "repeated":
                    raise AppError(f"{skipped.path} {reason}.")
        if summary := found.summary():
            status.notice(summary)
        if not found.files:
            raise AppError(f"There is nothing to read among the documents. They can be {READABLE_FORMATS}.")
        tokenizer = self._embedder.path / "tokenizer.json" if self._embedder is not None else None
        named = {os.path.realpath(path) for path in paths}
        with ParserClient(tokenizer=tokenizer if tokenizer and tokenizer.is_file() else None) as parser:
            for path in found.files:
                try:
                    self._read_one(parser, path, status)
                except ParsingError as error:
                    if str(path) in named:
                        raise AppError(f"{path}: {error}") from error
                    status.notice(f"{path}: {error}")
        if not self.paths:
            raise AppError("None of the documents could be read.")

    def gather(
        self, question: str, *, whole_bytes: int, client: EngineClient | None, status: StatusLine
    ) -> Evidence:
        """Find what to answer from; with a client and an embedder also by meaning."""
        ids, search = list(self.paths), Search(self.database)
        with _as_app_error():
            evidence = gather(self.database, search, question, ids, whole_bytes=whole_bytes)
            is_found = bool(evidence.whole) or bool(evidence.answer and not evidence.is_refusal)
            if is_found or client is None or self._embedder is None:
                return evidence
            vector = self._embed_all(client, self._embedder, question, status)
            return gather(
                self.database,
                search,
                question,
                ids,
                whole_bytes=whole_bytes,
                vector=vector,
                embedder=self._embedder.name,
            )

    def _read_one(self, parser: ParserClient, path: Path, status: StatusLine) -> None:
        what = f"Reading {path.name}:"
        parsed = parser.parse(path, progress=lambda done, total: status.count(what, done, total))
        for note in parsed.notes:
            status.notice(f"{path.name}: {note}")
        documents = Documents(self.database)
        with _as_app_error():
            document, is_new = documents.add(
                str(path),
                name=path.name,
                sha256=parsed.sha256,
                size_bytes=parsed.size_bytes,
                modified_at_ns=0,
            )
            if is_new:
                documents.store(document.version_id, parsed)
                self.paths[document.id] = path

    def _embed_all(
        self, client: EngineClient, embedder: InstalledModel, question: str, status: StatusLine
    ) -> NDArray[np.float32] | None:
        """Give every passage its vector and return the question's; None where that does not work out."""
        vectors = Vectors(self.database)
        pending = vectors.chunks_without_vectors(embedder.name, MAX_EMBEDDED + 1)
        if len(pending) > MAX_EMBEDDED:
            status.notice(f"More than {MAX_EMBEDDED:,} passages: only words are searched.")
            return None
        try:
            client.load(embedder.path, slot="embedder").result()
            for start in range(0, len(pending), _BATCH):
                status.count("Searching:", start, len(pending))
                batch = pending[start : start + _BATCH]
                embedded = client.embed([vector.text for vector in batch], purpose="document").result()
                values = np.frombuffer(embedded.vectors, "<f4").reshape(-1, embedded.dimension)
                vectors.add(embedder.name, [vector.chunk_id for vector in batch], values)
            asked = client.embed([question], purpose="query").result()
        except EngineError as error:
            status.notice(f"Only words are searched: {error}")
            return None
        return np.frombuffer(asked.vectors, "<f4").astype(np.float32)


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


def _embedder() -> InstalledModel | None:
    return ModelLibrary(user_folders().models).preferred("embedding", memory_state().free_bytes)


def _print_sources(sources: Sequence[tuple[NewSource, bool]]) -> None:
    for number, (source, is_verified) in enumerate(sources, 1):
        kind = "" if source.is_cited else "closest passage: "
        mark = " (not all of the sentence is in it)" if source.is_cited and not is_verified else ""
        quote = " ".join(source.quote.split())
        shown = quote if len(quote) <= 200 else quote[:199] + "…"
        print(
            harmless(f"[{number}] {kind}{source.document_name}, {place_text(source.place)}{mark}: “{shown}”")
        )


@contextlib.contextmanager
def _as_app_error() -> Iterator[None]:
    """Tell an error of the temporary database as one of the command."""
    try:
        yield
    except StorageError as error:
        raise AppError(str(error)) from error
