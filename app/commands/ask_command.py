"""`inglenook ask`: one question to a model of the library or a file, the answer streamed to standard output."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from inglenook.app.commands.document_password import add_password_option
from inglenook.app.commands.json_keys import ASK_KEYS, add_keys
from inglenook.app.commands.scope_options import add_scope_options, has_scope
from inglenook.app.commands.terminal import StatusLine, harmless, harmless_json, one_line
from inglenook.app.errors import AppError, UsageError
from inglenook.app.paths import given_path, user_folders
from inglenook.app.settings_presets import DEFAULT_PRESET, preset_values
from inglenook.engine.client import EngineClient
from inglenook.engine.errors import EngineError, error_from_kind
from inglenook.engine.handle import Handle, Reply
from inglenook.engine.library.model_catalogue import STARTER_CHAT
from inglenook.engine.memory import memory_state
from inglenook.engine.model_doctor.process import known_report
from inglenook.engine.model_library import ModelLibrary
from inglenook.engine.request import (
    Failed,
    Finished,
    Loaded,
    LoadOptions,
    LoadProgress,
    Request,
    SamplingParams,
    TokenText,
)
from inglenook.storage.parsing.document import READABLE_FORMATS

MAX_QUESTION_BYTES = 16_000_000

_DEFAULTS = preset_values(DEFAULT_PRESET, {})  # as in the window


def add_ask(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        "ask",
        help="ask a question and see the answer as it is written",
        description="Ask a question. The answer is written to standard output as it comes.",
        allow_abbrev=False,
    )
    add_keys(parser, ASK_KEYS)
    parser.set_defaults(run=run_ask, text="")
    parser.add_argument("question", metavar="QUESTION", help="the question; - reads it from standard input")
    parser.add_argument(
        "--model",
        metavar="NAME|PATH",
        help="a model of the library, a .gguf file or a safetensors folder "
        "(default: the largest chat model of the library that fits in memory)",
    )
    parser.add_argument(
        "--document",
        action="append",
        metavar="FILE",
        default=[],
        type=given_path,
        help=f"answer from this file, or from those in this folder, and say where; repeatable. Can be {READABLE_FORMATS}",
    )
    parser.add_argument(
        "--documents", action="store_true", help="answer from all documents of the profile, and say where"
    )
    add_password_option(parser)
    add_scope_options(parser)
    parser.add_argument(
        "--adapter",
        metavar="FOLDER",
        type=given_path,
        help="a LoRA adapter to answer with: adapter_config.json and adapter_model.safetensors, made for this model "
        "(runs on the back end torch-cpu, unless --backend says another)",
    )
    parser.add_argument("--system", metavar="TEXT", help="what the model is told before the question")
    parser.add_argument(
        "--temperature",
        type=float,
        metavar="T",
        default=_DEFAULTS.temperature,
        help="0 always takes the likeliest word, higher varies more (default: %(default)s)",
    )
    parser.add_argument(
        "--top-k", type=int, metavar="N", default=0, help="choose among the N likeliest (default: 0, all)"
    )
    parser.add_argument(
        "--top-p",
        type=float,
        metavar="P",
        default=_DEFAULTS.top_p,
        help="choose among the likeliest that add up to P; 1 is all (default: %(default)s)",
    )
    parser.add_argument(
        "--min-p",
        type=float,
        metavar="P",
        default=_DEFAULTS.min_p,
        help="leave out what is less than P times as likely as the likeliest; 0 is nothing (default: %(default)s)",
    )
    parser.add_argument(
        "--seed", type=int, metavar="N", help="the same seed gives the same answer (default: a new one)"
    )
    parser.add_argument(
        "--max-tokens",
        type=int,
        metavar="N",
        help="end the answer after N tokens (default: when the model's context is full)",
    )
    parser.add_argument(
        "--stop", action="append", metavar="S", default=[], help="end the answer before this text; repeatable"
    )
    parser.add_argument(
        "--allow-repetition",
        action="store_true",
        help="let an answer that says the same thing over and over go on (default: it is stopped, and that is said)",
    )
    parser.add_argument(
        "--json", action="store_true", help="print one JSON object at the end instead of the text"
    )
    parser.add_argument(
        "--backend",
        default="auto",
        metavar="NAME",
        help="auto, or one of those that 'inglenook doctor' lists (default: auto)",
    )
    parser.add_argument(
        "--context",
        type=int,
        metavar="N",
        help="context length in tokens (default: the model's, as far as memory allows)",
    )
    parser.add_argument(
        "--kv",
        choices=("float32", "float16", "bfloat16", "int8", "float8_e4m3fn"),
        metavar="TYPE",
        help="type of the KV cache: float32, float16, bfloat16, int8, or float8_e4m3fn on newer NVIDIA cards (default: "
        "the back end's)",
    )
    parser.add_argument(
        "--cards",
        type=int,
        metavar="N",
        help="NVIDIA cards that share the model (default: as few as hold it)",
    )
    parser.add_argument(
        "--card-layers",
        type=int,
        metavar="N",
        help="layers on the NVIDIA card, the rest on the processor (default: as many as fit)",
    )
    parser.add_argument(
        "--threads",
        type=int,
        metavar="N",
        help="threads of the engine (default: the physical cores, less one when there are more than four)",
    )
    parser.add_argument(
        "--home",
        choices=("child", "here"),
        default="child",
        help="run the engine in a process of its own or in this one (default: child)",
    )


def run_ask(options: argparse.Namespace) -> int:
    """Answer the question; returns the exit status."""
    request = _request(options)
    load_options = LoadOptions(
        # only the PyTorch back ends run adapters
        backend="torch-cpu" if options.adapter and options.backend == "auto" else options.backend,
        context_length=options.context,
        num_threads=options.threads,
        kv_dtype=options.kv,
        num_cards=options.cards,
        card_layers=options.card_layers,
    )
    if options.model == "":
        raise UsageError("--model is empty.")
    try:
        return _ask(options, request, load_options)
    except (EngineError, AppError) as error:
        if options.json:
            print_json(_error_record(options.text, str(error)))
        raise


def _ask(options: argparse.Namespace, request: Request, load_options: LoadOptions) -> int:
    name, path = _find_model(options.model)
    if not _is_unicode(str(path)):
        raise AppError(f"The model's path {path} is not UTF-8 text. Rename it.")
    _warn_if_unsound(name, path)
    make_client = EngineClient.child if options.home == "child" else EngineClient.in_process
    if options.document and (options.documents or has_scope(options)):
        raise UsageError(
            "--document reads files for this question alone; --documents, --in, --collection, --name and --year choose among "
            "those of the profile. Give one kind."
        )
    if options.document or options.documents or has_scope(options):
        # Imported here because a plain question needs neither storage nor parsers.
        from inglenook.app.commands.ask_documents import answer_from_documents

        return answer_from_documents(options, request, load_options, (name, path), make_client)
    with StatusLine() as status, make_client() as client:
        loaded = wait_for_model(client.load(path, options=load_options), name, status)
        handle = client.submit(request)
        try:
            finished = stream(handle, status, quiet=options.json)
        except EngineError:
            options.text = handle.text()
            raise
        finally:
            handle.cancel()
    if options.json:
        record = answer_record(handle.text(), finished, name, loaded.backend)
        print_json(record | {"notices": status.notices})
    return 0


def _request(options: argparse.Namespace) -> Request:
    sampling = SamplingParams(
        max_tokens=options.max_tokens,
        temperature=options.temperature,
        top_k=options.top_k,
        top_p=options.top_p,
        min_p=options.min_p,
        seed=options.seed,
        stop=tuple(options.stop),
        stop_repetition=not options.allow_repetition,
    )
    question = _standard_input() if options.question == "-" else options.question
    if not question.strip():
        raise UsageError("The question is empty.")
    texts = {"QUESTION": question, "--system": options.system or ""}
    texts.update((f"--stop {n}", text) for n, text in enumerate(options.stop, 1))
    for what, text in texts.items():
        if not _is_unicode(text):
            raise UsageError(f"{what} is not valid UTF-8 text.")
    messages = [{"role": "user", "content": question}]
    if options.system:
        messages.insert(0, {"role": "system", "content": options.system})
    adapter = "" if options.adapter is None else str(options.adapter.absolute())
    if not _is_unicode(adapter):
        raise UsageError(f"The path of the adapter {adapter} is not UTF-8 text. Rename it.")
    if options.adapter is not None and not options.adapter.exists():
        raise UsageError(f"There is no adapter {options.adapter}.")  # said before a model is loaded in vain
    return Request(messages=tuple(messages), sampling=sampling, adapter=adapter)


def _standard_input() -> str:
    try:
        data = sys.stdin.buffer.read(MAX_QUESTION_BYTES + 1)
    except OSError as error:
        raise UsageError(f"The question on standard input cannot be read: {error.strerror}.") from error
    if len(data) > MAX_QUESTION_BYTES:
        raise UsageError(f"The question on standard input is longer than {MAX_QUESTION_BYTES:,} bytes.")
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise UsageError(
            f"The question on standard input is not UTF-8 text: byte {error.start} is {data[error.start]:#04x}."
        ) from error


def _is_unicode(text: str) -> bool:
    """Whether the text has no half characters, which undecodable arguments become."""
    return not any("\ud800" <= character <= "\udfff" for character in text)


def _find_model(given: str | None) -> tuple[str, Path]:
    """The name to show and the path to load."""
    library = ModelLibrary(user_folders().models)
    if given is None:
        model = library.preferred("chat", memory_state().free_bytes)
        if model is None:
            raise AppError(
                f"There is no chat model yet. 'inglenook models get {STARTER_CHAT}' fetches a small one, "
                "'inglenook models list' shows better ones."
            )
    elif _is_path(given) and given not in (m.name for m in library.models()):
        return given, Path(given).expanduser()
    else:
        model = library.get(given)
    if model.is_missing:
        raise AppError(
            f"The model {model.name} was imported from {model.path}, which is not there any more. Put it back, or "
            f"forget the model with 'inglenook models remove {model.name}'."
        )
    if model.record.kind != "chat":
        raise AppError(f"{model.name} finds passages in documents; it is not a chat model and cannot answer.")
    return model.name, model.path


def _warn_if_unsound(name: str, path: Path) -> None:
    """Print one line where the doctor found the model red before; nothing is examined here."""
    report = known_report(path)
    if report is not None and report.light == "red":
        fault = next(finding for finding in report.findings if finding.light == "red")
        print(one_line(f"Warning: {name} was found unsound: {fault.sentence}"), file=sys.stderr)


def _is_path(given: str) -> bool:
    return "/" in given or given.startswith("~") or Path(given).exists()


def wait_for_model(load: Handle[Loaded], name: str, status: StatusLine) -> Loaded:
    """Wait until a model stands, showing how far it is."""
    status.bytes("Starting the engine", 0, 0)
    for event in load.events():
        if isinstance(event, LoadProgress):
            status.bytes(f"Loading {name}:", event.done, event.total)
    loaded = load.result()
    for sentence in loaded.notices:
        status.notice(sentence)
    status.bytes(f"{name} reads the question", 0, 0)
    return loaded


def stream(handle: Handle[Reply], status: StatusLine, *, quiet: bool) -> Finished:
    """Write the reply as it comes; with `quiet`, only wait for it."""
    ends_with_newline = True
    finished: Finished | None = None
    try:
        for event in handle.events():
            status.clear()
            if isinstance(event, TokenText) and not quiet:
                sys.stdout.write(harmless(event.text))
                sys.stdout.flush()
                ends_with_newline = event.text.endswith("\n") if event.text else ends_with_newline
            elif isinstance(event, Finished):
                finished = event
                break
            elif isinstance(event, Failed):
                raise error_from_kind(event.kind, event.message)
    finally:
        if not quiet and not ends_with_newline:
            sys.stdout.write("\n")
            sys.stdout.flush()
    assert finished is not None, "a request ended without Finished or Failed"
    if finished.finish_reason == "repetition" and not quiet:
        words = f"It began to repeat itself and was stopped after {len(handle.text().split()):,} words."
        print(f"{words} --allow-repetition lets it go on.", file=sys.stderr)
    return finished


def answer_record(
    text: str, finished: Finished, model: str, backend: str, sources: Sequence[dict[str, object]] = ()
) -> dict[str, object]:
    """Return the whole answer as `--json` prints it."""
    return {
        "text": text,
        "finish_reason": finished.finish_reason,
        "prompt_tokens": finished.prompt_tokens,
        "cached_tokens": finished.cached_tokens,
        "completion_tokens": finished.completion_tokens,
        "ttft_s": finished.ttft_s,
        "tpot_s": finished.tpot_s,
        "sources": list(sources),
        "model": model,
        "backend": backend,
        "seed": finished.seed,
    }


def _error_record(text: str, sentence: str) -> dict[str, object]:
    """Return what `--json` prints when there is no whole answer; `text` is what had come of it."""
    return {
        "text": text,
        "finish_reason": "error",
        "error": sentence,
        "prompt_tokens": 0,
        "cached_tokens": 0,
        "completion_tokens": 0,
        "ttft_s": None,
        "tpot_s": None,
        "sources": [],
        "model": None,
        "backend": None,
        "seed": None,
    }


def print_json(value: dict[str, object]) -> None:
    """Print one JSON object in which no character can move the cursor."""
    print(harmless_json(json.dumps(value, ensure_ascii=False)))
