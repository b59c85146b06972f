"""The documents of a backup brought into a history: text, pages, passages and collections; known ones stay as they are."""

from __future__ import annotations

from inglenook.storage.merge_rows import MergeWork


def merge_documents(work: MergeWork) -> int:
    """Add the documents whose bytes are not known here, and put all of the backup's into its collections.

    Return how many were added. Part of the caller's transaction.

    Raises:
        StoppedError: the user wants to stop.
    """
    num_added = 0
    for row in work.rows("documents", "1 ORDER BY id"):
        own = work.own_rows("documents", "sha256 = ?", (row["sha256"],))
        if own:
            work.ids["documents"][row["id"]] = own[0]["id"]
            work.known["documents"] += 1
            _match_versions(work, row["id"], own[0]["id"])
        else:
            _add_document(work, row)
            num_added += 1
        work.step()
    _merge_collections(work)
    return num_added


def _add_document(work: MergeWork, row: dict[str, object]) -> None:
    new_id = work.insert("documents", row | {"current_version_id": None})
    for version in work.rows("document_versions", "document_id = ? ORDER BY id", (row["id"],)):
        version_id = work.insert("document_versions", version | {"document_id": new_id})
        for page in work.rows("pages", "version_id = ? ORDER BY id", (version["id"],)):
            work.insert("pages", page | {"version_id": version_id})
        for chunk in work.rows("chunks", "version_id = ? ORDER BY id", (version["id"],)):
            work.insert("chunks", chunk | {"version_id": version_id})
            work.step()
    current = row["current_version_id"]
    assert current is None or isinstance(current, int)
    work.into.execute(
        "UPDATE documents SET current_version_id = ? WHERE id = ?",
        (work.mapped("document_versions", current), new_id),
    )


def _match_versions(work: MergeWork, old_id: int, own_id: int) -> None:
    """Let sources of the backup point to the versions that are here; a source keeps its own copy of its quote anyhow."""
    own = {
        row["sha256"]: row["id"] for row in work.own_rows("document_versions", "document_id = ?", (own_id,))
    }
    for version in work.rows("document_versions", "document_id = ?", (old_id,)):
        if version["sha256"] in own:
            work.ids["document_versions"][version["id"]] = own[version["sha256"]]


def _merge_collections(work: MergeWork) -> None:
    own = {row["name"].casefold(): row["id"] for row in work.own_rows("collections")}
    for row in work.rows("collections", "1 ORDER BY id"):
        known = own.get(row["name"].casefold())
        collection_id = work.insert("collections", row) if known is None else known
        for member in work.rows("collection_documents", "collection_id = ?", (row["id"],)):
            work.into.execute(
                "INSERT OR IGNORE INTO collection_documents(collection_id, document_id) VALUES (?, ?)",
                (collection_id, work.ids["documents"][member["document_id"]]),
            )
