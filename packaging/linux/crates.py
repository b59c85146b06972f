"""The Rust crates that are compiled into a wheel, from the CycloneDX list that its builder puts into the wheel.

Where a crate leaves the choice between licences, the one that asks for no notice of each author in a binary is chosen.
What then still asks for one must be named in `notices/WHEEL.txt`; `crates_of` stops at a crate that is not.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path

NOTICES = Path(__file__).parent / "notices"
# In this order. The text of the Apache License lies with every wheel; the others ask for nothing.
PREFERRED = ("Apache-2.0", "Unlicense", "CC0-1.0", "MIT-0", "BSL-1.0")


@dataclass(frozen=True, slots=True)
class Crate:
    """One crate: `offered` is the licence expression that it came with, `chosen` what it is used under here."""

    name: str
    version: str
    offered: str
    chosen: str
    purl: str
    sha256: str

    @property
    def needs_notice(self) -> bool:
        """Whether the licence that is chosen wants the names of the authors with every copy."""
        return any(part not in PREFERRED for part in self.chosen.split(" AND "))


def crates_of(info: Path, wheel: str) -> list[Crate]:
    """The crates of the wheel whose `.dist-info` folder is `info`; none where it has no list.

    Raises:
        SystemExit: a crate needs a notice that `notices/WHEEL.txt` has not.
    """
    crates = [
        _crate(item)
        for path in sorted(info.glob("sboms/*.json"))
        for item in json.loads(path.read_text(encoding="utf-8"))["components"]
        if item.get("scope") != "excluded" and item.get("purl", "").startswith("pkg:cargo/")
    ]
    notices = NOTICES / f"{wheel}.txt"
    named = noticed(notices.read_text(encoding="utf-8")) if notices.is_file() else set()
    without = sorted({crate.name for crate in crates if crate.needs_notice} - named)
    if without:
        raise SystemExit(f"{notices.name} has no notice of the crates {', '.join(without)} inside {wheel}")
    return crates


def noticed(text: str) -> set[str]:
    """The crates that a file of notices names: "NAME, NAME: Copyright ..." at the start of a line."""
    lines = re.findall(r"^([\w, -]+): Copyright", text, re.M)
    return {name.strip() for line in lines for name in line.split(",")}


def choose(expression: str) -> str:
    """What to use a crate under whose licence expression is `expression`: alternatives resolved, conditions kept."""
    chosen = []
    for factor in re.split(r"\s+AND\s+(?![^(]*\))", expression.strip()):
        offers = [offer.strip(" ()") for offer in re.split(r"\s+OR\s+|/", factor.strip("()"))]
        chosen.append(next((licence for licence in PREFERRED if licence in offers), offers[0]))
    return " AND ".join(dict.fromkeys(chosen))


def _crate(item: dict) -> Crate:
    (licence,) = item["licenses"]
    offered = licence.get("expression") or licence["license"].get("id") or licence["license"]["name"]
    digests = [entry["content"] for entry in item.get("hashes", []) if entry["alg"] == "SHA-256"]
    return Crate(
        name=item["name"],
        version=item["version"],
        offered=" ".join(offered.split()),
        chosen=choose(offered),
        # A crate of the wheel's own repository names a folder of the machine that built it.
        purl=item["purl"].partition("?")[0],
        sha256=digests[0] if digests else "",
    )
