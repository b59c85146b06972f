"""`inglenook documents`: add, list, search, remove, forget and check the documents of the profile, without a window.

The same database as the window's, through the same code of storage. One program has the profile at a time: while the
window is open, a command says so and does nothing.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import json
import os
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from inglenook.app.commands.terminal import StatusLine, harmless, harmless_json
from inglenook.app.errors import AppError, UsageError
from inglenook.app.paths import user_folders
from inglenook.app.single_instance import SingleInstance
from inglenook.engine.client import EngineClient
from inglenook.engine.errors import EngineError
from inglenook.engine.memory import memory_state
from inglenook.engine.model_library import InstalledModel, ModelLibrary
from inglenook.storage.database import Database
from inglenook.storage.documents import Documents
from inglenook.storage.errors import StorageError
from inglenook.storage.forget_receipt import ForgetReceipt, forget_with_receipt
from inglenook.storage.parsing.client import ParserClient
from inglenook.storage.parsing.document import ParsingLimits
from inglenook.storage.parsing.errors import ParsingError, PasswordRequiredError
from inglenook.storage.parsing.found_documents import find_documents
from inglenook.storage.parsing.opening import open_document
from inglenook.storage.records import Document, Hit
from inglenook.storage.search import Search
from inglenook.storage.vectors import Vectors

HISTORY_FILE = "history.db"

_BATCH = 32
_READ_BYTES = 1 << 20
_MAX_QUOTE_CHARS = 300


def add_documents(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command and its own commands to the parser."""
    parser = commands.add_parser(
        "documents",
        help="add, list, search, remove and forget documents",
        description="The documents that answers are looked up in.",
    )
    actions = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)

    def action(name: str, run: Callable[[argparse.Namespace], int], help_: str) -> argparse.ArgumentParser:
        result = actions.add_parser(
            name, help=help_, description=help_.capitalize() + ".", allow_abbrev=False
        )
        result.add_argument("--json", action="store_true", help="print one JSON object")
        result.set_defaults(run=run)
        return result

    adding = action("add", run_add, "read files, and those inside folders; unchanged ones are passed over")
    adding.add_argument("paths", metavar="PATH", nargs="+", type=Path)
    adding.add_argument("--password", metavar="P", help="opens encrypted PDFs; it is not kept")
    adding.add_argument("--encoding", metavar="E", help="of text files whose encoding is guessed wrongly")
    adding.add_argument(
        "--words-only", action="store_true", help="make no vectors now; the window makes them later"
    )

    action("list", run_list, "list the documents")

    searching = action("search", run_search, "find passages")
    searching.add_argument("question", metavar="QUESTION")
    searching.add_argument(
        "--limit", metavar="N", type=int, default=10, help="how many passages (default: 10)"
    )
    searching.add_argument(
        "--in", dest="within", metavar="DOCUMENT", action="append", help="only there; repeatable"
    )
    searching.add_argument("--words-only", action="store_true", help="do not search by meaning")

    for name, run, help_ in (
        ("remove", run_remove, "move documents to the trash, from where the window can take them back"),
        ("forget", run_forget, "delete documents so that no byte of their text stays, with a receipt"),
    ):
        chosen = action(name, run, help_)
        chosen.add_argument(
            "documents", metavar="DOCUMENT", nargs="+", help="a number, path or name of the list"
        )

    action("check", run_check, "check the database, its indexes and what is not finished")


def run_add(options: argparse.Namespace) -> int:
    """Add documents; returns the exit status: 1 where one could not be read."""
    found = find_documents(options.paths)
    missing = [str(skipped.path) for skipped in found.skipped if skipped.path in options.paths]
    if not found.files:
        raise AppError(f"There is nothing to read. {found.summary()}".strip())
    results: list[dict[str, object]] = [{"path": path, "status": "refused", "error": "not there, or no document"}
                                        for path in missing]  # fmt: skip
    embedder = _embedder()
    with _profile() as db, StatusLine() as status:
        documents = Documents(db)
        documents.requeue_unfinished()
        known = documents.known_files()
        with ParserClient(tokenizer=_tokenizer(embedder)) as parser:
            for number, path in enumerate(found.files):
                status.count("Reading", number, len(found.files))
                results.append(_add_one(documents, parser, path, known, options))
        if embedder is not None and not options.words_only:
            _embed_waiting(db, embedder, status)
    counts = {
        kind: sum(result["status"] == kind for result in results)
        for kind in ("ready", "unchanged", "refused")
    }
    if options.json:
        _print_json({"documents": results, "left_out": found.summary(), **counts})
    else:
        for result in results:
            if result["status"] == "refused":
                print(harmless(f"{result['path']}: {result['error']}"))
            for note in result.get("notices") or ():  # type: ignore[attr-defined]  # a list where it is there
                print(harmless(f"{result['path']}: {note}"))
        print(f"{counts['ready']} read, {counts['unchanged']} unchanged, {counts['refused']} refused.")
        if found.summary():
            print(harmless(found.summary()))
    return 1 if counts["refused"] else 0


