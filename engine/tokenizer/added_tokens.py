"""`AddedTokens`: finds the tokens that are matched whole in a text, but only where a template may have put them.

A prompt travels as two strings of equal length: the text, and the text "shielded", in which every character that a
person typed or a document held is U+FFFF. Tokens are looked for in the shielded text, so none can match what was
typed, not even half of it. White space is never shielded: tokens made of nothing else are ordinary text.

The rules are those of the `tokenizers` library: leftmost and longest first; tokens that are not "normalized" are
matched before the others; `single_word`, `lstrip` and `rstrip` look at the real text around a match.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

SHIELD = "\uffff"
_WORD = re.compile(r"\w")
_SPACES = "\u2581"  # SentencePiece's way to write a space
_NOT_BLANK = re.compile(rf"[^\s{_SPACES}]+")


@dataclass(frozen=True, slots=True)
class AddedToken:
    """A token that is matched whole; `special` ones are control tokens, the others have a text of their own."""

    id: int
    content: str
    special: bool
    lstrip: bool = False
    rstrip: bool = False
    single_word: bool = False
    normalized: bool = False

    @property
    def is_text(self) -> bool:
        """Whether it is white space that stays ordinary text wherever it stands."""
        return not self.special and is_blank(self.content)


@dataclass(frozen=True, slots=True)
class Piece:
    """A stretch of a text: one token, or (`token_id` None) text to encode. `opens` after a token or at the start."""

    start: int
    end: int
    token_id: int | None
    opens: bool


def is_blank(text: str) -> bool:
    """Whether a text holds white space only, also as SentencePiece writes it."""
    return all(c.isspace() or c in _SPACES for c in text)


def shield(text: str) -> str:
    """Shield a whole text: no token but white space can match in it."""
    return _NOT_BLANK.sub(lambda run: SHIELD * len(run.group()), text)


class AddedTokens:
    """All added tokens of a vocabulary.

    `normalize` is the vocabulary's normaliser. A "normalized" token is normalised like the text it is looked for in;
    with SentencePiece's prefix space that means it matches only after a space, which it takes with it.
    """

    def __init__(self, tokens: Iterable[AddedToken], normalize: Callable[[str], str] = str) -> None:
        # What is blank and special could match in typed text; no template needs it.
        self.tokens = tuple(
            t
            for t in tokens
            if t.content and SHIELD not in t.content and not (t.special and is_blank(t.content))
        )
        self._raw = _Table(t for t in self.tokens if not t.normalized)
        self._normalized = _Table(t for t in self.tokens if t.normalized)
        self._after_space = frozenset(
            t.id for t in self.tokens if t.normalized and normalize(t.content) == _SPACES + t.content
        )

    def split(self, text: str, shielded: str) -> Iterator[Piece]:
        """Split a text into tokens and the text between them, in order and without gaps."""
        for piece in self._pass(self._raw, text, shielded, 0, len(text)):
            if piece.token_id is not None:
                yield piece
            else:
                yield from self._pass(self._normalized, text, shielded, piece.start, piece.end)

    def _pass(self, table: _Table, text: str, shielded: str, start: int, end: int) -> Iterator[Piece]:
        cursor = start
        for token, match_start, match_end in table.find(shielded, start, end):
            if match_start < cursor:  # taken by the white space after the last token
                continue
            if token.single_word and (
                (match_start > start and _WORD.match(text, match_start - 1))
                or (match_end < end and _WORD.match(text, match_end))
            ):
                continue
            opens = cursor == start
            if token.id in self._after_space and match_start > start:
                if text[match_start - 1] not in (" ", _SPACES) or match_start - 1 < cursor:
                    continue
                if match_start - 1 > start:
                    match_start -= 1
                else:
                    opens = False  # it takes the space put before the text, and leaves the text's own
            if token.lstrip:
                while match_start > cursor and text[match_start - 1].isspace():
                    match_start -= 1
            if token.rstrip:
                while match_end < end and text[match_end].isspace():
                    match_end += 1
            if cursor < match_start:
                yield Piece(cursor, match_start, None, opens)
            yield Piece(match_start, match_end, token.id, opens=False)
            cursor = match_end
        if cursor < end:
            yield Piece(cursor, end, None, cursor == start)


class _Table:
    """Leftmost-longest search for a set of tokens: candidates by first character, then by length."""

    def __init__(self, tokens: Iterable[AddedToken]) -> None:
        self._tokens = {token.content: token for token in tokens}
        self._lengths: dict[str, list[int]] = {}
        for content in self._tokens:
            lengths = self._lengths.setdefault(content[0], [])
            if len(content) not in lengths:
                lengths.append(len(content))
        for lengths in self._lengths.values():
            lengths.sort(reverse=True)
        first = "".join(re.escape(c) for c in self._lengths)
        self._first = re.compile(f"[{first}]") if first else None

    def find(self, shielded: str, start: int, end: int) -> Iterator[tuple[AddedToken, int, int]]:
        if self._first is None:
            return
        at = start
        while candidate := self._first.search(shielded, at, end):
            at = candidate.start()
            for length in self._lengths[candidate.group()]:
                token = self._tokens.get(shielded[at : at + length]) if at + length <= end else None
                if token is not None:
                    yield token, at, at + length
                    at += length
                    break
            else:
                at += 1
