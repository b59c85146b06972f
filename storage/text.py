"""Text as the file can hold it: any code points but lone surrogates, which UTF-8 has no bytes for."""

from __future__ import annotations

import json
from typing import Any


def storable(text: str) -> str:
    """Join surrogates that form a pair, and put U+FFFD for those that stand alone; other text is returned as it is."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def to_json(value: object) -> str:
    """Return compact JSON that keeps all scripts readable."""
    return storable(json.dumps(value, ensure_ascii=False, separators=(",", ":")))


def from_json(text: str, kind: type[Any]) -> Any:
    """Return the value, or an empty `kind` where the text is broken or holds something else."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return kind()
    return value if isinstance(value, kind) else kind()
