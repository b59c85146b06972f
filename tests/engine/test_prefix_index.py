"""Finding blocks by the tokens before them."""

import pytest

from inglenook.engine import prefix_index
from inglenook.engine.kv_cache import BLOCK_SIZE
from inglenook.engine.prefix_index import PrefixIndex

TEXT = list(range(100, 100 + 3 * BLOCK_SIZE))
FIRST, SECOND = TEXT[:BLOCK_SIZE], TEXT[BLOCK_SIZE : 2 * BLOCK_SIZE]


def index_of_two_blocks():
    index = PrefixIndex("model")
    parent = index.add(7, FIRST, index.root, "me")
    index.add(3, SECOND, parent, "me")
    return index


@pytest.mark.parametrize(
    ("length", "found"),
    [
        (0, 0),
        (BLOCK_SIZE - 1, 0),
        (BLOCK_SIZE, 1),
        (BLOCK_SIZE + 1, 1),
        (2 * BLOCK_SIZE, 2),
        (3 * BLOCK_SIZE, 2),
    ],
)
def test_whole_blocks_of_the_beginning_are_found(length, found):
    entries = index_of_two_blocks().match(TEXT[:length])

    assert [e.block for e in entries] == [7, 3][:found]


def test_the_same_tokens_behind_another_beginning_are_not_found():
    index = index_of_two_blocks()

    assert index.match(SECOND) == []
    assert len(index.match([0, *TEXT[1:]])) == 0


def test_another_namespace_finds_nothing():
    index = index_of_two_blocks()

    assert index.match(TEXT, PrefixIndex("model with adapter").root) == []


def test_a_hash_collision_does_not_hand_over_wrong_keys(monkeypatch):
    monkeypatch.setattr(prefix_index, "chain_hash", lambda parent, tokens: b"the same for all")
    index = PrefixIndex("model")
    index.add(7, FIRST, index.root, "me")

    assert index.match(SECOND) == []


def test_the_longest_shared_beginning_of_a_block_is_found():
    index = index_of_two_blocks()
    parent = index.match(FIRST)[0].digest
    index.add(9, SECOND[:5], parent, "me")

    entry, shared = index.match_partial([*SECOND[:7], -1], parent)

    assert (entry.block, shared) == (3, 7)
    assert index.match_partial([-1], parent) == (None, 0)


def test_a_block_handed_out_again_is_forgotten_and_its_followers_stay_unreachable():
    index = index_of_two_blocks()

    index.discard(7)

    assert index.match(TEXT) == []
    assert 3 in index


def test_a_text_known_already_is_not_remembered_twice():
    index = index_of_two_blocks()

    index.add(5, FIRST, index.root, "you")

    assert index.match(FIRST)[0].block == 7
    assert 5 not in index


def test_blocks_are_found_by_their_owner():
    index = index_of_two_blocks()
    index.add(5, SECOND, index.root, "you")

    assert sorted(index.blocks_of("me")) == [3, 7]
    assert index.blocks_of("you") == [5]
