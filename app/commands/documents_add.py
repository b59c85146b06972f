"""`inglenook documents add`: files and what is in folders, read into the profile; unchanged ones are passed over."""

from __future__ import annotations

import argparse
import hashlib
import os
from dataclasses import dataclass
from pathlib import Path

from inglenook.app.commands.document_password import HOW_TO_GIVE, given_password, parse_with_password
from inglenook.app.commands.documents_profile import (
    chosen_embedder,
    embed_waiting,
    open_profile,
    print_json,
    tokenizer_of,
)
from inglenook.app.commands.terminal import StatusLine, one_line
from inglenook.app.errors import AppError, UsageError
from inglenook.storage.document_collections import DocumentCollections
from inglenook.storage.documents import Documents
from inglenook.storage.errors import StorageError
from inglenook.storage.parsing.client import ParserClient
from inglenook.storage.parsing.document import ParsingLimits
from inglenook.storage.parsing.errors import ParsingError, PasswordRequiredError
from inglenook.storage.parsing.found_documents import find_documents
from inglenook.storage.parsing.opening import open_document

_READ_BYTES = 1 << 20
_MOST_READINGS = 3
_KEEPS_CHANGING = "It was changed each time while it was read. Add it again when it is finished."


def run_add(options: argparse.Namespace) -> int:
    """Add documents; returns the exit status: 1 where one could not be read."""
    found = find_documents(options.paths)
    missing = [str(skipped.path) for skipped in found.skipped if skipped.path in options.paths]
    if not found.files:
        raise AppError(f"There is nothing to read. {found.summary()}".strip())
    if options.collection is not None and not options.collection.strip():
        raise UsageError("--collection needs a name, got nothing but spaces.")
    password = given_password(options.password_file)
    results: list[dict[str, object]] = [{"path": path, "status": "refused", "error": "not there, or no document"}
                                        for path in missing]  # fmt: skip
    with open_profile() as db, StatusLine() as status:
        embedder = chosen_embedder(db)
        documents = Documents(db)
        documents.requeue_unfinished()
        known = documents.known_files()
        with ParserClient(tokenizer=tokenizer_of(embedder)) as parser:
            for number, path in enumerate(found.files):
                status.count("Reading", number, len(found.files))
                reading = _Reading(documents, parser, known, password, options.encoding, status)
                results.append(reading.add(path))
        if options.collection:
            added = {result["path"] for result in results if result["status"] != "refused"}
            ids = [document.id for document in documents.entries() if document.path in added]
            DocumentCollections(db).put(options.collection, ids)
        if embedder is not None and not options.words_only:
            embed_waiting(db, embedder, status)
    counts = {
        kind: sum(result["status"] == kind for result in results)
        for kind in ("ready", "unchanged", "refused")
    }
    if options.json:
        print_json({"documents": results, "left_out": found.summary(), **counts})
    else:
        for result in results:
            if result["status"] == "refused":
                print(one_line(f"{result['path']}: {result['error']}"))
            if "same_as" in result:
                print(
                    one_line(
                        f"{result['path']} has the same content as {result['same_as']}, which is here already."
                    )
                )
            for note in result.get("notices") or ():  # type: ignore[attr-defined]  # a list where it is there
                print(one_line(f"{result['path']}: {note}"))
        print(f"{counts['ready']} read, {counts['unchanged']} unchanged, {counts['refused']} refused.")
        if found.summary():
            print(one_line(found.summary()))
    return 1 if counts["refused"] else 0


@dataclass(frozen=True, slots=True)
class _Reading:
    """Reads files one by one into the profile."""

    documents: Documents
    parser: ParserClient
    known: dict[str, tuple[int, int]]
    password: str | None
    encoding: str | None
    status: StatusLine

    def add(self, path: Path) -> dict[str, object]:
        """Read one file unless it is unchanged; what is wrong with it is stored and returned, not raised."""
        for _ in range(_MOST_READINGS):
            result = self._add_once(path)
            if result is not None:
                return result
        return {"path": str(path), "status": "refused", "error": _KEEPS_CHANGING}

    def _add_once(self, path: Path) -> dict[str, object] | None:
        """The same without another try: None where the file was changed while it was read."""
        try:
            found = path.stat()
            if self.encoding is None and self.known.get(str(path)) == (found.st_size, found.st_mtime_ns):
                return {"path": str(path), "status": "unchanged"}
            sha256, size_bytes, modified_at_ns = _noted(path)
        except (ParsingError, OSError) as error:
            reason = (
                str(error) if isinstance(error, ParsingError) else f"It cannot be read: {error.strerror}."
            )
            return {"path": str(path), "status": "refused", "error": reason}
        document, is_new = self.documents.add(
            str(path), name=path.name, sha256=sha256, size_bytes=size_bytes, modified_at_ns=modified_at_ns
        )
        if not is_new and self.encoding is None:
            same = {} if document.path == str(path) else {"same_as": document.path}
            return {"path": str(path), "status": "unchanged", "id": document.id, **same}
        encoding = self.encoding or document.chosen_encoding or None
        try:
            parsed = parse_with_password(
                lambda password: self.parser.parse(path, password=password, encoding=encoding),
                path.name,
                self.password,
                self.status,
            )
            if parsed.sha256 != sha256:
                self.documents.fail_version(document.version_id, _KEEPS_CHANGING)
                return None
            if self.encoding:
                self.documents.choose_encoding(document.id, parsed.encoding or "")
            self.documents.store(document.version_id, parsed)
        except (ParsingError, StorageError) as error:
            needs_password = isinstance(error, PasswordRequiredError)
            self.documents.fail_version(document.version_id, str(error), needs_password=needs_password)
            hint = f" {HOW_TO_GIVE}" if needs_password else ""
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
