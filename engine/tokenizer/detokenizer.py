"""`Detokenizer`: token ids to text as they come, byte-exact.

Tokens are pieces of bytes, and a character may be split over several. Bytes are collected until a code point is whole;
bytes that can no longer become one turn into U+FFFD just as `bytes.decode("utf-8", "replace")` would have it, so the
pieces joined are always the decoded bytes joined.
"""

from __future__ import annotations

import codecs
from collections.abc import Callable


class Detokenizer:
    """The text of one completion. `token_bytes` gives a token's bytes; control tokens have none.

    With `strip_space`, one space that opens the text is dropped: SentencePiece vocabularies put it before every
    first word.
    """

    def __init__(self, token_bytes: Callable[[int], bytes], *, strip_space: bool = False) -> None:
        self._token_bytes = token_bytes
        self._strip_space = strip_space
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def feed(self, token_id: int) -> str:
        """Take the next token; returns the characters that are complete now."""
        piece = self._token_bytes(token_id)
        if piece and self._strip_space:
            self._strip_space = False
            piece = piece.removeprefix(b" ")
        return self._decoder.decode(piece)

    def flush(self) -> str:
        """End the text: bytes of an unfinished character become U+FFFD."""
        return self._decoder.decode(b"", final=True)
