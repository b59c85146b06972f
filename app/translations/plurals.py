"""Which form of a word goes with a number, in each language of the window: the rules of Unicode CLDR, as data.

A text that counts has one wording a form; the rule of its language picks one. Source of the rules: CLDR's table of
cardinal plurals (English, German, Arabic), written down anew. Pure; knows no Qt.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

FORMS: dict[str, tuple[str, ...]] = {
    "en": ("one", "other"),
    "de": ("one", "other"),
    "ar": ("zero", "one", "two", "few", "many", "other"),
}
"""The forms that a language has, and so those that a text must have which counts."""


def _one_or_other(number: int) -> str:
    return "one" if number == 1 else "other"


def _arabic(number: int) -> str:
    if number in (0, 1, 2):
        return ("zero", "one", "two")[number]
    rest = number % 100
    if 3 <= rest <= 10:
        return "few"
    return "many" if rest >= 11 else "other"


_RULES: Mapping[str, Callable[[int], str]] = {"en": _one_or_other, "de": _one_or_other, "ar": _arabic}


def plural_form(language: str, number: float) -> str:
    """Return the form for a number: 3 is "few" in Arabic; a fraction is always "other"."""
    if number != int(number):
        return "other"
    return _RULES[language](abs(int(number)))


def chosen_form(language: str, forms: Mapping[str, str], number: float) -> str:
    """Return the wording for a number, from a text's wordings by form."""
    return forms.get(plural_form(language, number), forms["other"])
