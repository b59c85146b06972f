"""Looks for conversations by what their titles and messages say, in any script, letter case aside.

Every word has to occur: all in the title, or all in one message. Words of three letters and more are looked up in the
trigram index and then compared; shorter ones are compared alone. What the user types is never FTS5 syntax.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from inglenook.storage.database import Database
from inglenook.storage.match_query import quoted

_SNIPPET_BEFORE, _SNIPPET_LENGTH = 30, 120
_TRIGRAM = 3


Where = Literal["everywhere", "titles", "messages"]
Author = Literal["anyone", "user", "assistant"]
Kept = Literal["everywhere", "chats", "archive", "pinned"]


@dataclass(frozen=True, slots=True)
class SearchFilter:
    """What a search is confined to: titles or messages, whose messages, what is kept where, one folder, since when.

    `folder` None is every folder and none; "" is outside of folders. `since_ms` is a time of the Unix epoch.
    """

    where: Where = "everywhere"
    author: Author = "anyone"
    kept: Kept = "everywhere"
    folder: str | None = None
    since_ms: int = 0

    def condition(self) -> tuple[str, tuple[object, ...]]:
        """Return what SQL confines `conversations c` to, with its parameters; never the trash."""
        parts, parameters = ["c.trashed_at_ms IS NULL"], []
        kept = {
            "chats": "c.archived_at_ms IS NULL",
            "archive": "c.archived_at_ms IS NOT NULL",
            "pinned": "c.pinned_at_ms IS NOT NULL",
        }
        if self.kept in kept:
            parts.append(kept[self.kept])
        if self.folder is not None:
            parts.append("c.folder = ?")
            parameters.append(self.folder)
        return " AND ".join(parts), tuple(parameters)


NO_FILTER = SearchFilter()


@dataclass(frozen=True, slots=True)
class ConversationHit:
    """A conversation that was found: by its title (`message_id` is None) or by a message, with the words around the hit.

    `is_archived`: it was put away.
    """

    conversation_id: int
    title: str
    message_id: int | None = None
    snippet: str = ""
    is_archived: bool = False


def search_conversations(
    db: Database, text: str, only: SearchFilter = NO_FILTER, *, limit: int = 200
) -> list[ConversationHit]:
    """Return what is found, titles first, then messages, the newest first; one hit a conversation.

    Conversations in the trash are left out. Messages of every version are searched, shown or not.
    """
    words = text.casefold().split()
    if not words:
        return []
    hits: dict[int, ConversationHit] = {}
    for conversation_id, title, is_archived in _titles(db, only) if only.where != "messages" else ():
        if len(hits) < limit and all(word in title.casefold() for word in words):
            hits[conversation_id] = ConversationHit(conversation_id, title, is_archived=bool(is_archived))
    for message_id, conversation_id, said, title, is_archived in (
        _messages(db, words, only) if only.where != "titles" else ()
    ):
        if len(hits) >= limit:
            break
        if conversation_id not in hits and all(word in said.casefold() for word in words):
            snippet = _snippet(said, words)
            hits[conversation_id] = ConversationHit(
                conversation_id, title, message_id, snippet, bool(is_archived)
            )
    return list(hits.values())


def _titles(db: Database, only: SearchFilter) -> list[tuple[int, str, int]]:
    condition, parameters = only.condition()
    rows = db.rows(
        f"SELECT c.id, c.title, c.archived_at_ms IS NOT NULL FROM conversations c WHERE {condition} "
        "AND (? = 0 OR EXISTS (SELECT 1 FROM messages m WHERE m.conversation_id = c.id AND m.created_at_ms >= ?)) "
        "ORDER BY c.activity DESC, c.id DESC",
        (*parameters, only.since_ms, only.since_ms),
    )
    return [(row[0], row[1], row[2]) for row in rows]


def _messages(db: Database, words: list[str], only: SearchFilter) -> list[tuple[int, int, str, str, int]]:
    """Return messages that may hold all words: id, conversation, text, its title, whether it is archived."""
    columns = "m.id, m.conversation_id, m.text, c.title, c.archived_at_ms IS NOT NULL"
    condition, parameters = only.condition()
    condition += " AND m.created_at_ms >= ?"
    parameters = (*parameters, only.since_ms)
    if only.author != "anyone":
        condition += " AND m.role = ?"
        parameters = (*parameters, only.author)
    indexed = [word for word in words if len(word) >= _TRIGRAM]
    if indexed:
        rows = db.rows(
            f"SELECT {columns} FROM message_trigrams t JOIN messages m ON m.id = t.rowid "
            "JOIN conversations c ON c.id = m.conversation_id "
            f"WHERE message_trigrams MATCH ? AND {condition} ORDER BY m.id DESC LIMIT 5000",
            (" AND ".join(quoted(word) for word in indexed), *parameters),
        )
    else:
        rows = db.rows(
            f"SELECT {columns} FROM messages m JOIN conversations c ON c.id = m.conversation_id "
            f"WHERE {condition} AND m.status <> 'streaming' ORDER BY m.id DESC LIMIT 20000",
            parameters,
        )
    return [(row[0], row[1], row[2], row[3], row[4]) for row in rows]


def _snippet(text: str, words: list[str]) -> str:
    """Return one line of the text around the first word."""
    line = " ".join(text.split())
    place = min((found for word in words if (found := line.casefold().find(word)) >= 0), default=0)
    begin = max(0, place - _SNIPPET_BEFORE)
    if begin:
        begin = line.rfind(" ", 0, begin) + 1 or begin
    cut = line[begin : begin + _SNIPPET_LENGTH]
    return ("…" if begin else "") + cut + ("…" if begin + _SNIPPET_LENGTH < len(line) else "")
