"""Find a quotation in a page's text, however its spaces, line breaks, quotation marks and dashes are written."""

from __future__ import annotations

import re

MAX_QUOTE_WORDS = 500

_ALIKE = ("'‘’‚‛`´", '"“”„‟«»', "-‐‑‒–—−")
_CLASSES = {mark: f"[{re.escape(group)}]" for group in _ALIKE for mark in group}


def find_quote(text: str, quote: str) -> tuple[int, int] | None:
    """Give the range of the first place where `text` says `quote`, or None.

    Case is ignored; a run of white space equals any other; quotation marks equal quotation marks and dashes dashes.
    """
    words = quote.split()
    if not words or len(words) > MAX_QUOTE_WORDS:
        return None
    pattern = r"\s+".join("".join(_CLASSES.get(c, re.escape(c)) for c in word) for word in words)
    found = re.search(pattern, text, re.IGNORECASE)
    return found.span() if found else None
