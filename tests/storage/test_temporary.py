"""A conversation in memory: ids of its own, sources of documents that are elsewhere, nothing on disk."""

from __future__ import annotations

from inglenook.storage.conversations import Conversations
from inglenook.storage.messages import Messages
from inglenook.storage.records import NewSource, Place
from inglenook.storage.sources import Sources
from inglenook.storage.temporary import FIRST_ID, is_temporary, note_documents, temporary_database


def test_ids_lie_above_those_of_the_history_and_differ_from_chat_to_chat() -> None:
    ids = []
    for number in (0, 1):
        with temporary_database(number) as db:
            conversation = Conversations(db).create("x")
            ids += [conversation, Messages(db).add(conversation, "user", "y", parent_id=None)]

    assert all(map(is_temporary, ids))
    assert ids[0] != ids[2]
    assert max(ids) < 2**31
    assert not is_temporary(FIRST_ID)
    assert not is_temporary(None)


def test_a_source_may_name_a_document_that_is_not_in_it() -> None:
    with temporary_database() as db:
        conversation = Conversations(db).create("x")
        reply = Messages(db).begin_reply(conversation, parent_id=None, model="", sampling={})
        source = NewSource(
            document_id=7, version_id=8, chunk_id=9, document_name="a.pdf",
            place=Place(page_index=0, page_label=None, char_start=0, char_end=4),
            quote="text", score=1.0, is_cited=True, answer_range=(0, 3),
        )  # fmt: skip

        note_documents(db, [7, 7])
        Sources(db).replace(reply, [source])

        (kept,) = Sources(db).of_message(reply)
        assert (kept.document_id, kept.document_name, kept.quote) == (7, "a.pdf", "text")
        Messages(db).delete(reply)
        assert Sources(db).of_message(reply) == []
