"""Messages to the processes of other cards: what is sent is what is read, and a broken stream is an end."""

import io

import numpy as np
import torch
from random_models import Steps, small_spec

from inglenook.engine.cards.rank_frames import RankMessage, batch_of, read_message, step_message


def test_a_step_is_read_as_it_was_sent_after_whatever_came_before() -> None:
    spec = small_spec()
    batch = Steps(spec, 2, 3).batch({2: 20, 0: 1}, wants_all=True)
    stream = io.BytesIO(RankMessage("load", facts={"path": "ä"}).encode() + step_message(batch).encode())

    first, second = read_message(stream), read_message(stream)

    assert first is not None
    assert second is not None
    assert (first.kind, first.facts) == ("load", {"path": "ä"})
    read = batch_of(second)
    for name in ("token_ids", "positions", "query_starts", "context_lengths", "logits_rows"):
        ours, theirs = getattr(batch, name), getattr(read, name)
        assert ours.dtype == theirs.dtype
        assert torch.equal(ours, theirs), name
    assert len(read.groups) == 2
    for ours, theirs in zip(batch.groups, read.groups, strict=True):
        assert torch.equal(ours.block_tables, theirs.block_tables)
        assert torch.equal(ours.slots, theirs.slots)
    assert read_message(stream) is None


def test_empty_arrays_and_pairs_keep_their_shapes() -> None:
    message = RankMessage(
        "copy", (np.array([1]), np.array([[3, 4], [5, 6]]), np.zeros((0, 2), dtype=np.int64))
    )

    read = read_message(io.BytesIO(message.encode()))

    assert read is not None
    assert [a.tolist() for a in read.arrays] == [[1], [[3, 4], [5, 6]], []]
    assert read.arrays[2].shape == (0, 2)


def test_a_stream_that_ends_inside_a_message_is_an_end() -> None:
    whole = RankMessage("allocate", (np.array([7, 8]),)).encode()

    assert all(read_message(io.BytesIO(whole[:cut])) is None for cut in range(len(whole)))
