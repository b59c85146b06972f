"""Checks of parameters, so that each bad one is refused with its name, its value and what is allowed."""

from __future__ import annotations

import math

from inglenook.engine.errors import InvalidRequestError

_LONGEST_VALUE = 80  # characters of a value that an error quotes


def check(name: str, value: object, ok: bool, allowed: str) -> None:
    """Refuse a value that is not `ok`.

    Raises:
        InvalidRequestError: "NAME must be ALLOWED, got VALUE."
    """
    if not ok:
        shown = repr(value)
        if len(shown) > _LONGEST_VALUE:
            shown = f"{shown[:_LONGEST_VALUE]}..."
        raise InvalidRequestError(f"{name} must be {allowed}, got {shown}.")


def check_list(name: str, values: object, most: int) -> None:
    """Refuse what is no list or tuple, a string above all, and one that is too long.

    Raises:
        InvalidRequestError: with the name, the value or its length, and what is allowed.
    """
    check(name, values, isinstance(values, list | tuple), "a list")
    assert isinstance(values, list | tuple)
    check(name, len(values), len(values) <= most, f"a list of at most {most}")


def is_whole(value: object, least: int, most: int) -> bool:
    """Whether a value is an int, and no bool, within the limits, which belong to them."""
    return isinstance(value, int) and not isinstance(value, bool) and least <= value <= most


def is_real(value: object, least: float, most: float) -> bool:
    """Whether a value is a finite int or float, and no bool, within the limits, which belong to them."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return math.isfinite(value) and least <= value <= most
