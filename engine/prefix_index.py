"""`PrefixIndex`: which blocks hold the keys and values of which beginning of a text. Pure Python.

Blocks of a sequence form a hash chain: a block's hash covers its parent's hash and its own tokens, and the first
parent is the namespace (everything that keys and values depend on besides the tokens). A hit also compares the tokens,
so a collision cannot hand over wrong keys. Full blocks are found by hash; the last, partly filled block of a sequence,
and blocks that share only some of their first tokens with a prompt, are found as children of the parent's hash, so
that a hit is exact to the token (that block is then copied, not shared).

The index holds no references: it remembers blocks that the pool may hand out again, and is told when that happens.
vLLM and ExLlamaV3 chain hashes in this way.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b

from inglenook.engine.kv_cache import BLOCK_SIZE

_MAX_CHILDREN = 32  # blocks compared for a partial hit; more siblings than that are rare and hit less


@dataclass(frozen=True, slots=True)
class Entry:
    """A remembered block: its tokens (1 to BLOCK_SIZE), its place in the chain, and who they belong to."""

    block: int
    tokens: tuple[int, ...]
    parent: bytes
    digest: bytes
    owner: str


def chain_hash(parent: bytes, tokens: Sequence[int]) -> bytes:
    """Return the hash of a block from its parent's hash and its own tokens."""
    return blake2b(array("q", tokens).tobytes(), digest_size=16, key=parent).digest()


class PrefixIndex:
    """Remembers blocks by the text they hold."""

    def __init__(self, namespace: str) -> None:
        self.root = blake2b(namespace.encode(), digest_size=16).digest()
        self._by_digest: dict[bytes, Entry] = {}
        self._by_block: dict[int, Entry] = {}
        self._children: dict[bytes, dict[int, Entry]] = {}

    def __len__(self) -> int:
        return len(self._by_block)

    def __contains__(self, block: int) -> bool:
        return block in self._by_block

    def match(self, token_ids: Sequence[int], root: bytes | None = None) -> list[Entry]:
        """Return the full blocks that hold the beginning of `token_ids`, first to last."""
        parent, found = root or self.root, []
        for start in range(0, len(token_ids) - BLOCK_SIZE + 1, BLOCK_SIZE):
            tokens = tuple(token_ids[start : start + BLOCK_SIZE])
            entry = self._by_digest.get(chain_hash(parent, tokens))
            if entry is None or entry.tokens != tokens:
                break
            found.append(entry)
            parent = entry.digest
        return found

    def match_partial(self, token_ids: Sequence[int], parent: bytes) -> tuple[Entry | None, int]:
        """Return the child of `parent` that shares most first tokens with `token_ids`, and how many; (None, 0)."""
        best, shared = None, 0
        for entry in self._children.get(parent, {}).values():
            count = 0
            for mine, theirs in zip(token_ids, entry.tokens, strict=False):
                if mine != theirs:
                    break
                count += 1
            if count > shared:
                best, shared = entry, count
        return best, shared

    def find(self, digest: bytes) -> Entry | None:
        """Return the full block of that hash."""
        return self._by_digest.get(digest)

    def add(self, block: int, tokens: Sequence[int], parent: bytes, owner: str) -> bytes:
        """Remember a block whose keys and values are written; returns its hash.

        A full block whose text is known already is not remembered twice. A block remembered with fewer tokens is
        remembered anew.
        """
        tokens = tuple(tokens)
        digest = chain_hash(parent, tokens)
        known = self._by_digest.get(digest)
        if known is not None and known.block != block:
            return digest
        self.discard(block)
        siblings = self._children.setdefault(parent, {})
        if len(siblings) >= _MAX_CHILDREN and len(tokens) < BLOCK_SIZE:
            return digest
        entry = Entry(block, tokens, parent, digest, owner)
        self._by_block[block] = entry
        siblings[block] = entry
        if len(tokens) == BLOCK_SIZE:
            self._by_digest[digest] = entry
        return digest

    def discard(self, block: int) -> None:
        """Forget a block; unknown ones are ignored."""
        entry = self._by_block.pop(block, None)
        if entry is None:
            return
        if self._by_digest.get(entry.digest) is entry:
            del self._by_digest[entry.digest]
        siblings = self._children[entry.parent]
        del siblings[block]
        if not siblings:
            del self._children[entry.parent]

    def blocks_of(self, owner: str) -> list[int]:
        """Return all remembered blocks of an owner."""
        return [block for block, entry in self._by_block.items() if entry.owner == owner]

    def entries(self) -> Iterator[Entry]:
        """Iterate over all remembered blocks."""
        return iter(self._by_block.values())
