"""Parts a reply into what the model thought and what it answers.

A thought stands between tags at the beginning of the reply, or between tags that begin a line further on; code and
tags that are only spoken of are text. Where the prompt has the first tag, the reply begins inside the thought. One
that never ends is kept, and said to be open. Pure; a text that grows gives the same in the end as the whole.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property

PAIRS = (
    ("<think>", "</think>"),
    ("<thinking>", "</thinking>"),
    ("<thought>", "</thought>"),
    ("<thoughts>", "</thoughts>"),
    ("<reasoning>", "</reasoning>"),
    ("<reason>", "</reason>"),
    ("[THINK]", "[/THINK]"),
    ("<seed:think>", "</seed:think>"),
    ("◁think▷", "◁/think▷"),
    ("<|begin_of_thought|>", "<|end_of_thought|>"),
    ("<|START_THINKING|>", "<|END_THINKING|>"),
    ("<|channel>thought", "<channel|>"),
)

_ENDS = {begin.lower(): end for begin, end in PAIRS}
_LONGEST_TAG = max(len(tag) for pair in PAIRS for tag in pair)
# One class of first characters, so that a long text without any is passed over fast.
_REST = "|".join(sorted({re.escape(tag[1:]) for pair in PAIRS for tag in pair}))
_ANY_TAG = re.compile(
    rf"[{re.escape(''.join({tag[0] for pair in PAIRS for tag in pair}))}](?:{_REST})", re.IGNORECASE
)
_BEGIN = "|".join(re.escape(begin) for begin, _ in PAIRS)
_FIRST = re.compile(rf"\s*({_BEGIN})", re.IGNORECASE)
# A fence of code, a tag that begins a line, or an end tag alone on one.
_MARK = re.compile(
    rf"^ {{0,3}}(?P<fence>`{{3,}}|~{{3,}})|^[ \t]*(?P<begin>{_BEGIN})"
    rf"|^[ \t]*(?P<end>{'|'.join(re.escape(end) for _, end in PAIRS)})[ \t]*$",
    re.IGNORECASE | re.MULTILINE,
)


@dataclass(frozen=True, slots=True)
class Piece:
    """The range `text[start:end]` of a reply, tags left out."""

    start: int
    end: int
    is_thought: bool


@dataclass(frozen=True)
class PartedReply:
    """A reply in pieces. `is_open`: its last thought has not ended, so there may be no answer yet."""

    text: str
    pieces: tuple[Piece, ...]
    is_open: bool = False

    @cached_property
    def thought(self) -> str:
        """All that was thought."""
        return "\n\n".join(self.text[p.start : p.end] for p in self.pieces if p.is_thought)

    @cached_property
    def answer(self) -> str:
        """All that was answered."""
        return "".join(self.text[p.start : p.end] for p in self.pieces if not p.is_thought)

    @property
    def has_thought(self) -> bool:
        """Whether there is a thought to fold; an empty pair of tags is none."""
        return self.is_open or any(piece.is_thought for piece in self.pieces)

    def answer_range(self, start: int, end: int) -> tuple[int, int] | None:
        """Return where `text[start:end]` stands in the answer; None where it is not of it."""
        before = 0
        for piece in self.pieces:
            if not piece.is_thought:
                if piece.start < end and start < piece.end:
                    first, last = max(start, piece.start), min(end, piece.end)
                    return before + first - piece.start, before + last - piece.start
                before += piece.end - piece.start
        return None


def may_have_tags(text: str, begin: int = 0) -> bool:
    """Say whether there is any tag of a thought in `text` from `begin` on, or from shortly before."""
    return _ANY_TAG.search(text, max(0, begin - _LONGEST_TAG)) is not None


def part_reply(text: str, *, end_tag: str = "", is_streaming: bool = False) -> PartedReply:
    """Part a reply; `end_tag` ends a thought that the prompt began, "" where the reply has the first tag itself.

    While it is streaming, the beginning of a tag is no text yet.
    """
    pieces: list[Piece] = []
    first = None if end_tag else _FIRST.match(text)
    if first is not None:
        place, tag = first.end(), _ENDS[first[1].lower()]
    elif end_tag:
        # Some models write the first tag although their prompt has it.
        again = _FIRST.match(text)
        place, tag = (again.end() if again else 0), end_tag
    else:
        if is_streaming and _is_beginning(text.strip()):
            return PartedReply(text, ())
        headless = _headless_end(text)
        if headless is None:
            place, tag = 0, ""
        else:
            pieces += _thought(text, 0, headless.start())
            place, tag = headless.end(), ""
    while tag:
        end = _find(text, tag, place)
        if end < 0:
            stop = len(text) - (_tail(text, tag) if is_streaming else 0)
            return PartedReply(text, (*pieces, *_thought(text, place, stop)), is_open=True)
        pieces += _thought(text, place, end)
        place, tag = _take_answer(text, end + len(tag), pieces, is_after_thought=True)
    if place < len(text):
        _take_answer(text, place, pieces, is_after_thought=bool(place))
    return PartedReply(text, tuple(pieces))


def with_thought_closed(text: str, end_tag: str = "") -> str:
    """Return a reply with the end of its thought where that is missing, so that a chat template can take it out."""
    if not part_reply(text, end_tag=end_tag).is_open:
        return text
    first = _FIRST.match(text)
    return f"{text}\n{end_tag or (_ENDS[first[1].lower()] if first else '')}\n"


def _take_answer(text: str, place: int, pieces: list[Piece], *, is_after_thought: bool) -> tuple[int, str]:
    """Add the answer from `place` up to the next thought; return where that begins and the tag that ends it."""
    if is_after_thought:
        # The empty lines after a thought are part of neither.
        while place < len(text) and text[place] in "\r\n \t":
            place += 1
    fence, begin = "", place
    endless: set[str] = set()
    for mark in _MARK.finditer(text, place) if may_have_tags(text, place) else ():
        if mark["fence"]:
            if not fence:
                fence = mark["fence"]
            elif mark["fence"][0] == fence[0] and len(mark["fence"]) >= len(fence):
                fence = ""
        elif mark["begin"] and not fence and mark.start() > place:
            tag = _ENDS[mark["begin"].lower()]
            if tag not in endless and _find(text, tag, mark.end()) >= 0:
                pieces.append(Piece(begin, mark.start(), False))
                return mark.end(), tag
            endless.add(tag)
    if begin < len(text):
        pieces.append(Piece(begin, len(text), False))
    return len(text), ""


def _headless_end(text: str) -> re.Match[str] | None:
    """An end tag alone on its line, outside code, that nothing began: what stands before it was thought."""
    if not may_have_tags(text):
        return None
    is_code = False
    for mark in _MARK.finditer(text):
        if mark["fence"]:
            is_code = not is_code
        elif mark["begin"]:
            return None
        elif mark["end"] and not is_code:
            return mark
    return None


def _thought(text: str, start: int, end: int) -> list[Piece]:
    while start < end and text[start].isspace():
        start += 1
    while end > start and text[end - 1].isspace():
        end -= 1
    return [Piece(start, end, True)] if end > start else []


def _find(text: str, tag: str, place: int) -> int:
    found = re.compile(re.escape(tag), re.IGNORECASE).search(text, place)
    return found.start() if found else -1


def _is_beginning(text: str) -> bool:
    return bool(text) and any(begin.startswith(text.lower()) for begin in _LOWER_BEGINS)


def _tail(text: str, tag: str) -> int:
    """How many of the last characters are the beginning of a tag."""
    lower, tag = text[-len(tag) :].lower(), tag.lower()
    return next((size for size in range(len(tag) - 1, 0, -1) if lower.endswith(tag[:size])), 0)


_LOWER_BEGINS = tuple(_ENDS)
