"""What a file is, told from its first bytes and never from its name.

PDF, Word documents, web pages and plain text are read; everything else is named, so that the user learns what to convert.
"""

from __future__ import annotations

import codecs
import re

HEAD_BYTES = 8192

# Signature, where it stands, and what people call such a file.
_SIGNATURES: tuple[tuple[int, bytes, str], ...] = (
    (0, b"{\\rtf", "a rich text (RTF) file"),
    (0, b"\x89PNG\r\n\x1a\n", "a picture (PNG)"),
    (0, b"\xff\xd8\xff", "a picture (JPEG)"),
    (0, b"GIF8", "a picture (GIF)"),
    (8, b"WEBP", "a picture (WebP)"),
    (0, b"II*\x00", "a picture (TIFF)"),
    (0, b"MM\x00*", "a picture (TIFF)"),
    (4, b"ftyp", "a film or picture (MP4 family)"),
    (0, b"ID3", "a sound recording (MP3)"),
    (0, b"OggS", "a sound recording (Ogg)"),
    (8, b"WAVE", "a sound recording (WAV)"),
    (0, b"fLaC", "a sound recording (FLAC)"),
    (0, b"\x1f\x8b", "a gzip archive"),
    (0, b"BZh", "a bzip2 archive"),
    (0, b"\xfd7zXZ\x00", "an xz archive"),
    (0, b"(\xb5/\xfd", "a zstd archive"),
    (0, b"7z\xbc\xaf\x27\x1c", "a 7-Zip archive"),
    (0, b"Rar!\x1a\x07", "a RAR archive"),
    (257, b"ustar", "a tar archive"),
    (0, b"\x7fELF", "a program (ELF)"),
    (0, b"MZ", "a program (Windows)"),
    (0, b"SQLite format 3\x00", "an SQLite database"),
    (0, b"GGUF", "a language model (GGUF)"),
    (0, b"%!PS", "a PostScript file"),
)

_WORD = "a Word document (DOCX)"

_ZIP_MEMBERS: tuple[tuple[bytes, str], ...] = (
    (b"application/epub+zip", "an e-book (EPUB)"),
    (b"application/vnd.oasis.opendocument.text", "a text document (ODT)"),
    (b"application/vnd.oasis.opendocument.spreadsheet", "a spreadsheet (ODS)"),
    (b"application/vnd.oasis.opendocument.presentation", "a presentation (ODP)"),
    (b"word/", _WORD),
    (b"xl/", "an Excel workbook (XLSX)"),
    (b"ppt/", "a PowerPoint presentation (PPTX)"),
    (b"[Content_Types].xml", "an Office document"),
)

# The names of streams in an OLE2 container, which are UTF-16.
_OLE_STREAMS: tuple[tuple[str, str], ...] = (
    ("EncryptedPackage", "an encrypted Office document"),
    ("EncryptionInfo", "an encrypted Office document"),
    ("__substg1.0_", "an Outlook message (MSG)"),
    ("WordDocument", "an old Word document (DOC)"),
    ("Workbook", "an old Excel workbook (XLS)"),
    ("PowerPoint Document", "an old PowerPoint presentation (PPT)"),
)

_OLE2 = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_ZIP = (b"PK\x03\x04", b"PK\x05\x06")
_WEB_PAGE = re.compile(
    rb"(?:<\?xml[^>]{0,200}+>\s*+)?(?:<!--(?:(?!-->).){0,4000}+-->\s*+)*+<(?:!doctype\s+html|html|head|body)[\s>]",
    re.IGNORECASE | re.DOTALL,
)


def is_pdf(head: bytes) -> bool:
    """Say whether the content is a PDF; its mark may stand anywhere in the first 1024 bytes."""
    return b"%PDF-" in head[:1024]


def is_docx(content: bytes) -> bool:
    """Say whether the content is a Word document: an archive with a folder "word"."""
    return content.startswith(_ZIP) and _archive_type(content) == _WORD


def is_html(content: bytes) -> bool:
    """Say whether the content is a web page: it begins as one, after comments and an XML declaration if any."""
    head = content[:HEAD_BYTES].removeprefix(codecs.BOM_UTF8).replace(b"\x00", b"").lstrip(b"\xff\xfe \t\r\n")
    return _WEB_PAGE.match(head) is not None


def foreign_type(content: bytes) -> str | None:
    """Name the type of a content that is not read, with its article; None if it may be text.

    Asked after `is_pdf`, `is_docx` and `is_html`.
    """
    head = content[:HEAD_BYTES]
    if head.startswith(_ZIP):
        return _archive_type(content)
    if head.startswith(_OLE2):
        found = (name for mark, name in _OLE_STREAMS if mark.encode("utf-16-le") in content)
        return next(found, "an old Office document")
    for offset, mark, name in _SIGNATURES:
        # "MZ" or "GIF8" may also begin a sentence; a file of that type has binary bytes near its start.
        is_proven = b"\x00" in head or not mark.isalnum()
        if is_proven and head[offset : offset + len(mark)] == mark:
            return name
    return "an XML file" if head.removeprefix(codecs.BOM_UTF8).lstrip().startswith(b"<?xml") else None


def _archive_type(content: bytes) -> str:
    # The list of members stands at the end of an archive.
    listing = content[:HEAD_BYTES] + content[-65536:]
    return next((name for mark, name in _ZIP_MEMBERS if mark in listing), "a zip archive")
