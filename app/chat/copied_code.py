"""The last piece of code in what was answered, for the clipboard."""

from __future__ import annotations

from collections.abc import Sequence

from markdown_it import MarkdownIt


def last_code(texts: Sequence[str]) -> str:
    """Return the last block of code of the last of `texts` that has one, without its fence; "" without any."""
    parser = MarkdownIt("commonmark")
    for text in reversed(texts):
        if "```" not in text and "~~~" not in text and "    " not in text:
            continue
        blocks = [token.content for token in parser.parse(text) if token.type in ("fence", "code_block")]
        if blocks:
            return blocks[-1].rstrip("\n")
    return ""