def run_list(options: argparse.Namespace) -> int:
    """List the documents; returns the exit status."""
    with _profile() as db:
        entries = Documents(db).entries()
    if options.json:
        _print_json({"documents": [asdict(document) for document in entries]})
        return 0
    for document in entries:
        state = document.status if document.status != "ready" else f"{document.num_chunks:,} passages"
        reason = f": {document.error}" if document.error else ""
        print(harmless(f"{document.id:>5}  {document.name}  ({document.kind or 'file'}, {state}{reason})"))
    if not entries:
        print("There are no documents yet; 'inglenook documents add PATH' adds some.")
    return 0


def run_search(options: argparse.Namespace) -> int:
    """Search; returns the exit status."""
    if options.limit < 1:
        raise UsageError(f"--limit must be at least 1, got {options.limit}.")
    embedder = None if options.words_only else _embedder()
    with _profile() as db, StatusLine() as status:
        documents = Documents(db)
        within = [_chosen(documents, each).id for each in options.within] if options.within else None
        vector = None
        if embedder is not None and Vectors(db).count(embedder.name):
            vector = _embed_question(embedder, options.question, status)
        hits = Search(db).search(
            options.question,
            limit=options.limit,
            vector=vector,
            embedder=embedder.name if embedder is not None else "",
            document_ids=within,
        )
        paths = {document.id: document.path for document in documents.entries()}
    if options.json:
        _print_json({"question": options.question, "hits": [_hit_record(hit, paths) for hit in hits]})
        return 0
    for number, hit in enumerate(hits, 1):
        quote = " ".join(hit.chunk.text.split())
        print(harmless(f"[{number}] {hit.chunk.document_name}, {_place_text(hit)}"))
        print(harmless(f"    {quote[:_MAX_QUOTE_CHARS]}{'…' if len(quote) > _MAX_QUOTE_CHARS else ''}"))
    if not hits:
        print("Nothing was found.")
    return 0


def run_remove(options: argparse.Namespace) -> int:
    """Move documents to the trash; returns the exit status."""
    with _profile() as db:
        documents = Documents(db)
        chosen = [_chosen(documents, each) for each in options.documents]
        with db.atomic():
            for document in chosen:
                documents.trash(document.id)
    if options.json:
        _print_json({"removed": [document.id for document in chosen]})
    else:
        print(harmless(f"In the trash: {', '.join(document.name for document in chosen)}."))
    return 0


def run_forget(options: argparse.Namespace) -> int:
    """Forget documents and print the receipt; returns the exit status: 1 where something is left."""
    with _profile() as db:
        documents = Documents(db)
        receipt = forget_with_receipt(
            db, [_chosen(documents, each, trashed=True).id for each in options.documents]
        )
    if options.json:
        _print_json({**asdict(receipt), "is_clean": receipt.is_clean})
    else:
        _print_receipt(receipt)
    return 0 if receipt.is_clean else 1


def run_check(options: argparse.Namespace) -> int:
    """Check the database; returns the exit status: 1 where something is wrong."""
    with _profile() as db:
        problems = db.check()
        unfinished = [document.name for document in Documents(db).waiting()]
        row = db.row("SELECT count(*) FROM chunks")
        num_chunks = int(row[0]) if row else 0
    if options.json:
        _print_json({"problems": problems, "unfinished": unfinished, "chunks": num_chunks})
    else:
        for problem in problems:
            print(harmless(problem))
        print(
            f"{num_chunks:,} passages; {len(problems)} problems; {len(unfinished)} documents still to be read."
        )
    return 1 if problems else 0


@contextlib.contextmanager
def _profile() -> Iterator[Database]:
    folder = user_folders().data
    with SingleInstance(folder):
        try:
            with Database.open(folder / HISTORY_FILE) as db:
                yield db
        except StorageError as error:
            raise AppError(str(error)) from error


def _add_one(
    documents: Documents,
    parser: ParserClient,
    path: Path,
    known: dict[str, tuple[int, int]],
    options: argparse.Namespace,
) -> dict[str, object]:
    """Read one file unless it is unchanged; what is wrong with it is stored and returned, not raised."""
    try:
        status = path.stat()
        if options.encoding is None and known.get(str(path)) == (status.st_size, status.st_mtime_ns):
            return {"path": str(path), "status": "unchanged"}
        sha256, size_bytes, modified_at_ns = _noted(path)
    except (ParsingError, OSError) as error:
        reason = str(error) if isinstance(error, ParsingError) else f"It cannot be read: {error.strerror}."
        return {"path": str(path), "status": "refused", "error": reason}
    document, is_new = documents.add(
        str(path), name=path.name, sha256=sha256, size_bytes=size_bytes, modified_at_ns=modified_at_ns
    )
    if not is_new and options.encoding is None:
        return {"path": str(path), "status": "unchanged", "id": document.id}
    try:
        parsed = parser.parse(path, password=options.password, encoding=options.encoding)
        documents.store(document.version_id, parsed)
    except (ParsingError, StorageError) as error:
        documents.fail_version(document.version_id, str(error))
        hint = " Give it with --password." if isinstance(error, PasswordRequiredError) else ""
        return {"path": str(path), "status": "refused", "id": document.id, "error": f"{error}{hint}"}
    notices = [*parsed.notes]
    if parsed.is_encoding_guessed:
        notices.append(f"Encoding: {parsed.encoding} (guessed; --encoding chooses another).")
    return {
        "path": str(path),
        "status": "ready",
        "id": document.id,
        "kind": parsed.kind,
        "pages": len(parsed.pages),
        "passages": len(parsed.chunks),
        "encoding": parsed.encoding,
        "notices": notices,
    }


