"""A file's type is told from its content."""

from __future__ import annotations

import io
import zipfile

import pytest

from inglenook.storage.parsing.file_type import foreign_type, is_docx, is_html, is_pdf


def _zip(*names: str) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name in names:
            archive.writestr(name, b"x")
    return buffer.getvalue()


def test_a_pdf_may_begin_with_something_else() -> None:
    assert is_pdf(b"%PDF-1.7 ...")
    assert is_pdf(b"junk\n" * 20 + b"%PDF-1.4")
    assert not is_pdf(b" " * 2000 + b"%PDF-1.4")


def test_a_word_document_is_told_by_its_folder() -> None:
    assert is_docx(_zip("[Content_Types].xml", "word/document.xml"))
    assert not is_docx(_zip("[Content_Types].xml", "xl/workbook.xml"))
    assert not is_docx(b"word/document.xml")


@pytest.mark.parametrize(
    ("content", "is_page"),
    [
        (b"  <!DOCTYPE html><p>hello", True),
        (b"\xef\xbb\xbf<html lang=en>", True),
        (b"<?xml version='1.0'?>\n<!-- saved -->\n<html xmlns='x'>", True),
        ("<html>".encode("utf-16"), True),
        (b"<?xml version='1.0'?><a/>", False),
        (b"# Title\n<p align=center>", False),
        (b"<!--" + b"-" * 8000, False),
    ],
)
def test_a_web_page_is_told_by_how_it_begins(content: bytes, is_page: bool) -> None:
    assert is_html(content) == is_page


@pytest.mark.parametrize(
    ("content", "name"),
    [
        (_zip("[Content_Types].xml", "xl/workbook.xml"), "XLSX"),
        (_zip("[Content_Types].xml", "ppt/presentation.xml"), "PPTX"),
        (_zip("a.txt"), "a zip archive"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + "WordDocument".encode("utf-16-le"), "DOC"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + "EncryptedPackage".encode("utf-16-le"), "encrypted"),
        (b"\x89PNG\r\n\x1a\n\x00\x00", "PNG"),
        (b"\xff\xd8\xff\xe0\x00", "JPEG"),
        (b"\x1f\x8b\x08\x00", "gzip"),
        (b"{\\rtf1\\ansi hello}", "RTF"),
        (b"\xef\xbb\xbf<?xml version='1.0'?><a/>", "XML"),
        (b"SQLite format 3\x00", "SQLite"),
        (b"GGUF\x03\x00\x00\x00", "GGUF"),
        (b"MZ\x90\x00\x03", "program"),
    ],
)
def test_other_types_are_named(content: bytes, name: str) -> None:
    found = foreign_type(content)

    assert found is not None
    assert name in found


@pytest.mark.parametrize(
    "content",
    [
        b"MZ is a mark.",
        b"GIF8 was never a name",
        b"# Title\n<p align=center>",
        b"PK",
        b"BZhello",
        "Ünï".encode(),
    ],
)
def test_text_is_not_mistaken_for_another_type(content: bytes) -> None:
    assert foreign_type(content) is None
