"""The conversations of a backup brought into a history: whole trees, or what a tree that is here lacks.

A conversation goes on in two places when its backup was restored on another computer and both were used: then
the messages of each stand beside each other as versions, and what is shown here stays what is shown.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from inglenook.storage.merge_rows import MergeWork
from inglenook.storage.text import from_json, to_json

# How the options of a conversation name rows of other tables.
_OPTIONS_OF_TABLES = {"document_ids": "documents", "persona_id": "personas"}

_Key = tuple[int | None, str, int, str]


def merge_chats(work: MergeWork) -> None:
    """Add conversations, messages and their sources, and the folders. Part of the caller's transaction.

    Raises:
        StoppedError: the user wants to stop.
    """
    for row in work.rows("folders"):
        work.into.execute("INSERT OR IGNORE INTO folders(name) VALUES (?)", (row["name"],))
    folders = {row["name"].casefold(): row["name"] for row in work.own_rows("folders")}
    # Least active first, so that the new ids of their messages keep the order.
    for row in work.rows("conversations", "1 ORDER BY activity, id"):
        messages = work.rows("messages", "conversation_id = ? ORDER BY id", (row["id"],))
        own_id = _known(work, row, messages)
        if own_id is None:
            options = _options(work, row["options"])
            folder = folders.get(row["folder"].casefold(), "")
            own_id = work.insert(
                "conversations",
                row | {"active_root_id": None, "options": options, "folder": folder},
            )
            is_new = True
        else:
            work.known["conversations"] += 1
            is_new = False
        _merge_messages(work, own_id, row, messages, is_new=is_new)
        work.step(len(messages))


def _known(work: MergeWork, row: dict[str, Any], messages: list[dict[str, Any]]) -> int | None:
    """Return the conversation here that began as this one did, None for none."""
    for own in work.own_rows("conversations", "created_at_ms = ? ORDER BY id", (row["created_at_ms"],)):
        first = work.own_rows("messages", "conversation_id = ? ORDER BY id LIMIT 1", (own["id"],))
        if not messages and not first:
            is_same = own["title"] == row["title"]
        else:
            is_same = any(_key(one, None) == _key(two, None) for one in first for two in messages)
        if is_same:
            return int(own["id"])
    return None


def _merge_messages(
    work: MergeWork, own_id: int, row: dict[str, Any], messages: list[dict[str, Any]], *, is_new: bool
) -> None:
    own: dict[_Key, int] = {}
    grown: dict[int, list[dict[str, Any]]] = {}
    if not is_new:
        for message in work.own_rows("messages", "conversation_id = ?", (own_id,)):
            own[_key(message, message["parent_id"])] = message["id"]
            grown.setdefault(message["created_at_ms"], []).append(message)
    added = []
    for message in messages:
        parent = work.mapped("messages", message["parent_id"])
        known = own.get(_key(message, parent)) or _grown(message, grown.get(message["created_at_ms"], ()))
        if known is not None:
            work.ids["messages"][message["id"]] = known
            continue
        # What was being written when the backup was made was cut off there.
        status = "interrupted" if message["status"] == "streaming" else message["status"]
        changes = {
            "conversation_id": own_id, "parent_id": parent, "active_child_id": None, "status": status,
        }  # fmt: skip
        work.insert("messages", message | changes)
        added.append(message)
    for message in added:
        work.into.execute(
            "UPDATE messages SET active_child_id = ? WHERE id = ?",
            (work.mapped("messages", message["active_child_id"]), work.ids["messages"][message["id"]]),
        )
        _add_sources(work, message["id"])
    if is_new:
        newest = max((work.ids["messages"][message["id"]] for message in added), default=0)
        work.into.execute(
            "UPDATE conversations SET active_root_id = ?, activity = ? WHERE id = ?",
            (work.mapped("messages", row["active_root_id"]), newest, own_id),
        )
    _show_what_was_added(work, own_id, added)


def _show_what_was_added(work: MergeWork, own_id: int, added: list[dict[str, Any]]) -> None:
    """Let a conversation that only went on in the backup show how: where here nothing follows, the new follows."""
    for message in added:
        new_id = work.ids["messages"][message["id"]]
        work.into.execute(
            "UPDATE messages SET active_child_id = ? WHERE active_child_id IS NULL AND id = "
            "(SELECT parent_id FROM messages WHERE id = ?)",
            (new_id, new_id),
        )
        work.into.execute(
            "UPDATE conversations SET active_root_id = ? WHERE id = ? AND active_root_id IS NULL "
            "AND EXISTS (SELECT 1 FROM messages WHERE id = ? AND parent_id IS NULL)",
            (new_id, own_id, new_id),
        )


def _add_sources(work: MergeWork, message_id: int) -> None:
    for source in work.rows("sources", "message_id = ? ORDER BY id", (message_id,)):
        places = {
            "document_id": work.mapped("documents", source["document_id"]),
            "version_id": work.mapped("document_versions", source["version_id"]),
            "chunk_id": work.mapped("chunks", source["chunk_id"]),
        }
        work.insert("sources", source | {"message_id": work.ids["messages"][message_id]} | places)


def _options(work: MergeWork, text: str) -> str:
    """Return a conversation's options with the ids that documents and personas have here."""
    options = from_json(text, dict)
    for name, table in _OPTIONS_OF_TABLES.items():
        value = options.get(name)
        if isinstance(value, list):
            mapped = [work.mapped(table, one) for one in value if type(one) is int]
            options[name] = [one for one in mapped if one is not None]
        elif type(value) is int:
            options[name] = work.mapped(table, value) or 0
    return to_json(options)


def _grown(message: dict[str, Any], own: Iterable[dict[str, Any]]) -> int | None:
    """Return the reply here that was only begun when the backup was made, None for none."""
    if message["status"] != "streaming":
        return None
    text = message["text"]
    return next(
        (one["id"] for one in own if one["role"] == "assistant" and one["text"].startswith(text)), None
    )


def _key(message: dict[str, Any], parent: int | None) -> _Key:
    return (parent, message["role"], message["created_at_ms"], message["text"])
