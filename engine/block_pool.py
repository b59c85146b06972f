"""`BlockPool`: which KV blocks are free and who holds the others. Pure Python; knows no tensor and no request.

A block is free (reference count 0, in the free list) or live (count above 0). The free list is in
least-recently-used order: the block freed longest ago is handed out first. Blocks of one owner are released in
reverse, so that the tail of a sequence is reused before its beginning.
"""

from __future__ import annotations

from collections import OrderedDict


class OutOfBlocksError(Exception):
    """There are fewer free blocks than asked for; nothing was allocated."""


class BlockPool:
    """Reference-counted block ids 0 .. num_blocks - 1."""

    def __init__(self, num_blocks: int) -> None:
        if num_blocks < 1:
            raise ValueError(f"a pool needs at least one block, got {num_blocks}")
        self.num_blocks = num_blocks
        self.num_used = 0  # blocks that were ever handed out: those whose memory the system had to find
        self._references = [0] * num_blocks
        self._withdrawn: set[int] = set()
        self._used = bytearray(num_blocks)
        self._free: OrderedDict[int, None] = OrderedDict.fromkeys(range(num_blocks))

    @property
    def num_free(self) -> int:
        """Blocks that can be allocated now."""
        return len(self._free)

    @property
    def num_live(self) -> int:
        """Blocks with at least one holder."""
        return self.num_blocks - len(self._free)

    def allocate(self, count: int) -> list[int]:
        """Hand out `count` blocks, each with one reference.

        Raises:
            OutOfBlocksError: fewer are free.
        """
        if count > len(self._free):
            raise OutOfBlocksError(
                f"{count} blocks asked for, {len(self._free)} of {self.num_blocks} are free"
            )
        blocks = []
        for _ in range(count):
            block, _ = self._free.popitem(last=False)
            self._references[block] = 1
            self.num_used += not self._used[block]
            self._used[block] = 1
            blocks.append(block)
        return blocks

    def acquire(self, block: int) -> None:
        """Add a reference to a block: a live one is shared, a free one whose contents are still good is revived."""
        if self._references[block] == 0:
            del self._free[block]
        self._references[block] += 1

    def is_free(self, block: int) -> bool:
        """Whether nobody holds the block."""
        return self._references[block] == 0

    def release(self, blocks: list[int]) -> None:
        """Drop one reference of each block, the last of the list first."""
        for block in reversed(blocks):
            assert self._references[block] > 0, f"block {block} is released twice"
            self._references[block] -= 1
            if self._references[block] == 0:
                self._free[block] = None

    def free_blocks(self) -> list[int]:
        """The free blocks, the one that is handed out next first."""
        return list(self._free)

    def mark_unused(self, blocks: list[int]) -> None:
        """Note that the memory of free blocks was given back to the system."""
        for block in blocks:
            assert self._references[block] == 0, f"block {block} is held"
            self.num_used -= self._used[block]
            self._used[block] = 0

    def withdraw(self, count: int) -> list[int]:
        """Take up to `count` free blocks, those freed longest ago first, out of the pool for good; returns them.

        One block stays.
        """
        blocks = self.free_blocks()[: max(0, min(count, self.num_blocks - 1))]
        self.mark_unused(blocks)
        for block in blocks:
            del self._free[block]
        self._withdrawn.update(blocks)
        self.num_blocks -= len(blocks)
        return blocks

    def integrity(self) -> None:
        """Check the promises.

        Raises:
            AssertionError: a count is negative, or counts, the free list and the notes of use disagree.
        """
        assert all(count >= 0 for count in self._references), "a reference count is below 0"
        free = {block for block, count in enumerate(self._references) if count == 0} - self._withdrawn
        assert self.num_used == sum(self._used), "used blocks are miscounted"
        assert all(self._used[block] for block, count in enumerate(self._references) if count), (
            "unused but held"
        )
        assert len(self._references) - len(self._withdrawn) == self.num_blocks, "blocks are missing"
        assert free == set(self._free), (
            f"free list and counts disagree on {sorted(free ^ set(self._free))[:8]}"
        )
