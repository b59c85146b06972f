"""The parts of a Word document: which is the body, what it refers to, which styles are headings, its title."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from inglenook.storage.parsing.errors import DamagedDocumentError
from inglenook.storage.parsing.safe_xml import parse_xml
from inglenook.storage.parsing.zip_package import ZipPackage, resolved

_HEADING_NAME = re.compile(r"(?:heading|überschrift|titre|título|titolo)\s*([1-9])", re.I)
_MAX_BASES = 20


class WordParts:
    """What an archive holds as a Word document.

    Raises:
        DamagedDocumentError: it has no body.
    """

    def __init__(self, package: ZipPackage) -> None:
        self.package = package
        self.main = self._main_part()
        folder, _, name = self.main.rpartition("/")
        self.relations = Relations(package, f"{folder}/_rels/{name}.rels".lstrip("/"), self.main)

    @property
    def title(self) -> str | None:
        """The title among the document's properties, if it states one."""
        if "docProps/core.xml" not in self.package:
            return None
        reader = _Title()
        try:
            parse_xml(self.package.pieces("docProps/core.xml"), reader)
        except DamagedDocumentError:
            return None
        return " ".join("".join(reader.pieces).split())[:300] or None

    def styles(self) -> Styles:
        """Return the paragraph styles; none where that part is missing or damaged."""
        styles = Styles()
        for name in self.relations.of_kind("styles"):
            try:
                parse_xml(self.package.pieces(name), styles)
            except DamagedDocumentError:
                continue
        return styles

    def _main_part(self) -> str:
        found = Relations(self.package, "_rels/.rels", "").of_kind("officeDocument")
        for name in (*found, "word/document.xml"):
            if name in self.package:
                return name
        raise DamagedDocumentError(
            "This Word document has no body. Save it again with the program it is from."
        )


class Relations:
    """What a part refers to by id; nothing outside of the archive is among it."""

    def __init__(self, package: ZipPackage, name: str, base: str) -> None:
        self._base = base
        self._package = package
        self._targets: dict[str, tuple[str, str]] = {}
        if name in package:
            try:
                parse_xml(package.pieces(name), self)
            except DamagedDocumentError:
                self._targets.clear()

    def target(self, id_: str) -> str:
        """Return the name of the part that an id means, "" where there is none."""
        return self._targets.get(id_, ("", ""))[1]

    def of_kind(self, kind: str) -> list[str]:
        """Return the names of the parts of a kind ("styles", "footnotes"), each once, in order."""
        names = (name for each, name in self._targets.values() if each == kind and name in self._package)
        return list(dict.fromkeys(names))

    def start(self, namespace: str, name: str, attributes: Mapping[str, str]) -> None:
        """An element begins."""
        if name == "Relationship" and attributes.get("TargetMode", "") != "External":
            kind = attributes.get("Type", "").rpartition("/")[2]
            self._targets[attributes.get("Id", "")] = (
                kind,
                resolved(self._base, attributes.get("Target", "")),
            )

    def end(self, namespace: str, name: str) -> None:
        """An element ends."""

    def text(self, text: str) -> None:
        """A piece of text."""


@dataclass(slots=True)
class _Style:
    name: str = ""
    base: str = ""
    outline_level: int | None = None


@dataclass(slots=True)
class Styles:
    """The levels of paragraph styles, by their names and by what they are based on."""

    _styles: dict[str, _Style] = field(default_factory=dict)
    _current: _Style = field(default_factory=_Style)

    def level(self, style_id: str) -> int | None:
        """Return the level of a style from 0 for the title, None if it is no heading."""
        for _ in range(_MAX_BASES):
            style = self._styles.get(style_id)
            if style is None:
                break
            found = _HEADING_NAME.fullmatch(style.name.strip())
            if found:
                return int(found.group(1))
            if style.name.strip().lower() == "title":
                return 0
            if style.outline_level is not None:
                return style.outline_level + 1 if style.outline_level < 9 else None
            style_id = style.base
        return None

    def start(self, namespace: str, name: str, attributes: Mapping[str, str]) -> None:
        """An element begins."""
        value = attributes.get("val", "")
        match name:
            case "style":
                self._current = self._styles.setdefault(attributes.get("styleId", ""), _Style())
            case "name":
                self._current.name = value
            case "basedOn":
                self._current.base = value
            case "outlineLvl" if value.isdecimal():
                self._current.outline_level = int(value)

    def end(self, namespace: str, name: str) -> None:
        """An element ends."""

    def text(self, text: str) -> None:
        """A piece of text."""


class _Title:
    """Takes the title from the properties."""

    def __init__(self) -> None:
        self.pieces: list[str] = []
        self._is_inside = False

    def start(self, namespace: str, name: str, attributes: Mapping[str, str]) -> None:
        self._is_inside = name == "title"

    def end(self, namespace: str, name: str) -> None:
        self._is_inside = False

    def text(self, text: str) -> None:
        if self._is_inside:
            self.pieces.append(text)
