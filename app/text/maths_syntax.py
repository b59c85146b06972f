r"""Finds LaTeX in Markdown: `$x$`, `$$x$$`, `\(x\)`, `\[x\]`, in a line or as a block of its own.

Rules for markdown-it-py. Between single dollars there is maths only where nobody would write money: no space inside
the dollars, no letter or digit after them, and no words but those of formulas. Code is never looked into, and a
formula ends before an empty line. The tokens keep the source as it was typed, with its marks.
"""

from __future__ import annotations

import re

from markdown_it import MarkdownIt
from markdown_it.rules_block import StateBlock
from markdown_it.rules_inline import StateInline

MAX_CHARS = 2_000
MAX_LINES = 60

_MARKS = ((r"\(", r"\)", False), (r"\[", r"\]", True), ("$$", "$$", True))
_BLOCK_MARKS = {"$$": "$$", r"\[": r"\]"}
_COMMAND = re.compile(r"\\[A-Za-z]|[\\^_{}=<>]")
_WORD = re.compile(r"[^\W\d_]{3,}")
_SHORT_WORD = re.compile(r"[^\W\d_]{2,}")
_FUNCTIONS = frozenset(
    [
        "sin",
        "cos",
        "tan",
        "cot",
        "sec",
        "csc",
        "log",
        "exp",
        "lim",
        "max",
        "min",
        "sup",
        "inf",
        "det",
        "dim",
        "gcd",
        "lcm",
        "ker",
        "mod",
        "arg",
        "deg",
        "sinh",
        "cosh",
        "tanh",
    ]
)


def add_maths(parser: MarkdownIt) -> None:
    """Let a parser make tokens "maths_inline" and "maths_display", whose content is the source with its marks."""
    parser.inline.ruler.before("escape", "maths", _inline)
    parser.block.ruler.before("fence", "maths", _block, {"alt": ["paragraph", "blockquote", "list"]})


def latex_of(source: str) -> str:
    """Return what stands between the marks."""
    size = 1 if source.startswith("$") and not source.startswith("$$") else 2
    return source[size:-size].strip()


def is_formula(content: str) -> bool:
    """Say whether what stands between dollars is a formula rather than money and words between."""
    if _COMMAND.search(content):
        return True
    if content.isalpha() and len(content) < 4:
        return True
    # A sum of money may have a short word after it.
    words = (_SHORT_WORD if content[0].isdigit() else _WORD).findall(content)
    return all(word.lower() in _FUNCTIONS for word in words)


def _inline(state: StateInline, silent: bool) -> bool:
    source, start = state.src, state.pos
    if source[start] not in "$\\":
        return False
    found = next((mark for mark in _MARKS if source.startswith(mark[0], start)), None)
    if found is not None:
        opening, closing, is_display = found
        end = _closing(source, start + len(opening), closing)
    elif source[start] == "$":
        opening, is_display = "$", False
        end = _closing_dollar(source, start + 1)
    else:
        return False
    if end < 0 or (opening == "$$" and not is_formula(source[start + 2 : end - 2])):
        return False
    if not silent:
        token = state.push("maths_display" if is_display else "maths_inline", "", 0)
        token.content = source[start:end]
    state.pos = end
    return True


def _closing(source: str, begin: int, closing: str) -> int:
    """Where a formula that begins at `begin` ends, its mark included; -1 if it does not."""
    place, last = begin, min(len(source), begin + MAX_CHARS)
    while (place := source.find(closing, place, last)) >= 0:
        content = source[begin:place]
        if "`" in content or "\n\n" in content:
            return -1
        if _num_backslashes(source, place) % 2 == 0:
            return place + len(closing) if content.strip() else -1
        place += 1
    return -1


def _closing_dollar(source: str, begin: int) -> int:
    if begin >= len(source) or source[begin].isspace() or source[begin] == "$":
        return -1
    if begin > 1 and source[begin - 2].isalnum():
        # "US$5": the sign of a currency.
        return -1
    place, last = begin, min(len(source), begin + MAX_CHARS)
    while (place := source.find("$", place, last)) >= 0:
        content = source[begin:place]
        if "`" in content or "\n\n" in content:
            return -1
        after = source[place + 1 : place + 2]
        is_end = _num_backslashes(source, place) % 2 == 0 and not content[-1:].isspace()
        if is_end and not (after.isalnum() or after == "$") and content:
            return place + 1 if is_formula(content) else -1
        place += 1
    return -1


def _num_backslashes(source: str, place: int) -> int:
    """How many backslashes stand just before a place."""
    start = place
    while start > 0 and source[start - 1] == "\\":
        start -= 1
    return place - start


def _block(state: StateBlock, first: int, last: int, silent: bool) -> bool:
    if state.is_code_block(first):
        return False
    line = _line(state, first)
    closing = _BLOCK_MARKS.get(line[:2])
    if closing is None or len(line) > MAX_CHARS:
        return False
    end, size = first, 0
    if line.find(closing, 2) < 0:
        text = ""
        while closing not in text:
            end += 1
            text = _line(state, end) if end < min(last, first + MAX_LINES) else ""
            size += len(text)
            if not text or size > MAX_CHARS or state.sCount[end] < state.blkIndent:
                return False
    source = "\n".join(_line(state, number) for number in range(first, end + 1))
    if not source.endswith(closing) or source.find(closing, 2) != len(source) - 2 or not latex_of(source):
        return False
    if silent:
        return True
    token = state.push("maths_display", "", 0)
    token.content = source
    token.map = [first, end + 1]
    state.line = end + 1
    return True


def _line(state: StateBlock, number: int) -> str:
    return state.src[state.bMarks[number] + state.tShift[number] : state.eMarks[number]].rstrip()
