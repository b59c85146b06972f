"""Blocks of a sequence over groups, prefixes and copies."""

import pytest

from inglenook.engine.kv_blocks import BlockCopy, KVBlocks
from inglenook.engine.kv_cache import BLOCK_SIZE as B

TEXT = list(range(10 * B))


def kv(num_blocks=12, windows=(0,)):
    return KVBlocks(windows, (num_blocks,) * len(windows), "model")


def computed(blocks, tokens, *, owner="me", salt=""):
    """Tables of a sequence whose tokens are all computed."""
    tables = blocks.new_tables()
    assert blocks.reserve(tables, len(tokens))
    blocks.commit(tables, tokens, len(tokens), salt=salt, owner=owner)
    return tables


def end(blocks, tables, tokens, *, owner="me", salt=""):
    blocks.release(tables, tokens, len(tokens), salt=salt, owner=owner)


@pytest.mark.parametrize("length", [1, B - 1, B, B + 1, 2 * B, 2 * B + 5])
def test_the_same_prompt_again_hits_all_tokens_but_the_last(length):
    blocks = kv()
    end(blocks, computed(blocks, TEXT[:length]), TEXT[:length])

    hit = blocks.match(tables := blocks.new_tables(), TEXT[:length])

    assert hit == length - 1
    assert len(tables.groups[0]) == -(-hit // B)
    blocks.integrity()


def test_a_longer_prompt_hits_exactly_what_was_computed():
    blocks = kv()
    end(blocks, computed(blocks, TEXT[: B + 5]), TEXT[: B + 5])

    assert blocks.match(blocks.new_tables(), TEXT[: 3 * B]) == B + 5


def test_a_prompt_that_leaves_the_text_early_hits_up_to_there():
    blocks = kv()
    end(blocks, computed(blocks, TEXT[: 3 * B]), TEXT[: 3 * B])

    assert blocks.match(blocks.new_tables(), [*TEXT[: B + 3], -1, -1, -1]) == B + 3


def test_whole_blocks_are_shared_and_a_part_is_copied():
    blocks = kv()
    first = computed(blocks, TEXT[: B + 5])
    source = first.groups[0][1]
    end(blocks, first, TEXT[: B + 5])

    blocks.match(a := blocks.new_tables(), TEXT[: 2 * B])
    blocks.match(b := blocks.new_tables(), TEXT[: 2 * B])

    assert a.groups[0][0] == b.groups[0][0]
    assert blocks.take_copies() == [
        BlockCopy(0, source, a.groups[0][1]),
        BlockCopy(0, source, b.groups[0][1]),
    ]
    assert blocks.pools[0].num_live == 3


def test_blocks_handed_out_again_are_no_longer_found():
    blocks = kv(num_blocks=3)
    end(blocks, computed(blocks, TEXT[: 2 * B]), TEXT[: 2 * B])
    other = [-t - 1 for t in TEXT[: 3 * B]]
    end(blocks, computed(blocks, other), other)

    assert blocks.match(blocks.new_tables(), TEXT[: 3 * B]) == 0


def test_the_tail_of_a_text_is_given_up_before_its_beginning():
    blocks = kv(num_blocks=4)
    end(blocks, computed(blocks, TEXT[: 4 * B]), TEXT[: 4 * B])
    computed(blocks, [-1] * (2 * B))

    assert blocks.match(blocks.new_tables(), TEXT[: 4 * B]) >= 2 * B - 1


def test_a_salt_keeps_prefixes_apart():
    blocks = kv()
    end(blocks, computed(blocks, TEXT[: 2 * B], salt="a"), TEXT[: 2 * B], salt="a")

    assert blocks.match(blocks.new_tables(), TEXT[: 2 * B], "b") == 0
    assert blocks.match(blocks.new_tables(), TEXT[: 2 * B], "") == 0
    assert blocks.match(blocks.new_tables(), TEXT[: 2 * B], "a") == 2 * B - 1


def test_a_forgotten_owners_text_is_not_found_and_its_free_blocks_are_named():
    blocks = kv()
    running = computed(blocks, TEXT[:B])
    other = [-t - 1 for t in TEXT[:B]]
    tables = computed(blocks, other)
    freed = tables.groups[0][0]
    end(blocks, tables, other)

    assert blocks.forget("me") == [(0, freed)]

    assert blocks.match(blocks.new_tables(), [*TEXT[:B], 0]) == 0
    assert running.groups[0][0] not in [block for _, block in blocks.forget("me")]


def test_a_fork_shares_whole_blocks_and_copies_the_last_part():
    blocks = kv()
    tables = computed(blocks, TEXT[: B + 3])

    other = blocks.fork(tables, B + 3)

    assert other.groups[0][0] == tables.groups[0][0]
    assert blocks.take_copies() == [BlockCopy(0, tables.groups[0][1], other.groups[0][1])]
    assert blocks.pools[0].num_live == 3


def test_reserving_too_much_changes_nothing():
    blocks = kv(num_blocks=2)
    tables = blocks.new_tables()

    assert not blocks.reserve(tables, 2 * B + 1)

    assert (tables.groups, blocks.num_free) == ([[]], 2)


class TestWindow:
    """A model with a full group and one whose layers see 20 tokens."""

    def test_blocks_that_no_later_token_sees_are_given_back(self):
        blocks = kv(windows=(0, 20))
        tables = computed(blocks, TEXT[: 4 * B])

        assert [block >= 0 for block in tables.groups[1]] == [False, False, True, True]
        assert all(block >= 0 for block in tables.groups[0])
        assert blocks.pools[1].num_live == 2

    def test_a_hit_needs_only_what_the_next_token_sees(self):
        blocks = kv(windows=(0, 20))
        end(blocks, computed(blocks, TEXT[: 4 * B]), TEXT[: 4 * B])

        hit = blocks.match(tables := blocks.new_tables(), TEXT[: 5 * B])

        assert hit == 4 * B
        assert [block >= 0 for block in tables.groups[1]] == [False, False, True, True]

    def test_a_shorter_prompt_is_not_hit_where_its_window_is_gone(self):
        blocks = kv(num_blocks=40, windows=(0, 20))
        tables, tokens = blocks.new_tables(), TEXT[: 4 * B]
        for number in range(1, 5):
            assert blocks.reserve(tables, number * B)
            blocks.commit(tables, tokens, number * B, salt="", owner="")
        end(blocks, tables, tokens)
        for block in range(40):
            if blocks.pools[1].is_free(block) and block not in (tables.groups[1] or [None]):
                entry = next((e for e in blocks.indexes[1].entries() if e.block == block), None)
                if entry is not None and entry.tokens[0] < 2 * B:
                    blocks.indexes[1].discard(block)

        assert blocks.match(blocks.new_tables(), TEXT[: 2 * B + 1]) == 0
        assert blocks.match(blocks.new_tables(), TEXT[: 4 * B + 1]) == 4 * B
