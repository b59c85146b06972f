"""Whose text the engine's caches hold, and dropping it there when it is deleted here. GUI thread only.

Each conversation is one owner, under one name. Which documents went into an owner's prompts is known exactly, because
the caches live no longer than this run of the program and every prompt of it passes here; so forgetting a document
drops the blocks of those conversations alone, whether or not their answers quoted it. Another version of a question
leaves the old one in the history, and so in the caches; a text that is overwritten or deleted goes from both. The
command line runs its own engine for one answer only, so 'documents forget' has no cache to drop.
"""

from __future__ import annotations

from collections.abc import Iterable

from inglenook.app.bridge import EngineBridge


class CachedText:
    """Names the owners of prompts and forgets them. GUI thread only."""

    def __init__(self, bridge: EngineBridge) -> None:
        self._bridge = bridge
        self._documents: dict[int, set[int]] = {}

    def owner(self, conversation_id: int, document_ids: Iterable[int] = ()) -> str:
        """Return the owner for a prompt of a conversation, which holds text of these documents."""
        self._documents.setdefault(conversation_id, set()).update(document_ids)
        return _name(conversation_id)

    def forget_conversation(self, conversation_id: int) -> None:
        """Drop a conversation's text; a reply that is being written there is cancelled."""
        self._documents.pop(conversation_id, None)
        self._bridge.forget(_name(conversation_id))

    def forget_document(self, document_id: int) -> None:
        """Drop the text of all conversations whose prompts held text of a document."""
        for conversation_id in [key for key, ids in self._documents.items() if document_id in ids]:
            self.forget_conversation(conversation_id)


def _name(conversation_id: int) -> str:
    return f"conversation:{conversation_id}"
