"""`inglenook backup` and `inglenook restore`: everything in one file, and back from it without overwriting anything.

A backup holds chats, folders, documents with their text, personas and settings; models and the documents' own files
are not in it. Both work only while no window has the profile.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from pathlib import Path

from inglenook.app.commands.documents_profile import HISTORY_FILE, open_profile
from inglenook.app.commands.terminal import StatusLine, harmless_json
from inglenook.app.errors import AppError, UsageError
from inglenook.app.paths import given_path, user_folders
from inglenook.engine.memory import format_bytes
from inglenook.storage.backup import back_up
from inglenook.storage.errors import StorageError
from inglenook.storage.merge import BackupContents, backup_contents, merge_backup


def add_backup(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `backup` to the parser."""
    parser = commands.add_parser(
        "backup",
        help="write chats, documents and settings into one file",
        description="Write chats, documents' text, personas and settings into one file, which 'inglenook restore' "
        "brings in again, here or on another computer. Models are not in it.",
        allow_abbrev=False,
    )
    parser.add_argument("file", metavar="FILE", type=given_path)
    parser.add_argument("--replace", action="store_true", help="write over FILE if it is there")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.set_defaults(run=run_backup)


def add_restore(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `restore` to the parser."""
    parser = commands.add_parser(
        "restore",
        help="add what a backup has to what is here",
        description="Add the chats, documents and settings of a backup to those that are here. Nothing that is here "
        "is changed or overwritten, and restoring the same backup again adds nothing.",
        allow_abbrev=False,
    )
    parser.add_argument("file", metavar="FILE", type=given_path)
    parser.add_argument("--look", action="store_true", help="only say what the backup holds")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.set_defaults(run=run_restore)


def run_backup(options: argparse.Namespace) -> int:
    """Write the backup and say how large it is."""
    target: Path = options.file.absolute()
    if target.is_dir():
        raise UsageError(f"'{options.file}' is a folder. Name the file that the backup is to be.")
    if target.exists() and not options.replace:
        raise AppError(
            f"'{options.file}' is there already. Choose another name, or write over it with --replace."
        )
    if not (user_folders().data / HISTORY_FILE).exists():
        raise AppError("There is nothing to back up yet: no chat and no document was ever kept here.")
    with open_profile() as db, StatusLine() as status:
        back_up(db, target, lambda done, total: status.count("Backing up, page", done, total))
    contents, size = _contents(target), target.stat().st_size
    if options.json:
        print(harmless_json(json.dumps({"file": str(target), "bytes": size, **asdict(contents)})))
    else:
        print(
            f"Backed up {contents.conversations:,} chats, {contents.messages:,} messages and {contents.documents:,} "
            f"documents into {target} ({format_bytes(size)})."
        )
    return 0


def run_restore(options: argparse.Namespace) -> int:
    """Bring a backup in and say what was added."""
    path: Path = options.file.absolute()
    if options.look:
        contents = _contents(path)
        if options.json:
            print(harmless_json(json.dumps(asdict(contents))))
        else:
            print(
                f"The backup holds {contents.conversations:,} chats, {contents.messages:,} messages and "
                f"{contents.documents:,} documents."
            )
        return 0
    with open_profile() as db, StatusLine() as status:
        report = merge_backup(db, path, lambda done, total: status.count("Restoring", done, total))
    if options.json:
        print(harmless_json(json.dumps(asdict(report))))
    elif report.is_empty:
        print("Everything of the backup was here already; nothing was added.")
    else:
        print(
            f"Added {report.conversations:,} chats, {report.messages:,} messages and {report.documents:,} documents. "
            f"{report.known_conversations:,} chats and {report.known_documents:,} documents were here already; "
            "nothing was overwritten."
        )
    return 0


def _contents(path: Path) -> BackupContents:
    try:
        return backup_contents(path)
    except StorageError as error:
        raise AppError(str(error)) from error
