"""Bounded JSON: files and headers of a model folder, read whole only after their size is checked.

Refuses what makes two readers disagree: duplicate keys, NaN and infinities.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NoReturn

from inglenook.engine.errors import ModelFileError
from inglenook.engine.weights.mapped_file import MappedFile, size_words


def read_json_file(path: Path, max_bytes: int) -> dict[str, Any]:
    """Read the JSON object in a file.

    Raises:
        ModelNotFoundError: there is no such file.
        ModelFileError: it is larger than `max_bytes`, or holds no JSON object.
    """
    with MappedFile(path) as file:
        if file.size > max_bytes:
            raise ModelFileError(
                f"{file.name} has {size_words(file.size)}; at most {size_words(max_bytes)} are allowed."
            )
        return parse_json_object(file.map[:], file.name)


def read_json_list(path: Path, max_bytes: int) -> list[Any]:
    """Read the JSON list in a file; raises as `read_json_file` does."""
    with MappedFile(path) as file:
        if file.size > max_bytes:
            raise ModelFileError(
                f"{file.name} has {size_words(file.size)}; at most {size_words(max_bytes)} are allowed."
            )
        value = _parse(file.map[:], file.name)
    if not isinstance(value, list):
        raise ModelFileError(f"{path.name} holds a JSON {type(value).__name__}; it must be a list.")
    return value


def parse_json_object(data: bytes, source: str) -> dict[str, Any]:
    """Read a JSON object from bytes, whose number the caller has bounded."""
    value = _parse(data, source)
    if not isinstance(value, dict):
        raise ModelFileError(f"{source} holds a JSON {type(value).__name__}; it must be an object.")
    return value


def _parse(data: bytes, source: str) -> Any:
    try:
        return json.loads(data.decode(), object_pairs_hook=_unique, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise ModelFileError(f"{source} does not hold sound JSON: {error}.") from error


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) < len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise ValueError(f"the key {key[:100]!r} stands there twice")
            seen.add(key)
    return result


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"it holds {name}, which is no number")
