"""Our own HTML printed to PDF, with A4 pages. It holds no picture and no address that could be loaded."""

from __future__ import annotations

from PySide6.QtCore import QBuffer, QIODevice, QMarginsF, QSizeF, QUrl
from PySide6.QtGui import QFont, QPageLayout, QPageSize, QPdfWriter, QTextDocument


class _Document(QTextDocument):
    """A document that loads nothing, whatever is in it."""

    def loadResource(self, kind: int, name: QUrl | str) -> str:
        return ""


def pdf_of(page: str, title: str) -> bytes:
    """Return the PDF of an HTML page that `export.html_document` wrote; any thread."""
    buffer = QBuffer()
    buffer.open(QIODevice.OpenModeFlag.WriteOnly)
    writer = QPdfWriter(buffer)
    writer.setTitle(title)
    writer.setCreator("Inglenook")
    writer.setResolution(150)
    writer.setPageLayout(
        QPageLayout(
            QPageSize(QPageSize.PageSizeId.A4),
            QPageLayout.Orientation.Portrait,
            QMarginsF(18, 18, 18, 18),
            QPageLayout.Unit.Millimeter,
        )
    )
    document = _Document()
    font = QFont("Noto Sans")
    font.setPointSizeF(10)
    document.setDefaultFont(font)
    document.documentLayout().setPaintDevice(writer)
    document.setHtml(page)
    document.setPageSize(QSizeF(writer.width(), writer.height()))
    document.print_(writer)
    buffer.close()
    return bytes(buffer.data().data())
