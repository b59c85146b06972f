"""Finds sentences of a reply's source in the document that shows it, and underlines them without changing it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from PySide6.QtGui import QColor, QTextCharFormat, QTextCursor, QTextDocument
from PySide6.QtWidgets import QTextEdit

from inglenook.app.text.elements_html import elements_of, text_of

_ENOUGH = 24


def sentence_marks(
    document: QTextDocument, sentences: Sequence[str], colour: str
) -> list[QTextEdit.ExtraSelection]:
    """Return a dashed underline for each sentence that stands in a document."""
    look = QTextCharFormat()
    look.setUnderlineStyle(QTextCharFormat.UnderlineStyle.DashUnderline)
    look.setUnderlineColor(QColor(colour))
    marks = []
    for start, end in _ranges(document, sentences):
        mark = QTextEdit.ExtraSelection()
        cursor = QTextCursor(document)
        cursor.setPosition(start)
        cursor.setPosition(end, QTextCursor.MoveMode.KeepAnchor)
        mark.cursor, mark.format = cursor, look
        marks.append(mark)
    return marks


def plain_sentence(source: str) -> str:
    """Return a sentence as it reads, without marks."""
    return " ".join(text_of(elements_of(source, is_plain=False)).split())


def _ranges(document: QTextDocument, sentences: Sequence[str]) -> Iterator[tuple[int, int]]:
    wanted = [plain_sentence(sentence).lstrip("•-*0123456789.) ") for sentence in sentences]
    block = document.begin()
    while block.isValid():
        text = block.text().replace("\u2028", " ")
        for sentence in wanted:
            place = text.find(sentence) if sentence else -1
            end = place + len(sentence)
            if place < 0 and len(sentence) > _ENOUGH:
                # A formula in it reads otherwise here: from its beginning to the end of the paragraph.
                place, end = text.find(sentence[:_ENOUGH]), len(text)
            if place >= 0:
                yield block.position() + place, block.position() + end
        block = block.next()
