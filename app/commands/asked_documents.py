"""What `inglenook ask` answers from: files that are read for one question, or documents of the profile.

Files lie in a database in memory: of what they say nothing is written, so that nothing stays where the command is
killed. Of the profile nothing is changed.
"""

from __future__ import annotations

import argparse
import contextlib
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

import numpy as np
from numpy.typing import NDArray

from inglenook.app.answers.retrieval import Evidence, gather
from inglenook.app.commands.document_password import HOW_TO_GIVE, given_password, parse_with_password
from inglenook.app.commands.documents_profile import chosen_embedder, open_profile
from inglenook.app.commands.documents_search import documents_meant
from inglenook.app.commands.terminal import StatusLine
from inglenook.app.errors import AppError
from inglenook.app.paths import user_folders
from inglenook.engine.client import EngineClient
from inglenook.engine.errors import EngineError
from inglenook.engine.memory import format_bytes, memory_state
from inglenook.engine.model_library import InstalledModel, ModelLibrary
from inglenook.storage.database import Database
from inglenook.storage.documents import Documents
from inglenook.storage.errors import StorageError
from inglenook.storage.parsing.client import ParserClient
from inglenook.storage.parsing.document import READABLE_FORMATS
from inglenook.storage.parsing.errors import ParsingError, PasswordRequiredError
from inglenook.storage.parsing.found_documents import find_documents
from inglenook.storage.records import PendingVector
from inglenook.storage.search import Search
from inglenook.storage.vectors import Vectors

MAX_EMBEDDED = 4000
"""With more passages than this only words are searched: embedding them would take minutes."""

_BATCH = 32


class AskedDocuments:
    """Documents of one command, in a database in memory. A context manager."""

    def __init__(self, embedder: InstalledModel | None = None, password_file: Path | None = None) -> None:
        self._embedder = embedder
        self._password = given_password(password_file)
        self._stack = contextlib.ExitStack()
        self.paths: dict[int, Path] = {}

    def __enter__(self) -> Self:
        """Make the database."""
        self.database = self._stack.enter_context(Database.in_memory())
        self._most_bytes = memory_state().free_bytes // 2
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
                    hint = f" {HOW_TO_GIVE}" if isinstance(error, PasswordRequiredError) else ""
                    if str(path) in named:
                        raise AppError(f"{path}: {error}{hint}") from error
                    status.notice(f"{path}: {error}{hint}")
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
        parsed = parse_with_password(
            lambda password: parser.parse(
                path, password=password, progress=lambda done, total: status.count(what, done, total)
            ),
            path.name,
            self._password,
            status,
        )
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
        if (held := self._held_bytes()) > self._most_bytes:
            raise AppError(
                f"The documents up to {path.name} take {format_bytes(held)} of memory, more than half of what was "
                "free. Add them once with 'inglenook documents add', then ask with --documents."
            )

    def _held_bytes(self) -> int:
        """What the database takes of the memory."""
        row = self.database.row("SELECT page_count * page_size FROM pragma_page_count, pragma_page_size")
        assert row is not None
        return int(row[0])

    def _pending(self, vectors: Vectors, embedder: InstalledModel) -> list[PendingVector]:
        return vectors.chunks_without_vectors(embedder.name, MAX_EMBEDDED + 1)

    def _embed_all(
        self, client: EngineClient, embedder: InstalledModel, question: str, status: StatusLine
    ) -> NDArray[np.float32] | None:
        """Give every passage its vector and return the question's; None where that does not work out."""
        vectors = Vectors(self.database)
        pending = self._pending(vectors, embedder)
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


class ProfileDocuments(AskedDocuments):
    """Documents of the profile that a command's scope holds."""

    def __init__(self, options: argparse.Namespace) -> None:
        super().__init__()
        self._options = options

    def __enter__(self) -> Self:
        """Open the profile and look up what is meant."""
        try:
            db = self.database = self._stack.enter_context(open_profile())
            meant = documents_meant(db, self._options)
            every = Documents(db).entries()
            self.paths = {d.id: Path(d.path) for d in every if meant is None or d.id in set(meant)}
            if not self.paths:
                raise AppError("The profile has no documents yet; 'inglenook documents add PATH' adds some.")
            embedder = chosen_embedder(db)
            if embedder is not None and Vectors(db).count(embedder.name):
                self._embedder = embedder
        except BaseException:
            self._stack.close()
            raise
        return self

    def read(self, paths: Sequence[Path], status: StatusLine) -> None:
        """Nothing is to be read: it was when the documents were added."""

    def _pending(self, vectors: Vectors, embedder: InstalledModel) -> list[PendingVector]:
        # What has no vector yet is found by its words; asking a question changes nothing in the profile.
        return []


def preferred_embedder() -> InstalledModel | None:
    """Return the encoder of the library that files read for one question are searched with, None without one."""
    return ModelLibrary(user_folders().models).preferred("embedding", memory_state().free_bytes)


@contextlib.contextmanager
def _as_app_error() -> Iterator[None]:
    """Tell an error of the temporary database as one of the command."""
    try:
        yield
    except StorageError as error:
        raise AppError(str(error)) from error
