"""`inglenook models quantize`: a model in fewer bits as a new model of the library, and what that costs."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from inglenook.app.commands.command_name import with_command
from inglenook.app.commands.terminal import StatusLine, one_line
from inglenook.app.errors import AppError
from inglenook.app.paths import ensure, given_path, user_folders
from inglenook.engine.errors import ModelNotFoundError
from inglenook.engine.library.model_names import suggest_name
from inglenook.engine.memory import format_bytes
from inglenook.engine.model_library import ModelLibrary

if TYPE_CHECKING:
    from inglenook.engine.library.model_quantizing import QuantizedModel

_MAX_TEXT_BYTES = 1 << 20
_STAGES = {
    "quantise": "Quantising:",
    "before": "Measuring the original:",
    "after": "Measuring the new model:",
}


def add_quantize(actions: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to those of `models`."""
    parser = actions.add_parser(
        "quantize",
        help="make a smaller model of a safetensors folder, in 4 or 8 bits",
        description="Write a new model into the library whose matrices have 4 or 8 bits a weight, with a scale for "
        "each group of columns. The embedding and the head never get fewer than 8. The perplexity before and after is "
        "measured on a short English text, or on one that you give.",
    )
    parser.add_argument(
        "name", metavar="NAME", help="a model of the library, or the path of a safetensors folder"
    )
    parser.add_argument("--weights", required=True, choices=("qint4", "qint8", "qfloat8"))
    parser.add_argument(
        "--group",
        type=int,
        choices=(32, 64, 128),
        default=128,
        help="columns that share a scale (default: 128)",
    )
    parser.add_argument(
        "--name", dest="new_name", metavar="N", help="name of the new model (default: NAME-WEIGHTS)"
    )
    parser.add_argument(
        "--text", metavar="FILE", type=given_path, help="plain text (UTF-8) to measure the perplexity on"
    )
    parser.add_argument("--no-perplexity", action="store_true", help="do not measure what it costs")
    parser.set_defaults(run=run_quantize)


def run_quantize(options: argparse.Namespace) -> int:
    """Quantise a model; returns the exit status."""
    # torch is imported only for this
    from inglenook.engine.library.model_quantizing import quantize_model
    from inglenook.engine.library.perplexity_text import TEXT
    from inglenook.engine.weights.quantize import Quantization

    folders = user_folders()
    ensure(folders.data)
    library = ModelLibrary(folders.models)
    source, title, licence = _source(library, options.name)
    name = (
        options.new_name
        or f"{suggest_name(source) if '/' in options.name else options.name}-{options.weights}"
    )
    text = None if options.no_perplexity else TEXT if options.text is None else _read(options.text)
    with StatusLine() as status:
        done = quantize_model(
            library,
            source,
            called=options.name,
            name=name,
            how=Quantization(options.weights, options.group),
            text=text,
            title=title,
            licence=licence,
            progress=lambda stage, done, total: (
                status.count(_STAGES[stage], done, total)
                if stage != "quantise"
                else status.bytes(_STAGES[stage], done, total)
            ),
        )
    _print(done, own_text=options.text is not None)
    return 0


def _source(library: ModelLibrary, name: str) -> tuple[Path, str, str]:
    """Path, title and licence of what is named."""
    try:
        model = library.get(name)
    except ModelNotFoundError:
        path = given_path(name)
        if not path.exists():
            raise
        return path, path.name, "not stated"
    return model.path, model.record.title, model.record.licence


def _read(path: Path) -> str:
    try:
        data = path.read_bytes() if path.stat().st_size <= _MAX_TEXT_BYTES else None
    except OSError as error:
        raise AppError(f"{path} cannot be read: {error.strerror}.") from error
    if data is None:
        raise AppError(
            f"{path} has {path.stat().st_size:,} bytes; at most {_MAX_TEXT_BYTES:,} are measured on. "
            "Give a part of it."
        )
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise AppError(
            f"{path} is not UTF-8 text: byte {error.start:,} cannot be one. Give plain text."
        ) from error


def _print(done: QuantizedModel, *, own_text: bool) -> None:
    model, plan, change = done.model, done.plan, done.change
    share = plan.size_bytes / done.source_bytes
    print(
        one_line(
            f"{model.name} is in the library: {format_bytes(model.record.size_bytes)}, {share:.0%} of the original's "
            "tensors."
        )
    )
    formats = ", ".join(f"{count:,} as {form}" for form, count in sorted(plan.formats.items()))
    print(f"Matrices: {formats}.")
    if plan.kept:
        print(
            one_line(
                f"{len(plan.kept):,} of them stay as they were, because their rows are no multiple of 32: {plan.kept[0]}"
                f"{' and others' if len(plan.kept) > 1 else ''}."
            )
        )
    if change is None:
        print(one_line(f"Perplexity was not measured: {done.words}"))
        return
    what = "your text" if own_text else "a short English text"
    print(
        f"Perplexity on {what} of {change.num_tokens:,} tokens, both on {done.words}: {change.before:.2f} before, "
        f"{change.after:.2f} after, {change.ratio - 1:+.1%} (give or take {change.error:.1%})."
    )
    print(
        "It says how well the next token of that text is guessed, lower is better; other languages, code and tasks may "
        "suffer more or less."
    )
    print(with_command(f"Try it with 'inglenook ask --model {model.name} QUESTION'."))
