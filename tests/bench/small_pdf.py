"""Small PDFs for tests, benchmarks and screenshots: lines of text on A4 pages, written by hand."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path


def write_pdf(path: Path, *pages: Sequence[str], label_prefix: str = "") -> Path:
    """Write a PDF with the given lines on each page; `label_prefix` labels its pages "A-1", "A-2" and so on."""
    objects: list[bytes] = [b"", b"", b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>"]
    kids = []
    for lines in pages:
        shown = b" ".join(b"(" + _escaped(line) + b") Tj T*" for line in lines)
        body = b"BT /F1 12 Tf 72 760 Td 16 TL " + shown + b" ET"
        objects.append(b"<< /Length %d >>\nstream\n%b\nendstream" % (len(body), body))
        objects.append(
            b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Resources << /Font << /F1 3 0 R >> >> "
            b"/Contents %d 0 R >>" % len(objects)
        )
        kids.append(b"%d 0 R" % len(objects))
    labels = (
        b"/PageLabels << /Nums [0 << /S /D /P (%b) >>] >> " % label_prefix.encode() if label_prefix else b""
    )
    objects[0] = b"<< /Type /Catalog %b/Pages 2 0 R >>" % labels
    objects[1] = b"<< /Type /Pages /Kids [%b] /Count %d >>" % (b" ".join(kids), len(kids))
    path.write_bytes(pdf_file(objects))
    return path


def pdf_file(objects: Sequence[bytes], trailer: bytes = b"/Root 1 0 R") -> bytes:
    """Put numbered objects, a table of their places and a trailer together."""
    out, offsets = bytearray(b"%PDF-1.7\n"), []
    for number, body in enumerate(objects, 1):
        offsets.append(len(out))
        out += b"%d 0 obj\n%b\nendobj\n" % (number, body)
    start = len(out)
    out += b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1)
    out += b"".join(b"%010d 00000 n \n" % offset for offset in offsets)
    out += b"trailer\n<< /Size %d %b >>\nstartxref\n%d\n%%%%EOF\n" % (len(objects) + 1, trailer, start)
    return bytes(out)


def _escaped(text: str) -> bytes:
    return (
        text.encode("latin-1", "replace").replace(b"\\", b"\\\\").replace(b"(", b"\\(").replace(b")", b"\\)")
    )
