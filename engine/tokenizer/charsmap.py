"""`charsmap`: replacements of characters in the form that SentencePiece stores and `tokenizers` reads ("Precompiled").

u32 length of the trie, the trie, then the replacements, each ended by a zero byte. The trie is a double array (Aoe, 1989)
over the UTF-8 bytes of the characters, as Darts-clone lays it out: a unit is 32 bits; a node's unit holds its own byte in
bits 0-7, in bit 8 whether a character ends there, and from bit 10 on its base: the child by the byte b lies at base ^ b,
and the value, with bit 31 set, at base ^ 0. Bases are counted from the node itself, by exclusive or.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping

MAX_UNITS = 1 << 21  # what an offset can say without its second form

_SEARCHED = (
    1024  # only so far back is room looked for: the holes left are few, and finding them would take seconds
)
_ENDS, _VALUE = 1 << 8, 1 << 31

_Node = dict[int, "_Node | int"]


def charsmap(replacements: Mapping[str, str]) -> bytes:
    """Return the map of characters (or sequences of them) to what stands in for each, "" to leave it out.

    Raises:
        ValueError: a key is empty, a text has a zero byte, or there is too much for the format.
    """
    texts = bytearray()
    places: dict[str, int] = {}
    trie: _Node = {}
    for key, text in replacements.items():
        if not key or "\0" in key or "\0" in text:
            raise ValueError("a charsmap has no empty keys and no zero bytes")
        if text not in places:
            places[text] = len(texts)
            texts += text.encode() + b"\0"
        node = trie
        for byte in key.encode():
            child = node.setdefault(byte, {})
            assert isinstance(child, dict)
            node = child
        node[0] = places[text]
    units = _double_array(trie)
    return struct.pack(f"<I{len(units)}I", 4 * len(units), *units) + bytes(texts)


def _double_array(trie: _Node) -> list[int]:
    """Lay out a trie whose value under 0 is what a node stands for."""
    units = [0]
    is_taken = [True]
    bases: set[int] = set()
    first_free = 1
    waiting: list[tuple[int, _Node]] = [(0, trie)]
    while waiting:
        place, node = waiting.pop()
        while first_free < len(is_taken) and is_taken[first_free]:
            first_free += 1
        labels = sorted(node)
        # the lowest base, no node's yet, at which all children find room
        candidate = max(first_free, len(units) - _SEARCHED)
        base = candidate ^ labels[0] if labels else 0
        while base in bases or any(base ^ b < len(is_taken) and is_taken[base ^ b] for b in labels):
            candidate += 1
            base = candidate ^ labels[0]
        bases.add(base)
        most = max((base ^ b for b in labels), default=0)
        if most >= MAX_UNITS:
            raise ValueError(f"a charsmap has at most {MAX_UNITS:,} units; these replacements need more")
        while len(units) <= most:
            units.append(0)
            is_taken.append(False)
        units[place] |= (base ^ place) << 10
        for byte in labels:
            child, at = node[byte], base ^ byte
            is_taken[at] = True
            if isinstance(child, int):
                units[at] = _VALUE | child
                units[place] |= _ENDS
            else:
                units[at] = byte
                waiting.append((at, child))
    # a search may look up to 255 units further than the last one
    return units + [0] * (-len(units) % 256)
