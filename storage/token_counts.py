"""How many tokens the shown path of a conversation takes, as the engine counted them when each reply was written.

Only numbers and the beginnings of questions are read, so that a long conversation costs little.
"""

from __future__ import annotations

from dataclasses import dataclass

from inglenook.storage.database import Database
from inglenook.storage.messages import SHOWN_PATH

_BEGINNING = 120


@dataclass(frozen=True, slots=True)
class TurnCount:
    """One question with its reply. `prompt_tokens` is None where no engine counted; sizes in bytes of UTF-8.

    `prompt_tokens` covers all that the model read for this reply, the conversation before included.
    """

    question_id: int
    question: str
    reply_id: int
    prompt_tokens: int | None
    reply_tokens: int
    num_bytes: int


def turn_counts(db: Database, conversation_id: int) -> list[TurnCount]:
    """Return the turns on the shown path, oldest first; a question without a reply, or with an empty one, is none."""
    rows = db.rows(
        f"{SHOWN_PATH} SELECT id, role, substr(text, 1, ?), octet_length(text), prompt_tokens, "
        "length(token_ids), substr(token_ids, 1, 1) FROM messages WHERE id IN (SELECT id FROM shown) ORDER BY id",
        (conversation_id, _BEGINNING),
    )
    counts: list[TurnCount] = []
    question: tuple[int, str, int] | None = None
    for message_id, role, text, num_bytes, prompt_tokens, packed, width in rows:
        if role == "user":
            question = (message_id, " ".join(text.split()), num_bytes)
        elif role == "assistant" and question is not None and num_bytes:
            reply_tokens = (packed - 1) // width[0] if packed and 1 <= width[0] <= 4 else 0
            counts.append(
                TurnCount(*question[:2], message_id, prompt_tokens, reply_tokens, question[2] + num_bytes)
            )
            question = None
    return counts
