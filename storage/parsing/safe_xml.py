"""XML of a foreign file, as events: no document type, so no entities and nothing that is fetched, and bounded nesting.

Namespaces are kept apart from names, as an Office file has a "t" in several. Nothing is kept of what was read.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NoReturn, Protocol
from xml.parsers import expat

from inglenook.storage.parsing.errors import DamagedDocumentError

MAX_DEPTH = 500

# As "namespace name"; a name without one has only itself.
_SEPARATOR = " "


class XmlHandler(Protocol):
    """Receives the events of a file in order. Attributes have their names without namespaces."""

    def start(self, namespace: str, name: str, attributes: Mapping[str, str]) -> None:
        """An element begins."""

    def end(self, namespace: str, name: str) -> None:
        """An element ends."""

    def text(self, text: str) -> None:
        """A piece of text."""


def parse_xml(pieces: Iterable[bytes], handler: XmlHandler) -> None:
    """Send a file's events to `handler`.

    Raises:
        DamagedDocumentError: it is not well-formed, declares a document type, or is nested too deeply.
    """
    parser = expat.ParserCreate(namespace_separator=_SEPARATOR)
    parser.buffer_text = True
    depth = 0

    def start(name: str, attributes: dict[str, str]) -> None:
        nonlocal depth
        depth += 1
        if depth > MAX_DEPTH:
            raise DamagedDocumentError(
                f"This file's content is nested more than {MAX_DEPTH} levels deep, as no program writes it. "
                "Save it again."
            )
        handler.start(*_parted(name), {_parted(key)[1]: value for key, value in attributes.items()})

    def end(name: str) -> None:
        nonlocal depth
        depth -= 1
        handler.end(*_parted(name))

    parser.StartElementHandler = start
    parser.EndElementHandler = end
    parser.CharacterDataHandler = handler.text
    parser.StartDoctypeDeclHandler = _refuse_document_type
    try:
        for piece in pieces:
            parser.Parse(piece, False)
        parser.Parse(b"", True)
    except expat.ExpatError as error:
        raise DamagedDocumentError(
            f"This file's content breaks off or is garbled in line {error.lineno} of its XML. Save it again."
        ) from error


def _refuse_document_type(*_: object) -> NoReturn:
    raise DamagedDocumentError(
        "This file's XML has a document type of its own, which could name files of this computer; it was not read."
    )


def _parted(name: str) -> tuple[str, str]:
    namespace, _, local = name.rpartition(_SEPARATOR)
    return namespace, local
