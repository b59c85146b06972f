"""Looks for conversations by what their titles and messages say, in any script, letter case aside.

Every word has to occur: all in the title, or all in one message. Words of three letters and more are looked up in the
trigram index and then compared; shorter ones are compared alone. What the user types is never FTS5 syntax.
"""

from __future__ import annotations

from dataclasses import dataclass

from inglenook.storage.database import Database
from inglenook.storage.match_query import quoted

_SNIPPET_BEFORE, _SNIPPET_LENGTH = 30, 120
_TRIGRAM = 3


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


def search_conversations(db: Database, text: str, *, limit: int = 200) -> list[ConversationHit]:
    """Return what is found, titles first, then messages, the newest first; one hit a conversation.

    Conversations in the trash are left out.
    """
    words = text.casefold().split()
    if not words:
        return []
    hits: dict[int, ConversationHit] = {}
    for row in db.rows(
        "SELECT id, title, archived_at_ms IS NOT NULL FROM conversations WHERE trashed_at_ms IS NULL "
        "ORDER BY activity DESC, id DESC"
    ):
        if len(hits) < limit and all(word in row[1].casefold() for word in words):
            hits[row[0]] = ConversationHit(row[0], row[1], is_archived=bool(row[2]))
    for row in _messages(db, words):
        if len(hits) >= limit:
            break
        if row[1] not in hits and all(word in row[2].casefold() for word in words):
            snippet = _snippet(row[2], words)
            hits[row[1]] = ConversationHit(row[1], row[3], row[0], snippet, bool(row[4]))
    return list(hits.values())


def _messages(db: Database, words: list[str]) -> list[tuple[int, int, str, str, int]]:
    """Return messages that may hold all words: id, conversation, text, its title, whether it is archived."""
    columns = "m.id, m.conversation_id, m.text, c.title, c.archived_at_ms IS NOT NULL"
    indexed = [word for word in words if len(word) >= _TRIGRAM]
    if indexed:
        rows = db.rows(
            f"SELECT {columns} FROM message_trigrams t JOIN messages m ON m.id = t.rowid "
            "JOIN conversations c ON c.id = m.conversation_id "
            "WHERE message_trigrams MATCH ? AND c.trashed_at_ms IS NULL ORDER BY m.id DESC LIMIT 5000",
            (" AND ".join(quoted(word) for word in indexed),),
        )
    else:
        rows = db.rows(
            f"SELECT {columns} FROM messages m JOIN conversations c ON c.id = m.conversation_id "
            "WHERE c.trashed_at_ms IS NULL AND m.status <> 'streaming' ORDER BY m.id DESC LIMIT 20000"
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
