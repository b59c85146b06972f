"""A second opinion on a PDF, by pypdf: for pages whose text PDFium gives garbled, and for files that it refuses.

It knows no places on the page, so what it reads has none. It is slow, in pure Python, and loaded only when asked.
Whatever fails in it means that there is no second opinion.
"""

from __future__ import annotations

import io
import logging
from typing import TYPE_CHECKING

from inglenook.storage.parsing.page_text import PageText

if TYPE_CHECKING:
    from pypdf import PdfReader

MAX_FILE_BYTES = 64 << 20


class SecondReader:
    """Opens a PDF when the first page is asked for."""

    def __init__(self, data: bytes, password: str | None) -> None:
        self._data = data
        self._password = password
        self._reader: PdfReader | None = None
        self._is_opened = False

    @property
    def num_pages(self) -> int:
        """How many pages it sees, 0 where it cannot open the file."""
        reader = self._open()
        try:
            return len(reader.pages) if reader is not None else 0
        except Exception:  # noqa: BLE001 - pypdf raises nearly anything on damaged files
            return 0

    def text(self, index: int) -> str:
        """Return the text of a page, "" where it has no opinion."""
        reader = self._open()
        if reader is None:
            return ""
        try:
            return PageText(reader.pages[index].extract_text()).text
        except Exception:  # noqa: BLE001 - as above
            return ""

    def _open(self) -> PdfReader | None:
        if self._is_opened or len(self._data) > MAX_FILE_BYTES:
            return self._reader
        self._is_opened = True
        try:
            import pypdf

            # What it warns of are pieces of the user's file.
            logging.getLogger("pypdf").setLevel(logging.CRITICAL)
            reader = pypdf.PdfReader(io.BytesIO(self._data))
            if not reader.is_encrypted or reader.decrypt(self._password or ""):
                self._reader = reader
        except Exception:  # noqa: BLE001 - as above
            self._reader = None
        return self._reader
