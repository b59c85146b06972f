"""`inglenook models`: what is in the library and what can be fetched; get, import, quantize and remove."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from inglenook.app.commands.command_name import with_command
from inglenook.app.commands.quantize_command import add_quantize
from inglenook.app.commands.terminal import StatusLine, harmless_json, one_line, wrapped
from inglenook.app.paths import UserFolders, ensure, given_path, user_folders
from inglenook.engine.library.model_catalogue import CATALOGUE, STARTER_CHAT, CatalogueEntry, catalogue_entry
from inglenook.engine.memory import format_bytes, memory_state
from inglenook.engine.model_library import InstalledModel, ModelLibrary


def add_models(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command and its own commands to the parser."""
    parser = commands.add_parser(
        "models",
        help="list, get, import, quantize and remove models",
        description="The models on this computer.",
    )
    actions = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)

    listing = actions.add_parser("list", help="models here, and models that can be fetched")
    listing.add_argument("--json", action="store_true", help="print one JSON object")
    listing.set_defaults(run=run_list)

    get = actions.add_parser(
        "get", help="fetch a model of the list; the only command here that uses the network"
    )
    get.add_argument("name", metavar="NAME", help="a name that 'inglenook models list' shows")
    get.set_defaults(run=run_get)

    importing = actions.add_parser("import", help="use a .gguf file or safetensors folder of this computer")
    importing.add_argument("path", metavar="PATH", type=given_path)
    importing.add_argument(
        "--copy", action="store_true", help="copy it into the library (default: use it where it is)"
    )
    importing.add_argument("--name", metavar="N", help="name in the library (default: from the file's name)")
    importing.set_defaults(run=run_import)

    add_quantize(actions)

    removing = actions.add_parser("remove", help="remove a model; the original of an import stays")
    removing.add_argument("name", metavar="NAME", help="a name that 'inglenook models list' shows")
    removing.set_defaults(run=run_remove)


def run_list(options: argparse.Namespace) -> int:
    """List models; returns the exit status."""
    folders = user_folders()
    here = ModelLibrary(folders.models).models()
    names = {model.name for model in here if not model.is_missing}
    fetchable = [entry for entry in CATALOGUE if entry.name not in names]
    free = memory_state().free_bytes
    if options.json:
        facts = {
            "folder": str(folders.models),
            "free_bytes": free,
            "models": [_installed_facts(model, free) for model in here],
            "catalogue": [_entry_facts(entry, free) for entry in CATALOGUE],
        }
        print(harmless_json(json.dumps(facts, ensure_ascii=False, indent=2)))
        return 0
    _print_list(here, fetchable, folders, free)
    return 0


def run_get(options: argparse.Namespace) -> int:
    """Fetch a model; returns the exit status."""
    entry = catalogue_entry(options.name)
    library = ModelLibrary(_writable_library())
    with StatusLine() as status:
        if entry.licence_note:
            status.notice(f"{entry.title} has the {entry.licence}: {entry.licence_note}.")
        free = memory_state().free_bytes
        if entry.memory_bytes > free:
            status.notice(
                f"{entry.name} needs {format_bytes(entry.memory_bytes)} of memory to run, {format_bytes(free)} are "
                "free now."
            )
        model = library.fetch(
            entry.name, lambda done, total: status.bytes(f"Fetching {entry.name}:", done, total)
        )
    print(f"{model.name} is in the library: {format_bytes(model.record.size_bytes)}, {model.record.licence}.")
    if entry.name == STARTER_CHAT:
        print(with_command("It is small and for trying out; 'inglenook models list' shows better ones."))
    return 0


def run_import(options: argparse.Namespace) -> int:
    """Import a model; returns the exit status."""
    library = ModelLibrary(_writable_library())
    with StatusLine() as status:
        model = library.add(
            options.path,
            name=options.name,
            copy=options.copy,
            progress=lambda done, total: status.bytes("Copying:", done, total),
        )
    where = f"where it is, {model.path}" if model.is_reference else "as a copy"
    print(one_line(f"{model.name} is in the library, {where}: {format_bytes(model.record.size_bytes)}."))
    return 0


def run_remove(options: argparse.Namespace) -> int:
    """Remove a model; returns the exit status."""
    library = ModelLibrary(user_folders().models)
    model = next((m for m in library.models() if m.name == options.name), None)
    freed = library.remove(options.name)
    if model is None:
        print(
            f"What an unfinished download of {options.name} left is removed; {format_bytes(freed)} were freed."
        )
    elif model.is_reference:
        print(one_line(f"{model.name} is forgotten; its file stays at {model.path}."))
    else:
        print(f"{model.name} is removed; {format_bytes(freed)} were freed.")
    return 0


def _writable_library() -> Path:
    folders = user_folders()
    ensure(folders.data)
    return folders.models


def _print_list(
    here: list[InstalledModel], fetchable: list[CatalogueEntry], folders: UserFolders, free: int
) -> None:
    print(one_line(f"In the library, {folders.models}:"))
    for model in here:
        record = model.record
        _print_entry(model.name, _sizes(record.size_bytes, record.memory_bytes, free))
        where = f"from {record.origin}" if not model.is_reference else f"at {model.path}"
        missing = " (not there any more)" if model.is_missing else ""
        _print_entry("", f"{record.title}; {record.kind}; {record.licence}; {where}{missing}")
    if not here:
        print("  nothing yet")
    if fetchable:
        print(with_command("\nCan be fetched with 'inglenook models get NAME':"))
    for entry in fetchable:
        _print_entry(entry.name, _sizes(entry.size_bytes, entry.memory_bytes, free))
        note = f" ({entry.licence_note})" if entry.licence_note else ""
        _print_entry("", f"{entry.title}: {entry.purpose}; {entry.licence}{note}")


def _print_entry(name: str, text: str) -> None:
    print(wrapped(one_line(f"  {name:<16} {text}"), " " * 19))


def _sizes(size_bytes: int, memory_bytes: int, free: int) -> str:
    fit = (
        "fits in what is free now"
        if memory_bytes <= free
        else f"does not fit in the {format_bytes(free)} that are free"
    )
    return f"{format_bytes(size_bytes)} on disk, needs {format_bytes(memory_bytes)} of memory: {fit}"


def _installed_facts(model: InstalledModel, free: int) -> dict[str, object]:
    record = model.record
    return {
        "name": model.name,
        "title": record.title,
        "kind": record.kind,
        "licence": record.licence,
        "origin": record.origin,
        "path": str(model.path),
        "is_reference": model.is_reference,
        "is_missing": model.is_missing,
        "size_bytes": record.size_bytes,
        "memory_bytes": record.memory_bytes,
        "fits": record.memory_bytes <= free,
        "sha256": record.sha256,
    }


def _entry_facts(entry: CatalogueEntry, free: int) -> dict[str, object]:
    return {
        "name": entry.name,
        "title": entry.title,
        "kind": entry.kind,
        "purpose": entry.purpose,
        "licence": entry.licence,
        "licence_note": entry.licence_note,
        "size_bytes": entry.size_bytes,
        "memory_bytes": entry.memory_bytes,
        "fits": entry.memory_bytes <= free,
    }