def _noted(path: Path) -> tuple[str, int, int]:
    descriptor = open_document(path, ParsingLimits())
    with os.fdopen(descriptor, "rb", buffering=0) as file:
        status = os.fstat(descriptor)
        digest = hashlib.sha256()
        while piece := file.read(_READ_BYTES):
            digest.update(piece)
    return digest.hexdigest(), status.st_size, status.st_mtime_ns


def _chosen(documents: Documents, given: str, *, trashed: bool = False) -> Document:
    """Return the one document that is meant by a number, a path or a name."""
    every = documents.entries() + (documents.entries(trashed=True) if trashed else [])
    found = [document for document in every if str(document.id) == given]
    found = found or [document for document in every if document.path in (given, os.path.realpath(given))]
    found = found or [document for document in every if document.name == given]
    if len(found) == 1:
        return found[0]
    if not found:
        raise AppError(f"There is no document {given}; 'inglenook documents list' shows those there are.")
    numbers = ", ".join(str(document.id) for document in found)
    raise AppError(f"{given} is the name of {len(found)} documents; choose one by its number: {numbers}.")


def _embedder() -> InstalledModel | None:
    return ModelLibrary(user_folders().models).preferred("embedding", memory_state().free_bytes)


def _tokenizer(embedder: InstalledModel | None) -> Path | None:
    file = embedder.path / "tokenizer.json" if embedder is not None else None
    return file if file is not None and file.is_file() else None


def _embed_waiting(db: Database, embedder: InstalledModel, status: StatusLine) -> None:
    """Make the vectors that are missing; where the engine fails, words are searched alone."""
    vectors = Vectors(db)
    pending = vectors.chunks_without_vectors(embedder.name, _BATCH)
    if not pending:
        return
    row = db.row("SELECT count(*) FROM chunks")
    total = int(row[0]) if row else 0
    try:
        with EngineClient.child() as client:
            client.load(embedder.path, slot="embedder").result()
            while pending:
                status.count("Making vectors:", vectors.count(embedder.name), total)
                embedded = client.embed([chunk.text for chunk in pending], purpose="document").result()
                values = np.frombuffer(embedded.vectors, "<f4").reshape(-1, embedded.dimension)
                vectors.add(embedder.name, [chunk.chunk_id for chunk in pending], values)
                pending = vectors.chunks_without_vectors(embedder.name, _BATCH)
        vectors.drop_others(embedder.name)
    except EngineError as error:
        status.notice(f"Only words are searched: {error}")


def _embed_question(
    embedder: InstalledModel, question: str, status: StatusLine
) -> NDArray[np.float32] | None:
    try:
        with EngineClient.child() as client:
            client.load(embedder.path, slot="embedder").result()
            return np.frombuffer(client.embed([question], purpose="query").result().vectors, "<f4").astype(
                np.float32
            )
    except EngineError as error:
        status.notice(f"Only words are searched: {error}")
        return None


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
        "score": round(hit.score, 6),
        "keyword_rank": hit.keyword_rank,
        "vector_rank": hit.vector_rank,
    }


def _print_receipt(receipt: ForgetReceipt) -> None:
    print(harmless(f"Forgotten: {', '.join(receipt.names)}."))
    print(
        f"Deleted {receipt.num_chunks:,} passages with their words in the index, {receipt.num_vectors:,} vectors and "
        f"{receipt.num_quotes:,} quotes under answers."
    )
    shared = f" ({receipt.num_shared} more are said elsewhere, too)" if receipt.num_shared else ""
    print(f"Searched every byte for {receipt.num_samples} phrases and words of the text{shared}:")
    for file in receipt.files:
        print(harmless(f"  {file.path}: {file.size_bytes:,} bytes, {file.num_found or 'none'} found"))
    for path in receipt.removed_backups:
        print(harmless(f"  {path}: removed"))
    print("Out of reach: " + "; ".join(receipt.out_of_reach) + ".")
    if not receipt.is_complete:
        print("Another program still reads the database; the rest is done at the next start.")


def _print_json(value: dict[str, object]) -> None:
    print(harmless_json(json.dumps(value, ensure_ascii=False)))
