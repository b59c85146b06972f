"""`KVBlocks`: the blocks of all sequences of one model: reserving, sharing by prefix, giving back. Pure Python.

Every KV group (layers that see the whole context, layers with one sliding window) has a pool, a prefix index and, in
each sequence, a block table of its own. Layers with a window give blocks back once no later token can see them; such
entries of a table are -1. A cached prefix of n tokens is usable when each group still holds what token n will see: all
n for the whole context, the last of them for a window.

Promises (checked by `integrity`): free + live == all blocks of a pool; a table's blocks are live; a block is
remembered only when its tokens are computed; cached tokens are at most the prompt's length - 1.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from inglenook.engine.block_pool import BlockPool
from inglenook.engine.kv_cache import BLOCK_SIZE, num_blocks_for
from inglenook.engine.prefix_index import PrefixIndex, chain_hash


@dataclass(slots=True, eq=False)
class BlockTables:
    """One sequence's blocks: a table for each KV group, and the hashes of its full blocks so far."""

    groups: list[list[int]] = field(default_factory=list)
    hashes: list[bytes] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class BlockCopy:
    """Copy block `source` to `destination` in KV group `group`, before the next step."""

    group: int
    source: int
    destination: int


class KVBlocks:
    """Block tables over one pool a group.

    windows: the sliding window of each group, 0 for the whole context.
    num_blocks: the size of each group's pool.
    namespace: everything that keys and values depend on besides the tokens.
    """

    def __init__(self, windows: tuple[int, ...], num_blocks: tuple[int, ...], namespace: str) -> None:
        self.windows = windows
        self.namespace = namespace
        self.pools = tuple(BlockPool(n) for n in num_blocks)
        self.indexes = tuple(PrefixIndex(namespace) for _ in num_blocks)
        self.copies: list[BlockCopy] = []  # to be done before the next step; the runner takes them

    @property
    def num_free(self) -> int:
        """Blocks that can be allocated in every group."""
        return min(pool.num_free for pool in self.pools)

    def new_tables(self) -> BlockTables:
        """Return empty tables."""
        return BlockTables([[] for _ in self.pools])

    def room(self, tables: BlockTables) -> int:
        """Return how many tokens the tables and the free blocks can hold together."""
        return min(
            (len(table) + pool.num_free) * BLOCK_SIZE
            for table, pool in zip(tables.groups, self.pools, strict=True)
        )

    def wanted(self, tables: BlockTables, num_tokens: int, step_tokens: int) -> int:
        """Return how many more blocks a sequence takes up to `num_tokens` tokens, in the group that takes most.

        step_tokens: the most that are computed at once; a window gives blocks back after each step.
        """
        counts = []
        for table, window in zip(tables.groups, self.windows, strict=True):
            count = num_blocks_for(num_tokens) - len(table)
            counts.append(min(count, num_blocks_for(window + step_tokens) + 1) if window else count)
        return max(0, *counts)

    def reserve(self, tables: BlockTables, num_tokens: int) -> bool:
        """Extend every group's table to hold `num_tokens` tokens; False, and nothing changed, when blocks lack."""
        missing = [num_blocks_for(num_tokens) - len(table) for table in tables.groups]
        if any(m > pool.num_free for m, pool in zip(missing, self.pools, strict=True)):
            return False
        for group, count in enumerate(missing):
            if count > 0:
                tables.groups[group] += self._allocate(group, count)
        return True

    def trim(self, tables: BlockTables, num_tokens: int) -> None:
        """Give back the blocks beyond those that hold `num_tokens` tokens: they were for drafts that were wrong."""
        keep = num_blocks_for(num_tokens)
        for pool, table in zip(self.pools, tables.groups, strict=True):
            pool.release([block for block in table[keep:] if block >= 0])
            del table[keep:]

    def match(self, tables: BlockTables, token_ids: list[int], salt: str = "") -> int:
        """Fill empty tables with blocks that hold a beginning of `token_ids`; returns how many tokens they hold.

        At most all tokens but the last. Whole blocks are shared; a last part of a block is copied, if a block is free.
        """
        usable = token_ids[:-1]
        chain = self._chain(usable, salt)
        count = len(chain)
        while count and not all(self._holds(group, chain, count) for group in range(len(self.pools))):
            count -= 1
        for group, (pool, index) in enumerate(zip(self.pools, self.indexes, strict=True)):
            first = self._first_seen(group, count * BLOCK_SIZE)
            blocks = [-1] * count
            for number in range(first, count):
                entry = index.find(chain[number])
                assert entry is not None
                pool.acquire(entry.block)
                blocks[number] = entry.block
            tables.groups[group] = blocks
        tables.hashes = chain[:count]
        return count * BLOCK_SIZE + self._match_partial(tables, usable, salt)

    def fork(self, tables: BlockTables, num_tokens: int) -> BlockTables | None:
        """Return tables of a second sequence with the same first `num_tokens` tokens; None when blocks lack.

        Full blocks are shared, the last part of a block is copied.
        """
        full = num_tokens // BLOCK_SIZE
        partial = num_tokens % BLOCK_SIZE > 0
        if partial and self.num_free < 1:
            return None
        other = BlockTables([table[:full] for table in tables.groups], tables.hashes[:full])
        for group, pool in enumerate(self.pools):
            for block in other.groups[group]:
                if block >= 0:
                    pool.acquire(block)
            if partial:
                [copy] = self._allocate(group, 1)
                self.copies.append(BlockCopy(group, tables.groups[group][full], copy))
                other.groups[group].append(copy)
        return other

    def commit(
        self, tables: BlockTables, token_ids: list[int], num_computed: int, *, salt: str, owner: str
    ) -> None:
        """Remember the full blocks of a sequence whose first `num_computed` tokens are computed now."""
        for number in range(len(tables.hashes), num_computed // BLOCK_SIZE):
            tokens = token_ids[number * BLOCK_SIZE : (number + 1) * BLOCK_SIZE]
            parent = tables.hashes[-1] if tables.hashes else self._root(salt)
            for group, index in enumerate(self.indexes):
                block = tables.groups[group][number]
                if block >= 0:
                    index.add(block, tokens, parent, owner)
            tables.hashes.append(chain_hash(parent, tokens))
        for group, window in enumerate(self.windows):
            if window:
                self._leave_window(tables, group, num_computed)

    def release(
        self, tables: BlockTables, token_ids: list[int], num_computed: int, *, salt: str, owner: str
    ) -> None:
        """Give all blocks back; what is computed stays findable until its blocks are handed out again."""
        if not tables.groups:
            return
        number, count = divmod(num_computed, BLOCK_SIZE)
        if count and len(tables.hashes) == number:
            parent = tables.hashes[-1] if tables.hashes else self._root(salt)
            tokens = token_ids[number * BLOCK_SIZE : num_computed]
            for group, index in enumerate(self.indexes):
                index.add(tables.groups[group][number], tokens, parent, owner)
        for group, pool in enumerate(self.pools):
            pool.release([block for block in tables.groups[group] if block >= 0])
        tables.groups = [[] for _ in self.pools]
        tables.hashes = []

    def forget(self, owner: str) -> list[tuple[int, int]]:
        """Make an owner's blocks unfindable; returns (group, block) whose contents the caller must overwrite.

        Blocks that a running sequence still uses are only made unfindable.
        """
        blank = []
        for group, (pool, index) in enumerate(zip(self.pools, self.indexes, strict=True)):
            for block in index.blocks_of(owner):
                index.discard(block)
                if pool.is_free(block):
                    pool.mark_unused([block])
                    blank.append((group, block))
        return blank

    def evict(self) -> list[tuple[int, int]]:
        """Make every block unfindable because memory is short; returns the free ones, for the caller to blank."""
        self.clear()
        for pool in self.pools:
            pool.mark_unused(pool.free_blocks())
        return [(group, block) for group, pool in enumerate(self.pools) for block in pool.free_blocks()]

    def withdraw(self, num_tokens: int) -> list[tuple[int, int]]:
        """Keep only as many blocks of each group as hold `num_tokens` tokens; returns those that are gone.

        A block that is held stays. The caller blanks what is returned.
        """
        gone = []
        for group, (pool, index) in enumerate(zip(self.pools, self.indexes, strict=True)):
            for block in pool.withdraw(pool.num_blocks - num_blocks_for(num_tokens)):
                index.discard(block)
                gone.append((group, block))
        return gone

    def clear(self) -> None:
        """Make every block unfindable (memory is short, or contents are in doubt)."""
        for index in self.indexes:
            for entry in list(index.entries()):
                index.discard(entry.block)

    def take_copies(self) -> list[BlockCopy]:
        """Return the copies to do before the next step, once."""
        copies, self.copies = self.copies, []
        return copies

    def integrity(self) -> None:
        """Check the pools' promises; see `BlockPool.integrity`."""
        for pool in self.pools:
            pool.integrity()

    def _root(self, salt: str) -> bytes:
        return chain_hash(self.indexes[0].root, list(salt.encode())) if salt else self.indexes[0].root

    def _chain(self, token_ids: list[int], salt: str) -> list[bytes]:
        """Hashes of the beginning's blocks, as far as any group could hold them."""
        return [entry.digest for entry in self.indexes[0].match(token_ids, self._root(salt))]

    def _first_seen(self, group: int, num_tokens: int) -> int:
        """The first block that the token at position `num_tokens` sees in a group."""
        window = self.windows[group]
        return max(0, num_tokens - window + 1) // BLOCK_SIZE if window else 0

    def _holds(self, group: int, chain: list[bytes], count: int) -> bool:
        index = self.indexes[group]
        return all(
            index.find(chain[n]) is not None
            for n in range(self._first_seen(group, count * BLOCK_SIZE), count)
        )

    def _match_partial(self, tables: BlockTables, token_ids: list[int], salt: str) -> int:
        """Copy the block that goes on furthest like the prompt; returns how many of its tokens count."""
        rest = token_ids[len(tables.hashes) * BLOCK_SIZE :][:BLOCK_SIZE]
        parent = tables.hashes[-1] if tables.hashes else self._root(salt)
        found = [index.match_partial(rest, parent) for index in self.indexes]
        shared = min(count for _, count in found)
        if not shared or self.num_free < 2:
            return 0
        for group, (entry, _) in enumerate(found):
            assert entry is not None
            # Held while a free block is chosen, so that the copy's source is not the block it goes to.
            self.pools[group].acquire(entry.block)
            [copy] = self._allocate(group, 1)
            self.pools[group].release([entry.block])
            self.copies.append(BlockCopy(group, entry.block, copy))
            tables.groups[group].append(copy)
        return shared

    def _leave_window(self, tables: BlockTables, group: int, num_computed: int) -> None:
        table = tables.groups[group]
        for number in range(min(self._first_seen(group, num_computed), len(table))):
            if table[number] >= 0:
                self.pools[group].release([table[number]])
                table[number] = -1

    def _allocate(self, group: int, count: int) -> list[int]:
        blocks = self.pools[group].allocate(count)
        for block in blocks:
            self.indexes[group].discard(block)
        return blocks
