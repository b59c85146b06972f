"""A small writer of PDFs for the tests of parsing, and clients of the parser process."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from small_pdf import pdf_file

from inglenook.storage.parsing.client import ParserClient

_PADDING = bytes.fromhex("28BF4E5E4E758A4164004E56FFFA01082E2E00B6D0683E802F0CA9FE6453697A")
_FILE_ID = b"0123456789abcdef"


@dataclass(frozen=True)
class PageSpec:
    """A page to write: lines of text with their place in the page's own coordinates, y upwards."""

    lines: Sequence[tuple[float, float, str]] = ()
    width: float = 612
    height: float = 792
    rotate: int = 0
    crop: tuple[float, float, float, float] | None = None
    font_size: float = 12
    has_picture: bool = False
    content: bytes = b""


MakePdf = Callable[..., bytes]


def rc4(key: bytes, data: bytes) -> bytes:
    state = list(range(256))
    j = 0
    for i in range(256):
        j = (j + state[i] + key[i % len(key)]) % 256
        state[i], state[j] = state[j], state[i]
    out = bytearray()
    i = j = 0
    for byte in data:
        i = (i + 1) % 256
        j = (j + state[i]) % 256
        state[i], state[j] = state[j], state[i]
        out.append(byte ^ state[(state[i] + state[j]) % 256])
    return bytes(out)


def _md5(data: bytes) -> bytes:
    return hashlib.md5(data, usedforsecurity=False).digest()


def _encryption(password: str) -> tuple[bytes, bytes]:
    """Give the key and the encryption dictionary of PDF 1.1: 40 bits, one password for user and owner."""
    padded = (password.encode("latin-1") + _PADDING)[:32]
    owner = rc4(_md5(padded)[:5], padded)
    key = _md5(padded + owner + b"\xff\xff\xff\xff" + _FILE_ID)[:5]
    user = rc4(key, _PADDING)
    entry = b"<< /Filter /Standard /V 1 /R 2 /P -1 /O <%s> /U <%s> >>"
    return key, entry % (owner.hex().encode(), user.hex().encode())


def _escaped(text: str) -> bytes:
    data = text.encode("cp1252")
    return data.replace(b"\\", b"\\\\").replace(b"(", b"\\(").replace(b")", b"\\)")


def _content(page: PageSpec) -> bytes:
    parts = [page.content]
    parts += [
        b"BT /F1 %.2f Tf 1 0 0 1 %.2f %.2f Tm (%s) Tj ET" % (page.font_size, x, y, _escaped(text))
        for x, y, text in page.lines
    ]
    if page.has_picture:
        parts.append(b"q 200 0 0 200 100 100 cm BI /W 1 /H 1 /CS /G /BPC 8 ID \x80 EI Q")
    return b"\n".join(parts)


def write_pdf(
    pages: Sequence[PageSpec], *, labels: bytes = b"", title: str = "", password: str | None = None
) -> bytes:
    """Write a PDF of `pages` in Helvetica; `labels` is the content of a page label number tree's /Nums."""
    key, encryption = _encryption(password) if password is not None else (b"", b"")
    objects: list[bytes] = []
    kids = b" ".join(b"%d 0 R" % (4 + 2 * i) for i in range(len(pages)))
    label_tree = b"/PageLabels << /Nums [%s] >>" % labels if labels else b""
    objects.append(b"<< /Type /Catalog /Pages 2 0 R %s >>" % label_tree)
    objects.append(b"<< /Type /Pages /Count %d /Kids [%s] >>" % (len(pages), kids))
    objects.append(b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>")
    for i, page in enumerate(pages):
        crop = b"/CropBox [%.2f %.2f %.2f %.2f]" % page.crop if page.crop else b""
        objects.append(
            b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 %.2f %.2f] %s /Rotate %d /Contents %d 0 R"
            b" /Resources << /Font << /F1 3 0 R >> >> >>"
            % (page.width, page.height, crop, page.rotate, 5 + 2 * i)
        )
        content = _content(page)
        if key:
            content = rc4(_md5(key + (5 + 2 * i).to_bytes(3, "little") + b"\x00\x00")[:10], content)
        objects.append(b"<< /Length %d >>\nstream\n%s\nendstream" % (len(content), content))
    trailer = b"/Root 1 0 R /ID [<%s> <%s>]" % ((_FILE_ID.hex().encode(),) * 2)
    if title:
        objects.append(b"<< /Title (%s) >>" % _escaped(title))
        trailer += b" /Info %d 0 R" % len(objects)
    if encryption:
        objects.append(encryption)
        trailer += b" /Encrypt %d 0 R" % len(objects)
    return pdf_file(objects, trailer)


@pytest.fixture
def page_spec() -> type[PageSpec]:
    return PageSpec


@pytest.fixture
def make_pdf(tmp_path: Path) -> Callable[..., Path]:
    """Write a PDF to a file of its own and give its path."""
    count = 0

    def make(*pages: PageSpec, labels: bytes = b"", title: str = "", password: str | None = None) -> Path:
        nonlocal count
        count += 1
        path = tmp_path / f"document {count}.pdf"
        path.write_bytes(write_pdf(pages, labels=labels, title=title, password=password))
        return path

    return make


@pytest.fixture(scope="session")
def parser() -> Iterator[ParserClient]:
    """One client for tests that do not harm its process."""
    with ParserClient() as client:
        yield client
