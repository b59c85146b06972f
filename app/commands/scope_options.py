"""The options that say which of the profile's documents a command means; `documents_search.py` looks them up."""

from __future__ import annotations

import argparse


def add_scope_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that say which of the profile's documents are meant."""
    scope = parser.add_argument_group(
        "which documents of the profile", "Each narrows further; each can be given again."
    )
    scope.add_argument(
        "--in", dest="within", metavar="DOCUMENT", action="append", help="this one, by number, path or name"
    )
    scope.add_argument("--collection", metavar="NAME", action="append", help="those of a collection")
    scope.add_argument(
        "--name",
        metavar="PATTERN",
        action="append",
        help="those whose names have this part, or match * and ?",
    )
    scope.add_argument("--year", metavar="YYYY", type=int, action="append",
                       help="those whose name or title says this year, or else that were changed in it")  # fmt: skip


def has_scope(options: argparse.Namespace) -> bool:
    """Return whether a command was given any part of a scope."""
    return bool(options.within or options.collection or options.name or options.year)
