"""Numbers, sizes, shares, lists and dates as the window's language writes them: the one place that formats them.

In English they look as the engine and the command line write them ("1,234", "14.2 GB"), since both stand in one
window. All read the locale that `catalogue.speak` sets, so an English program on a German computer writes English
numbers. Needs no application. `isolated` keeps a name of another direction from turning the words around it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import date

from PySide6.QtCore import QCoreApplication, QDate, QLocale, Qt

_UNITS = ("bytes", "kB", "MB", "GB", "TB")
_SIZE_WORDS = {
    "de": {"bytes": "Byte"},
    "ar": {"bytes": "بايت", "kB": "ك.بايت", "MB": "م.بايت", "GB": "ج.بايت", "TB": "ت.بايت"},
}
_SIZE = re.compile(r"([+-]?[\d,]+(?:\.\d+)?) (bytes|[kKMGT]i?B)")
_NUMBER = re.compile(r"([+-]?)(\d{1,3}(?:,\d{3})+|\d+)(?:\.(\d+))?( ?%)?")
_FIRST_STRONG_ISOLATE, _POP_ISOLATE = "\u2068", "\u2069"


def count(number: int) -> str:
    """Write a whole number: "12,345" in English, "12.345" in German."""
    return _locale().toString(int(number))


def numbered(text: str, number: int, *more: object) -> str:
    """Return a text in the plural form for a number, which its {0} is; {1} and on are `more`.

    English has a text of its own for one thing, where it is needed.
    """
    return QCoreApplication.translate("", text, "", number).format(count(number), *more)


def decimal(number: float, digits: int) -> str:
    """Write a number with so many digits after its point: "3.20", "3,20"."""
    return _locale().toString(float(number), "f", digits)


def significant(number: float, digits: int = 3) -> str:
    """Write a number with so many digits in all, without zeros at its end: "1.5"."""
    return _locale().toString(float(number), "g", digits)


def size(size_bytes: int) -> str:
    """Write a size in powers of 1000, as `engine.memory.format_bytes` does: "14.2 GB", "98 MB", "0 bytes"."""
    value, unit = float(size_bytes), 0
    while abs(value) >= (1000 if unit == 0 else 999.5) and unit < 3:
        value, unit = value / 1000, unit + 1
    return f"{decimal(value, 1 if unit == 3 else 0)}\u00a0{size_unit(_UNITS[unit])}".replace("\u00a0", " ")


def size_unit(unit: str) -> str:
    """Return a unit of size in the language; "GiB" and those it has no word for stay."""
    return _SIZE_WORDS.get(_language(), {}).get(unit, unit)


def percent(share: float, digits: int = 0) -> str:
    """Write a share of 1 as percent: "54%" in English, "54 %" in German."""
    return decimal(100 * share, digits) + _percent_sign()


def listed(texts: Sequence[str]) -> str:
    """Join texts by the language's comma: "a, b", in Arabic with its own comma."""
    return ("، " if _language() == "ar" else ", ").join(texts)


def day(when: date) -> str:
    """Write a date in short: "30/11/2026", "30.11.26"."""
    return _locale().toString(QDate(when.year, when.month, when.day), QLocale.FormatType.ShortFormat)


def rewritten(text: str) -> str | None:
    """Write a number, percentage or size that was written in English anew; None for a text that is none.

    Numbers of more than four digits without a separator stay as they are: they are ids.
    """
    if match := _SIZE.fullmatch(text):
        number = rewritten(match[1])
        return None if number is None else f"{number} {size_unit(match[2].replace('KB', 'kB'))}"
    match = _NUMBER.fullmatch(text)
    if match is None or (len(match[2]) > 4 and "," not in match[2]):
        return None
    fraction = match[3] or ""
    value = float(f"{match[2].replace(',', '')}.{fraction or 0}")
    locale = _locale()
    if "," not in match[2]:
        locale.setNumberOptions(QLocale.NumberOption.OmitGroupSeparator)
    written = locale.toString(value, "f", len(fraction))
    return f"{match[1]}{written}{_percent_sign() if match[4] else ''}"


def number_in(text: str) -> float | None:
    """Return the number that a text written in English is, None for another text."""
    match = _NUMBER.fullmatch(text.strip())
    return None if match is None else float(f"{match[2].replace(',', '')}.{match[3] or 0}")


def isolated(text: str) -> str:
    """Put a name, path or foreign text between isolates where the window is read from right to left.

    Its direction is then that of its own first letter, and what stands around it keeps its order: "a-1.gguf (2)".
    """
    application = QCoreApplication.instance()
    mirrored = getattr(application, "layoutDirection", lambda: Qt.LayoutDirection.LeftToRight)()
    if mirrored != Qt.LayoutDirection.RightToLeft or not text or text.startswith(_FIRST_STRONG_ISOLATE):
        return text
    return f"{_FIRST_STRONG_ISOLATE}{text}{_POP_ISOLATE}"


def _locale() -> QLocale:
    """The locale in force; English where none was set, as the system's "C" groups no digits."""
    locale = QLocale()
    return QLocale("en") if locale.language() == QLocale.Language.C else locale


def _percent_sign() -> str:
    return "\u00a0%" if _language() == "de" else "%"


def _language() -> str:
    return _locale().name().split("_")[0]
