"""The password of an encrypted document on the command line: asked for on a terminal, or read from a file.

Never an argument, which every other program of the computer can see. It is not kept.
"""

from __future__ import annotations

import argparse
import getpass
import sys
from collections.abc import Callable
from pathlib import Path

from inglenook.app.commands.terminal import StatusLine, one_line
from inglenook.app.errors import UsageError
from inglenook.app.paths import given_path
from inglenook.storage.parsing.document import ParsedDocument
from inglenook.storage.parsing.errors import PasswordRequiredError, WrongPasswordError

MAX_ASKED = 3
"""How often a password is asked for before a file is left out."""
HOW_TO_GIVE = "Run the command in a terminal, which asks for it, or give --password-file FILE, a file with nothing but it."
_MAX_BYTES = 4096


def add_password_option(parser: argparse.ArgumentParser) -> None:
    """Add the option to a command that reads documents."""
    parser.add_argument(
        "--password-file",
        metavar="FILE",
        type=given_path,
        help="the first line of this file opens encrypted documents; on a terminal it is asked for",
    )


def given_password(file: Path | None) -> str | None:
    """Return the first line of the file, None without one.

    Raises:
        UsageError: it cannot be read, is empty, or is no UTF-8 text.
    """
    if file is None:
        return None
    try:
        with file.open("rb") as opened:
            line = opened.readline(_MAX_BYTES)
        password = line.decode().rstrip("\r\n")
    except OSError as error:
        raise UsageError(f"The password in {file} cannot be read: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise UsageError(
            f"The password in {file} is not UTF-8 text: byte {error.start} is wrong. Write it in UTF-8."
        ) from error
    if not password:
        raise UsageError(f"The first line of {file} is empty. Write the password there.")
    return password


def can_ask() -> bool:
    """Return whether a person sits at a terminal."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def parse_with_password(
    parse: Callable[[str | None], ParsedDocument], name: str, given: str | None, status: StatusLine
) -> ParsedDocument:
    """Read a document, with the password that was given or is asked for where it needs one.

    Raises:
        PasswordRequiredError: none was given, or none that opens it.
        ParsingError: what else is wrong with it.
    """
    try:
        return parse(given)
    except PasswordRequiredError as error:
        if not can_ask():
            raise
        failed = error
    for _ in range(MAX_ASKED):
        status.clear()
        wrong = "That does not open it. " if isinstance(failed, WrongPasswordError) else ""
        try:
            password = getpass.getpass(one_line(f"{wrong}Password of {name} (it is not kept): "))
        except EOFError:
            break
        if not password:
            break
        try:
            return parse(password)
        except PasswordRequiredError as error:
            failed = error
    raise failed
