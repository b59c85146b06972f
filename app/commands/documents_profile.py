"""The profile's database, its documents by what a person calls them, and its embedder, for `inglenook documents`."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from inglenook.app.commands.terminal import StatusLine, harmless_json
from inglenook.app.documents.embedder_choice import EMBEDDER_SETTING, embedder_in_use
from inglenook.app.errors import AppError
from inglenook.app.paths import user_folders
from inglenook.app.single_instance import SingleInstance
from inglenook.engine.client import EngineClient
from inglenook.engine.errors import EngineError
from inglenook.engine.memory import memory_state
from inglenook.engine.model_library import InstalledModel, ModelLibrary
from inglenook.storage.database import Database
from inglenook.storage.documents import Documents
from inglenook.storage.errors import StorageError
from inglenook.storage.records import Document
from inglenook.storage.settings import Settings
from inglenook.storage.vectors import Vectors

HISTORY_FILE = "history.db"

_BATCH = 32


@contextlib.contextmanager
def open_profile() -> Iterator[Database]:
    """Open the profile's database while no other program has it; its errors become the command's."""
    folder = user_folders().data
    with SingleInstance(folder):
        try:
            with Database.open(folder / HISTORY_FILE) as db:
                yield db
        except StorageError as error:
            raise AppError(str(error)) from error


def chosen_document(documents: Documents, given: str, *, trashed: bool = False) -> Document:
    """Return the one document that is meant by a number, a path or a name."""
    every = documents.entries() + (documents.entries(trashed=True) if trashed else [])
    found = [document for document in every if str(document.id) == given]
    paths = (given,) if "\x00" in given else (given, os.path.realpath(given))
    found = found or [document for document in every if document.path in paths]
    found = found or [document for document in every if document.name == given]
    if len(found) == 1:
        return found[0]
    if not found:
        raise AppError(f"There is no document {given}; 'inglenook documents list' shows those there are.")
    numbers = ", ".join(str(document.id) for document in found)
    raise AppError(f"{given} is the name of {len(found)} documents; choose one by its number: {numbers}.")


def chosen_embedder(db: Database) -> InstalledModel | None:
    """Return the encoder that passages are searched with, None without one."""
    library = ModelLibrary(user_folders().models)
    preferred = library.preferred("embedding", memory_state().free_bytes)
    chosen = str(Settings(db).get(EMBEDDER_SETTING, ""))
    return embedder_in_use(library.models(), preferred, chosen=chosen, counts=Vectors(db).counts())


def tokenizer_of(embedder: InstalledModel | None) -> Path | None:
    """Return the encoder's tokenizer file, by which passages are measured."""
    file = embedder.path / "tokenizer.json" if embedder is not None else None
    return file if file is not None and file.is_file() else None


def embed_waiting(db: Database, embedder: InstalledModel, status: StatusLine) -> None:
    """Make the vectors that are missing; where the engine fails, words are searched alone."""
    try:
        make_vectors(db, embedder, status)
        Vectors(db).drop_others(embedder.name)
    except EngineError as error:
        status.notice(f"Only words are searched: {error}")


def make_vectors(db: Database, embedder: InstalledModel, status: StatusLine) -> None:
    """Give every passage its vector of an encoder.

    Raises:
        EngineError: the encoder cannot be loaded, or failed; what was made until then is stored.
    """
    vectors = Vectors(db)
    pending = vectors.chunks_without_vectors(embedder.name, _BATCH)
    if not pending:
        return
    row = db.row("SELECT count(*) FROM chunks")
    total = int(row[0]) if row else 0
    with EngineClient.child() as client:
        client.load(embedder.path, slot="embedder").result()
        while pending:
            status.count("Making vectors:", vectors.count(embedder.name), total)
            embedded = client.embed([chunk.text for chunk in pending], purpose="document").result()
            values = np.frombuffer(embedded.vectors, "<f4").reshape(-1, embedded.dimension)
            vectors.add(embedder.name, [chunk.chunk_id for chunk in pending], values)
            pending = vectors.chunks_without_vectors(embedder.name, _BATCH)


def embed_question(embedder: InstalledModel, question: str, status: StatusLine) -> NDArray[np.float32] | None:
    """Return the question\'s vector, None where the engine fails, which is then said."""
    try:
        with EngineClient.child() as client:
            client.load(embedder.path, slot="embedder").result()
            return np.frombuffer(client.embed([question], purpose="query").result().vectors, "<f4").astype(
                np.float32
            )
    except EngineError as error:
        status.notice(f"Only words are searched: {error}")
        return None


def print_json(value: dict[str, object]) -> None:
    """Print one JSON object on a line."""
    print(harmless_json(json.dumps(value, ensure_ascii=False)))
