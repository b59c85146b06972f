"""Forgetting: deleting so that no byte of the text stays in the database, its companions or our own backups.

Deleting a row is not enough: the full-text index keeps separators of deleted words until it is merged, the planner keeps
samples, and the write-ahead file keeps old pages until it is cut. `secure_delete` (always on) zeroes what is freed, but
not the copies that stay behind when rows move to another page (`page_slack.py`). The scrubbing that is owed is noted in
the same transaction as the deletion, so that a crash or a busy reader in between only postpones it: `finish_forgetting`
at the next start, or when idle, takes it up.

What a person wrote about a document, and replies of the model, are the conversation's text: they go with the
conversation. Backups that the user made elsewhere, and blocks that the disk itself keeps, are out of reach.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

from inglenook.storage.backup import automatic_backups
from inglenook.storage.conversations import Conversations
from inglenook.storage.database import Database
from inglenook.storage.documents import Documents
from inglenook.storage.file_process import scrub
from inglenook.storage.migrations import FULL_TEXT_TABLES
from inglenook.storage.opening import as_storage_error, sync_folder
from inglenook.storage.records import FORGOTTEN
from inglenook.storage.settings import Settings

_OWED = "storage.forgetting_owed"


def forget_documents(db: Database, document_ids: Iterable[int]) -> bool:
    """Forget documents and the quotes of them under old answers, which then read "[forgotten]".

    Returns whether it is complete; False: a reader still holds old pages, and `finish_forgetting` is owed.
    """
    ids = list(document_ids)
    with db.atomic():
        Settings(db).set(_OWED, True)
        _forget_quotes(db, "document_id IN (SELECT value FROM json_each(?))", (json.dumps(ids),))
        for document_id in ids:
            Documents(db).delete(document_id)
    return finish_forgetting(db)


def forget_deleted_documents(db: Database) -> bool:
    """Forget the quotes of documents that were deleted before; returns as `forget_documents`."""
    with db.atomic():
        Settings(db).set(_OWED, True)
        _forget_quotes(db, "document_id IS NULL", ())
    return finish_forgetting(db)


def forget_conversations(db: Database, conversation_ids: Iterable[int]) -> bool:
    """Forget conversations with their messages, token ids and sources; returns as `forget_documents`."""
    with db.atomic():
        Settings(db).set(_OWED, True)
        for conversation_id in conversation_ids:
            Conversations(db).delete(conversation_id)
    return finish_forgetting(db)


def finish_forgetting(db: Database) -> bool:
    """Do the scrubbing that is owed, if any: merge the indexes, drop free pages and our backups, cut the WAL.

    Returns whether nothing is owed any more. May take seconds with a large index; call it from the writer's thread.

    Raises:
        ReadOnlyError: a backup beside the file cannot be removed.
    """
    if not Settings(db).get(_OWED, False):
        return True
    for table in FULL_TEXT_TABLES:
        db.execute(f"INSERT INTO {table}({table}) VALUES ('optimize')")
    if db.row("SELECT 1 FROM sqlite_schema WHERE name = 'sqlite_stat4'") is not None:
        # the planner's samples of indexed values, among them paths
        db.execute("DELETE FROM sqlite_stat4")
    db.execute("PRAGMA incremental_vacuum").fetchall()
    if db.path is not None:
        try:
            for backup in automatic_backups(db.path):
                backup.unlink(missing_ok=True)
            sync_folder(db.path.parent)
        except OSError as error:
            raise as_storage_error(error, db.path) from error
        if not db.checkpoint() or not _scrub_slack(db, db.path):
            return False
    Settings(db).remove(_OWED)
    return True


def _scrub_slack(db: Database, path: Path) -> bool:
    """Overwrite what moved cells left between others; False when another program writes."""
    if scrub(path) is None:
        return False
    # or a page that is still in memory would be written back with what was overwritten
    db.execute("PRAGMA shrink_memory").fetchall()
    return True


def _forget_quotes(db: Database, where: str, parameters: tuple[str, ...]) -> None:
    db.execute(
        "UPDATE sources SET quote = ?, document_name = ?, page_label = NULL, heading = '', rectangles = x'' WHERE "
        + where,
        (FORGOTTEN, FORGOTTEN, *parameters),
    )
