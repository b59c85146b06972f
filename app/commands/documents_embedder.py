"""`inglenook documents embedder`: which model finds passages by meaning, and the change to another.

The vectors of the new one are made beside the old ones, which are searched until all are there; Ctrl+C keeps the old.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from inglenook.app.commands.documents_profile import chosen_embedder, make_vectors, open_profile, print_json
from inglenook.app.commands.terminal import StatusLine, one_line
from inglenook.app.documents.embedder_choice import EMBEDDER_SETTING, NEXT_EMBEDDER_SETTING
from inglenook.app.errors import AppError
from inglenook.app.paths import user_folders
from inglenook.engine.errors import EngineError
from inglenook.engine.model_library import InstalledModel, ModelLibrary
from inglenook.storage.database import Database
from inglenook.storage.settings import Settings
from inglenook.storage.vectors import Vectors


def run_embedder(options: argparse.Namespace) -> int:
    """Say or change which encoder is used; returns the exit status."""
    with open_profile() as db, StatusLine() as status:
        if options.model is not None:
            _change(db, _wanted(options.model), status)
        used, vectors = chosen_embedder(db), Vectors(db)
        there = [
            model.name
            for model in ModelLibrary(user_folders().models).models()
            if model.record.kind == "embedding"
        ]
        counts = vectors.counts()
        row = db.row("SELECT count(*) FROM chunks")
        num_chunks = int(row[0]) if row else 0
    name = used.name if used is not None else ""
    if options.json:
        print_json({"embedder": name or None, "passages": num_chunks, "vectors": counts, "installed": there})
        return 0
    if used is None:
        print(
            "Only words are searched. 'inglenook models get minilm-l6' fetches a model for meanings in English, "
            "'inglenook models get multilingual-e5-small' one for 94 languages."
        )
        return 0
    print(one_line(f"{name}: {counts.get(name, 0):,} of {num_chunks:,} passages can be found by meaning."))
    others = [other for other in there if other != name]
    if others:
        print(one_line(f"Also here: {', '.join(others)}."))
    return 0


def _wanted(given: str) -> InstalledModel:
    """Return an encoder by its name in the library, or bring a folder or GGUF file into the library by reference."""
    library = ModelLibrary(user_folders().models)
    found = next((model for model in library.models() if model.name == given), None)
    if found is None and Path(given).exists():
        try:
            found = library.add(Path(given))
        except EngineError as error:
            raise AppError(str(error)) from error
    if found is None:
        raise AppError(f"There is no model or folder {given}. 'inglenook models list' shows the models.")
    if found.record.kind != "embedding":
        raise AppError(
            f"{found.name} is a chat model; passages are found by a sentence encoder, such as minilm-l6."
        )
    if found.is_missing:
        raise AppError(f"The files of {found.name} are gone from {found.path}. Import them again.")
    return found


def _change(db: Database, model: InstalledModel, status: StatusLine) -> None:
    """Make all vectors of the new encoder, then use it; whatever ends this early leaves the old one in use."""
    vectors, old = Vectors(db), chosen_embedder(db)
    is_other = old is None or old.name != model.name
    try:
        make_vectors(db, model, status)
    except BaseException as error:
        if is_other:
            vectors.drop(model.name)
        if isinstance(error, EngineError):
            kept = f" {old.name} stays in use." if old is not None and is_other else ""
            raise AppError(f"{model.name} could not make the vectors: {error}{kept}") from error
        raise
    with db.atomic():
        Settings(db).set(EMBEDDER_SETTING, model.name)
        Settings(db).remove(NEXT_EMBEDDER_SETTING)
        vectors.drop_others(model.name)
