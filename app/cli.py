"""The command line: which command is meant, and how every way to end becomes an exit status.

0 done; 1 an error, told in one sentence on stderr; 2 wrong usage; 130 Ctrl+C; 143 SIGTERM; 141 nobody reads stdout.
On a signal everything open is cancelled and closed first; a second Ctrl+C ends the process at once, and the engine
process ends with it.
"""

from __future__ import annotations

import argparse
import io
import logging
import os
import signal
import sys
from collections.abc import Sequence
from importlib.metadata import version
from typing import NoReturn

from inglenook.app.ask_command import add_ask
from inglenook.app.doctor_command import add_doctor
from inglenook.app.errors import AppError, UsageError
from inglenook.app.models_command import add_models
from inglenook.app.terminal import harmless
from inglenook.engine.errors import ContextLengthError, EngineError, InvalidRequestError

_FAILED, _USAGE, _INTERRUPTED, _BROKEN_PIPE, _TERMINATED = 1, 2, 130, 141, 143
# Names of the engine's parameters as the options that set them.
_OPTIONS = {"context_length": "--context", "num_threads": "--threads"}


class _Terminated(BaseException):
    """SIGTERM came. Not an Exception, so that nothing but `run` takes it for an error."""


def run(arguments: Sequence[str]) -> int:
    """Run one command; returns the exit status."""
    _prepare_streams()
    # What matters is told in a sentence; log lines would stand between the words of an answer.
    logging.getLogger("inglenook").addHandler(logging.NullHandler())
    signal.signal(signal.SIGTERM, _terminate)
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _interrupt)
    try:
        options = build_parser().parse_args(arguments)
        status: int = options.run(options)
        sys.stdout.flush()
        return status
    except KeyboardInterrupt:
        return _INTERRUPTED
    except _Terminated:
        return _TERMINATED
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


def build_parser() -> argparse.ArgumentParser:
    """Make the parser of the whole command line."""
    parser = argparse.ArgumentParser(
        prog="inglenook",
        description="Private local inference: a language model and your documents, on your own computer. "
        "Without a command, the window opens.",
        allow_abbrev=False,
    )
    parser.set_defaults(run=_open_window)
    parser.add_argument("--version", action="version", version=f"inglenook {version('inglenook')}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND")
    add_ask(commands)
    add_models(commands)
    add_doctor(commands)
    return parser


def _open_window(_options: argparse.Namespace) -> int:
    """Without a command, the window."""
    from inglenook.app.window_start import run_window

    return run_window()


def _prepare_streams() -> None:
    """Let text that the terminal's encoding lacks be shown escaped instead of ending the program."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _terminate(_number: int, _frame: object) -> NoReturn:
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    raise _Terminated


def _interrupt(_number: int, _frame: object) -> NoReturn:
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    raise KeyboardInterrupt


def _report(sentence: str, status: int) -> int:
    print(f"inglenook: {harmless(sentence)}", file=sys.stderr)
    return status


def _with_option_name(sentence: str) -> str:
    """Name the option where the engine names its parameter: "max_tokens must" becomes "--max-tokens must"."""
    name, separator, rest = sentence.partition(" must ")
    if not separator or not name.isidentifier():
        return sentence
    return _OPTIONS.get(name, "--" + name.replace("_", "-")) + separator + rest
