"""The command line: which command is meant, and how every way to end becomes an exit status.

0 done; 1 an error, told in one sentence on stderr; 2 wrong usage; 130 Ctrl+C; 143 SIGTERM; 129 the terminal was
closed (SIGHUP); 141 nobody reads stdout.
On a signal everything open is cancelled and closed first; a second Ctrl+C ends the process at once, and the engine
process ends with it.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import io
import logging
import os
import signal
import sys
from collections.abc import Sequence
from importlib.metadata import version
from typing import NoReturn

from inglenook.app.commands.command_name import command_name, with_command
from inglenook.app.commands.terminal import one_line
from inglenook.app.errors import AppError, UsageError
from inglenook.engine.errors import ContextLengthError, EngineError, InvalidRequestError

# Each is imported when it is meant: the window and a quick command wait for no other's modules.
COMMANDS = {
    "ask": ("inglenook.app.commands.ask_command", "add_ask"),
    "models": ("inglenook.app.commands.models_command", "add_models"),
    "documents": ("inglenook.app.commands.documents_command", "add_documents"),
    "backup": ("inglenook.app.commands.backup_command", "add_backup"),
    "restore": ("inglenook.app.commands.backup_command", "add_restore"),
    "doctor": ("inglenook.app.commands.doctor_command", "add_doctor"),
    "bench": ("inglenook.app.commands.bench_command", "add_bench"),
}

_FAILED, _USAGE, _INTERRUPTED, _BROKEN_PIPE = 1, 2, 130, 141
# Names of the engine's parameters as the options that set them.
_OPTIONS = {
    "context_length": "--context",
    "num_threads": "--threads",
    "kv_dtype": "--kv",
    "num_cards": "--cards",
    "card_layers": "--card-layers",
}


class _Parser(argparse.ArgumentParser):
    """A parser whose help names the command as it was started."""

    def format_help(self) -> str:
        """Return the help text."""
        return with_command(super().format_help())


class _Terminated(BaseException):
    """SIGTERM or SIGHUP came. Not an Exception, so that nothing but `run` takes it for an error."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.status = 128 + number


def run(arguments: Sequence[str]) -> int:
    """Run one command; returns the exit status."""
    _prepare_streams()
    # What matters is told in a sentence; log lines would stand between the words of an answer.
    logging.getLogger("inglenook").addHandler(logging.NullHandler())
    signal.signal(signal.SIGTERM, _terminate)
    if os.name == "posix":
        _obey_posix()
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _interrupt)
    try:
        options = _parse(arguments)
        status: int = options.run(options)
        sys.stdout.flush()
        return status
    except KeyboardInterrupt:
        return _INTERRUPTED
    except _Terminated as ended:
        return ended.status
    except BrokenPipeError:
        # The interpreter flushes stdout once more when it ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _BROKEN_PIPE
    except InvalidRequestError as error:
        usage = not isinstance(error, ContextLengthError)
        return _report(_with_option_name(str(error)), _USAGE if usage else _FAILED)
    except UsageError as error:
        return _report(str(error), _USAGE)
    except (EngineError, AppError) as error:
        return _report(str(error), _FAILED)
    except OSError as error:
        return _report(f"{error.strerror or error}: {error.filename or 'standard output'}.", _FAILED)


def _parse(arguments: Sequence[str]) -> argparse.Namespace:
    try:
        return build_parser(_meant(arguments)).parse_args(arguments)
    except SystemExit:  # after help or the version, which nobody may read
        sys.stdout.flush()
        raise


def _meant(arguments: Sequence[str]) -> Sequence[str]:
    """Return the names of the commands whose options have to be known to read these arguments."""
    if not arguments:
        return ()
    return (arguments[0],) if arguments[0] in COMMANDS else tuple(COMMANDS)


def build_parser(names: Sequence[str] = tuple(COMMANDS)) -> argparse.ArgumentParser:
    """Make the parser of the command line, with the commands of these names."""
    parser: argparse.ArgumentParser = _Parser(
        prog=command_name(),
        description="Private local inference: a language model and your documents, on your own computer. "
        "Without a command, the window opens.",
        allow_abbrev=False,
    )
    parser.set_defaults(run=_open_window)
    parser.add_argument("--version", action="version", version=f"inglenook {version('inglenook')}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND")
    for name in names:
        module, function = COMMANDS[name]
        getattr(importlib.import_module(module), function)(commands)
    return parser


def _open_window(_options: argparse.Namespace) -> int:
    """Without a command, the window."""
    from inglenook.app.window.window_start import run_window

    return run_window()


def _prepare_streams() -> None:
    """Fill in standard streams that are closed, and escape what the terminal's encoding lacks."""
    _fill_closed_streams()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _fill_closed_streams() -> None:
    """Put something in place of standard streams that were closed before the start.

    Else the next files opened would get their numbers, and be written to by whoever means the stream. Input becomes
    empty, errors go nowhere, and output has no reader, which ends a command as such a pipe does.
    """
    # In this order, because the system gives the lowest number that is free.
    if not _is_open(0):
        os.open(os.devnull, os.O_RDONLY)
    if not _is_open(1):
        reading, writing = os.pipe()
        os.close(reading)
        if writing != 1:
            os.dup2(writing, 1)
            os.close(writing)
    if not _is_open(2):
        os.open(os.devnull, os.O_WRONLY)
    sys.stdin = sys.stdin or open(0)  # noqa: SIM115  they are as long-lived as the process
    sys.stdout = sys.stdout or open(1, "w")  # noqa: SIM115
    sys.stderr = sys.stderr or open(2, "w")  # noqa: SIM115


def _is_open(descriptor: int) -> bool:
    try:
        os.fstat(descriptor)
    except OSError:
        return False
    return True


def _obey_posix() -> None:
    """What only POSIX has: no core file, and an end in order when the terminal is closed."""
    import resource

    # Questions, answers and documents are in this memory: a crash must not leave them in a file.
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    if signal.getsignal(signal.SIGHUP) is signal.SIG_DFL:  # under nohup it is ignored
        signal.signal(signal.SIGHUP, _terminate)


def _terminate(number: int, _frame: object) -> NoReturn:
    signal.signal(number, signal.SIG_DFL)
    raise _Terminated(number)


def _interrupt(_number: int, _frame: object) -> NoReturn:
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    raise KeyboardInterrupt


def _report(sentence: str, status: int) -> int:
    with contextlib.suppress(OSError):  # the status says it, too
        print(f"inglenook: {one_line(with_command(sentence))}", file=sys.stderr)
    return status


def _with_option_name(sentence: str) -> str:
    """Name the option where the engine names its parameter: "max_tokens must" becomes "--max-tokens must"."""
    name, separator, rest = sentence.partition(" must ")
    if not separator or not name.isidentifier():
        return sentence
    return _OPTIONS.get(name, "--" + name.replace("_", "-")) + separator + rest
