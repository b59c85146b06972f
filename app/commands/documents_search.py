"""`inglenook documents search`: passages of the profile's documents, and which of those a command means."""

from __future__ import annotations

import argparse

from inglenook.app.answers.citations import as_source
from inglenook.app.commands.documents_profile import (
    chosen_document,
    chosen_embedder,
    embed_question,
    open_profile,
    print_json,
)
from inglenook.app.commands.scope_options import has_scope
from inglenook.app.commands.terminal import StatusLine, one_line
from inglenook.app.errors import AppError, UsageError
from inglenook.storage.database import Database
from inglenook.storage.document_collections import DocumentCollections
from inglenook.storage.documents import Documents
from inglenook.storage.records import Hit
from inglenook.storage.scope import Scope, documents_in
from inglenook.storage.search import Search
from inglenook.storage.vectors import Vectors

_MOST_HITS = 1000
_MAX_QUOTE_CHARS = 300


def documents_meant(db: Database, options: argparse.Namespace) -> list[int] | None:
    """Return the ids of the documents that a command's scope holds, None where it gives none.

    Raises:
        AppError: there is no such document or collection, or no document is in the scope.
    """
    if not has_scope(options):
        return None
    documents = Documents(db)
    within = tuple(chosen_document(documents, each).id for each in options.within) if options.within else None
    names = [collection.name for collection in DocumentCollections(db).entries()]
    for name in options.collection or ():
        if name.casefold() not in map(str.casefold, names):
            there = f"There are: {', '.join(names)}." if names else "There is none yet."
            raise AppError(f"There is no collection {name}. {there}")
    scope = Scope(
        document_ids=within,
        collections=tuple(options.collection or ()),
        names=tuple(options.name or ()),
        years=tuple(options.year or ()),
    )
    found = documents_in(db, scope)
    if not found:
        total = len(documents.entries())
        raise AppError(
            f"None of the {total} documents is in that scope. 'inglenook documents list' shows them."
        )
    return found


def run_search(options: argparse.Namespace) -> int:
    """Search; returns the exit status."""
    if not 1 <= options.limit <= _MOST_HITS:
        raise UsageError(f"--limit must be from 1 to {_MOST_HITS:,}, got {options.limit}.")
    if not options.question.strip():
        raise UsageError("The text to search for is empty.")
    with open_profile() as db, StatusLine() as status:
        embedder = None if options.words_only else chosen_embedder(db)
        within = documents_meant(db, options)
        vector = None
        if embedder is not None and Vectors(db).count(embedder.name):
            vector = embed_question(embedder, options.question, status)
        hits = Search(db).search(
            options.question,
            limit=options.limit,
            vector=vector,
            embedder=embedder.name if embedder is not None else "",
            document_ids=within,
        )
        paths = {document.id: document.path for document in Documents(db).entries()}
    if options.json:
        print_json({"question": options.question, "hits": [_hit_record(hit, paths) for hit in hits]})
        return 0
    for number, hit in enumerate(hits, 1):
        source = as_source(hit)
        quote = " ".join(source.quote.split())
        heading = f" ({' › '.join(source.heading.splitlines())})" if source.heading else ""
        print(one_line(f"[{number}] {hit.chunk.document_name}, {_place_text(hit)}{heading}"))
        print(one_line(f"    {quote[:_MAX_QUOTE_CHARS]}{'…' if len(quote) > _MAX_QUOTE_CHARS else ''}"))
    if not hits:
        print("Nothing was found.")
    return 0


def _place_text(hit: Hit) -> str:
    place = hit.chunk.place
    if place.first_line is not None:
        same = place.first_line == place.last_line
        return f"line {place.first_line}" if same else f"lines {place.first_line}–{place.last_line}"
    number = str(place.page_index + 1)
    label = number if place.page_label in (None, number) else f"{place.page_label} ({number})"
    return f"p. {label} of {hit.chunk.num_pages}"


def _hit_record(hit: Hit, paths: dict[int, str]) -> dict[str, object]:
    chunk, place = hit.chunk, hit.chunk.place
    has_lines = place.first_line is not None
    return {
        "file": paths.get(chunk.document_id, chunk.document_name),
        "document": chunk.document_id,
        "page": None if has_lines else place.page_index + 1,
        "page_label": place.page_label,
        "lines": [place.first_line, place.last_line] if has_lines else None,
        "heading": list(chunk.heading_path),
        "text": chunk.text,
        "quote": as_source(hit).quote,
        "score": round(hit.score, 6),
        "keyword_rank": hit.keyword_rank,
        "vector_rank": hit.vector_rank,
    }
