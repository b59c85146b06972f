"""What the numbers of a text are counted in: "34 metres" and "34 feet" have one number and say two things. Pure."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from decimal import Decimal

from inglenook.app.answers.claims import NUMBER, readings
from inglenook.storage.sentences import is_row

_ALIKE = (
    "% percent pct prozent procent % pourcent",
    "m metre metres meter meters",
    "ft foot feet",
    "inch inches",
    "cm centimetre centimetres centimeter centimeters zentimeter",
    "mm millimetre millimetres millimeter millimeters",
    "km kilometre kilometres kilometer kilometers",
    "mile miles mi",
    "kg kilogram kilograms kilogramm kilo kilos",
    "g gram grams gramm",
    "lb lbs pound pounds",
    "tonne tonnes ton tons tonnen",
    "second seconds sekunde sekunden",
    "minute minutes minuten",
    "hour hours stunde stunden",
    "day days tag tage tagen",
    "week weeks woche wochen",
    "month months monat monate monaten",
    "year years jahr jahre jahren",
    "thousand tausend",
    "million millions mio millionen",
    "billion billions mrd milliarde milliarden",
    "trillion trillions",
    "$ usd dollar dollars",
    "€ eur euro euros",
    "£ gbp",
    "¥ yen jpy",
    "°c celsius",
    "°f fahrenheit",
)
UNITS = {word: kind.split()[0] for kind in _ALIKE for word in kind.split()}
"""Each spelling of a unit or scale with the one that stands for all of them."""
_AFTER = re.compile(r"[\s\u00a0\u202f-]{0,2}(%|°[CF]|[$€£¥]|per cent|[^\W\d_]+)", re.I)
_SCALES = frozenset(("thousand", "million", "billion", "trillion"))

Units = dict[Decimal, set[str]]


def units_of(text: str) -> Units:
    """Return each value with the units and scales it stands with; a value without any has an empty set."""
    found: Units = defaultdict(set)
    for match in NUMBER.finditer(text):
        units = set()
        before = text[: match.start()].rstrip()[-1:]
        if before in UNITS:
            units.add(UNITS[before])
        after = _AFTER.match(text, match.end())
        for _ in range(2):
            unit = UNITS.get(after.group(1).lower().replace("per cent", "percent")) if after else None
            if unit is None or after is None:
                break
            units.add(unit)
            after = _AFTER.match(text, after.end()) if unit in _SCALES else None
        for value in readings(match.group()):
            found[value] |= units or {""}
    return found


def contradicts(sentence: str, parts: Sequence[str]) -> bool:
    """Return whether a number of the sentence has a unit, and in sentences and rows of a text has others wherever it stands.

    Without a unit it may stand in a table whose head has the unit, unless another cell of its row has it.
    """
    known = [(units_of(part), is_row(part)) for part in parts]
    for value, units in units_of(sentence).items():
        wanted = units - {""}
        found = [(there, row) for there, row in known if value in there]
        if wanted and found and not any(_may_be(value, wanted, there, row) for there, row in found):
            return True
    return False


def _may_be(value: Decimal, wanted: set[str], there: Units, is_in_row: bool) -> bool:
    if wanted & there[value]:
        return True
    of_others = {unit for other, units in there.items() if other != value for unit in units}
    return "" in there[value] and not (is_in_row and wanted & of_others)
