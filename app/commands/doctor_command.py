"""`inglenook doctor`: what this computer offers, which back end would be used and why, and which models are here.

`inglenook doctor MODEL` examines one model instead: a file, a folder, or a name of the library.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

import msgspec

from inglenook.app.commands.terminal import harmless_json, one_line
from inglenook.app.errors import UsageError
from inglenook.app.paths import user_folders
from inglenook.engine.doctor import ComputerFacts, examine_computer
from inglenook.engine.memory import format_bytes
from inglenook.engine.model_doctor.report import Finding
from inglenook.engine.model_library import InstalledModel, ModelLibrary


def add_doctor(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        "doctor",
        help="show what this computer offers and what would be used",
        description="Show Python, PyTorch, processor, memory, devices, back ends and models; or, with MODEL, "
        "examine a model and say in green, amber and red whether it is sound. Nothing is sent.",
        allow_abbrev=False,
    )
    parser.add_argument("model", nargs="?", metavar="MODEL", help="a model's name, file or folder to examine")
    parser.add_argument(
        "--backend", default="auto", help="the back end to run MODEL on (default: %(default)s)"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.set_defaults(run=run_doctor)


def run_doctor(options: argparse.Namespace) -> int:
    """Print the facts; exit status 1 when PyTorch cannot be used, or when the model is red."""
    if options.model is not None:
        return _examine(options)
    facts = examine_computer()
    library = ModelLibrary(user_folders().models)
    models = library.models()
    if options.json:
        found = {
            **asdict(facts),
            "torch": msgspec.to_builtins(facts.torch),
            "library": str(library.folder),
            "models": [model.name for model in models],
        }
        print(harmless_json(json.dumps(found, ensure_ascii=False, indent=2)))
    else:
        for label, value in _lines(facts, library, models):
            print(one_line(f"{label:<10} {value}"))
    return 1 if facts.torch.error else 0


def _examine(options: argparse.Namespace) -> int:
    # Imports torch, which the other facts do without.
    from inglenook.engine.model_doctor.examination import examine_model

    if not options.model:
        raise UsageError("MODEL is empty.")
    path = Path(options.model)
    if not path.exists():
        path = ModelLibrary(user_folders().models).get(options.model).path

    def show(finding: Finding) -> None:
        if not options.json:
            print(one_line(f"{finding.light:<6} {finding.name:<10} {finding.sentence}"), flush=True)

    report = examine_model(path, backend=options.backend, on_finding=show)
    if options.json:
        found = {"light": report.light, **msgspec.to_builtins(report)}
        print(harmless_json(json.dumps(found, ensure_ascii=False, indent=2)))
    else:
        print(one_line(f"{report.name} is {report.light}, after {report.seconds:.1f} s."))
    return 1 if report.light == "red" else 0


def _lines(
    facts: ComputerFacts, library: ModelLibrary, models: list[InstalledModel]
) -> Iterator[tuple[str, str]]:
    memory = facts.memory
    yield "inglenook", facts.inglenook
    yield "python", facts.python
    yield "system", facts.system
    yield "processor", f"{facts.cpu}; {', '.join(facts.features) or 'no features that matter here'}"
    yield "threads", f"{facts.threads} of {facts.cores} physical cores"
    yield "memory", f"{format_bytes(memory.free_bytes)} free of {format_bytes(memory.total_bytes)}"
    yield "torch", f"{facts.torch.version} {facts.torch.error}".strip()
    for card in facts.graphics:
        yield "graphics", f"{card.name} {card.sentence}."
    for device in facts.torch.devices:
        yield "device", device
    chosen = next((b for b in facts.torch.backends if b.usable), None)
    for backend in facts.torch.backends:
        use = "would be used" if backend is chosen else "can be asked for" if backend.usable else "not usable"
        yield "back end", f"{backend.name}: {use}. {backend.reason}"
    yield "library", str(library.folder)
    for model in models:
        missing = " (its file is not there any more)" if model.is_missing else ""
        yield "model", f"{model.name}: {model.record.title}, {model.record.kind}{missing}"
    if not models:
        yield "model", "none yet; 'inglenook models list' shows what can be fetched"
