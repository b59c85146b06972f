"""`Metadata`: the facts of a GGUF header or a config.json, with typed getters that name the key they refuse.

A missing key and a JSON null are the same. Getters check the type, the range and the length before they return; the
error names file, key, what was found and what is allowed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from inglenook.engine.errors import ModelFileError

MAX_COUNT = 2**31 - 1


class Metadata(Mapping[str, Any]):
    """Values by key: str, int, float, bool, list, NumPy arrays (GGUF) or dictionaries (JSON).

    `Any`, because that is what a file may hold; the getters are the typed way in.
    """

    def __init__(self, values: dict[str, Any], source: str) -> None:
        self._values = values
        self.source = source

    def __getitem__(self, key: str) -> Any:
        return self._values[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def has(self, key: str) -> bool:
        """Whether the key is there and not null."""
        return self._values.get(key) is not None

    def integer(self, key: str, low: int = 0, high: int = MAX_COUNT, *, default: int | None = None) -> int:
        """A whole number from `low` to `high`; `default`, if given, stands in for a missing key."""
        value = self._get(key, default)
        if not isinstance(value, int) or isinstance(value, bool):
            raise self._wrong(key, value, "a whole number")
        if not low <= value <= high:
            raise self._wrong(key, value, f"from {low:,} to {high:,}")
        return value

    def number(self, key: str, low: float, high: float, *, default: float | None = None) -> float:
        """A finite number from `low` to `high`."""
        value = self._get(key, default)
        if not isinstance(value, int | float) or isinstance(value, bool):
            raise self._wrong(key, value, "a number")
        # a NaN fails both comparisons; an int may be too large for a float
        if not low <= value <= high:
            raise self._wrong(key, value, f"from {low:g} to {high:g}")
        return float(value)

    def text(self, key: str, *, default: str | None = None) -> str:
        """A string."""
        value = self._get(key, default)
        if not isinstance(value, str):
            raise self._wrong(key, value, "a text")
        return value

    def flag(self, key: str, *, default: bool | None = None) -> bool:
        """True or false."""
        value = self._get(key, default)
        if not isinstance(value, bool):
            raise self._wrong(key, value, "true or false")
        return value

    def texts(self, key: str, *, length: int | None = None) -> list[str]:
        """A list of strings, of exactly `length` if given."""
        value = self._get(key, None)
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise self._wrong(key, value, "a list of texts")
        self._check_length(key, len(value), length)
        return value

    def array(
        self, key: str, *, kind: type[np.integer[Any]] | type[np.floating[Any]], length: int | None = None
    ) -> npt.NDArray[Any]:
        """A numeric array of integers (`np.integer`) or floats (`np.floating`), of exactly `length` if given."""
        value = self._get(key, None)
        words = "whole numbers" if kind is np.integer else "floating-point numbers"
        if not isinstance(value, np.ndarray) or not np.issubdtype(value.dtype, kind):
            raise self._wrong(key, value, f"an array of {words}")
        self._check_length(key, len(value), length)
        return value

    def section(self, key: str) -> Metadata | None:
        """A dictionary inside a config.json, or None where there is none."""
        value = self._values.get(key)
        if value is None:
            return None
        if not isinstance(value, dict):
            raise self._wrong(key, value, "a group of settings")
        return Metadata(value, f"{self.source}, {key}")

    def error(self, key: str, problem: str) -> ModelFileError:
        """The error that says what is wrong with a key."""
        return ModelFileError(f"{self.source}: {key} {problem}.")

    def _get(self, key: str, default: object) -> Any:
        value = self._values.get(key)
        if value is not None:
            return value
        if default is None:
            raise self.error(key, "is missing")
        return default

    def _wrong(self, key: str, value: object, wanted: str) -> ModelFileError:
        return self.error(key, f"is {describe(value)}; it must be {wanted}")

    def _check_length(self, key: str, found: int, wanted: int | None) -> None:
        if wanted is not None and found != wanted:
            raise self.error(key, f"has {found:,} entries; it must have {wanted:,}")


def describe(value: object) -> str:
    """A value in a few words for an error, however large it is."""
    if isinstance(value, np.ndarray):
        return f"an array of {len(value):,} {value.dtype}"
    if isinstance(value, list):
        return f"a list of {len(value):,} entries"
    if isinstance(value, dict):
        return f"a group of {len(value):,} settings"
    if isinstance(value, str):
        return repr(value if len(value) <= 60 else f"{value[:57]}...")
    shown = f"{value:,}" if type(value) is int and abs(value) < 1 << 64 else repr(value)
    return shown if len(shown) <= 60 else f"{shown[:57]}..."
