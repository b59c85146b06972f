"""The parts of an Office file, which is a zip archive, inflated no further than limits allow.

What an archive says about its sizes is not believed: bytes are counted as they come. Parts are read in pieces, so
memory holds one piece and what a caller keeps.
"""

from __future__ import annotations

import io
import posixpath
import struct
import zipfile
import zlib
from collections.abc import Iterator

from inglenook.storage.parsing.document import MIB
from inglenook.storage.parsing.errors import DamagedDocumentError, DocumentTooLargeError

MAX_PARTS = 10_000
MAX_PART_BYTES = 128 * MIB
MAX_TOTAL_BYTES = 256 * MIB

_PIECE_BYTES = 1 << 16
_FAULTS = (
    zipfile.BadZipFile,
    zipfile.LargeZipFile,
    zlib.error,
    struct.error,
    EOFError,
    OSError,
    ValueError,
    # A part that is encrypted, and one that is compressed in a way unknown here.
    RuntimeError,
    NotImplementedError,
    IndexError,
)


class ZipPackage:
    """An archive in memory. Names are as stored, with "/" between folders.

    Raises:
        DamagedDocumentError: it cannot be read as an archive.
        DocumentTooLargeError: it has more parts than any document.
    """

    def __init__(self, data: bytes) -> None:
        try:
            self._archive = zipfile.ZipFile(io.BytesIO(data))
        except _FAULTS as error:
            raise _damaged() from error
        parts = self._archive.infolist()
        if len(parts) > MAX_PARTS:
            raise DocumentTooLargeError(
                f"This file has {len(parts):,} parts; the limit is {MAX_PARTS:,}. Save it again as a plain document."
            )
        self._parts = {part.filename.lstrip("/"): part for part in parts if not part.is_dir()}
        self._total_bytes = 0

    @property
    def names(self) -> list[str]:
        """The names of all parts."""
        return list(self._parts)

    def __contains__(self, name: str) -> bool:
        return name in self._parts

    def pieces(self, name: str) -> Iterator[bytes]:
        """Yield the bytes of a part in pieces.

        Raises:
            DamagedDocumentError: there is no such part, or it cannot be inflated.
            DocumentTooLargeError: it inflates beyond the limits.
        """
        if name not in self._parts:
            raise DamagedDocumentError(
                "This file lacks a part that it refers to. Save it again with the program it is from."
            )
        part_bytes = 0
        try:
            with self._archive.open(self._parts[name]) as file:
                while piece := file.read(_PIECE_BYTES):
                    part_bytes += len(piece)
                    self._total_bytes += len(piece)
                    if part_bytes > MAX_PART_BYTES or self._total_bytes > MAX_TOTAL_BYTES:
                        raise DocumentTooLargeError(
                            f"This file inflates to more than {min(part_bytes, MAX_PART_BYTES) // MIB:,} MiB, the "
                            "limit. Split it and add the parts."
                        )
                    yield piece
        except _FAULTS as error:
            raise _damaged() from error

    def read(self, name: str) -> bytes:
        """Return a whole part; raises as `pieces`."""
        return b"".join(self.pieces(name))


def resolved(base: str, target: str) -> str:
    """Return the name of the part that `target` means in the part `base`."""
    if target.startswith("/"):
        return posixpath.normpath(target).lstrip("/")
    return posixpath.normpath(posixpath.join(posixpath.dirname(base), target))


def _damaged() -> DamagedDocumentError:
    return DamagedDocumentError(
        "This file is damaged: its parts cannot be unpacked. Save or download it again."
    )
