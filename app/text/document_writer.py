"""Writes paragraphs, code lines and tables into a QTextDocument, as text in formats, never as HTML.

`show` compares what stands with what should stand and rewrites only from the first difference on, so a streamed reply
costs its last lines. Code boxes and quote bars are not drawn here: blocks carry marks (`CODE`, `QUOTE`) which the
browser paints from.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from PySide6.QtCore import Qt
from PySide6.QtGui import (
    QBrush,
    QColor,
    QFont,
    QTextBlockFormat,
    QTextCharFormat,
    QTextCursor,
    QTextDocument,
    QTextFormat,
    QTextFrameFormat,
    QTextListFormat,
    QTextOption,
    QTextTableFormat,
)

from inglenook.app.text.maths_drawings import MathsDrawings
from inglenook.app.text.maths_object import MATHS_TYPE, OBJECT, MathsObject, maths_format
from inglenook.app.text.rich_text import Element, Paragraph, Span, Table
from inglenook.app.window.theme import READING, Theme

# Marks on block formats: the edge of a code line ("first", "middle" ...), its language, the depth of a quote,
# a block that only holds a place, a rule.
CODE = QTextFormat.Property.UserProperty + 1
LANGUAGE = CODE + 1
QUOTE = CODE + 2
SPACER = CODE + 3
RULE = CODE + 4

CODE_PAD = 12
CODE_HEADER = 30
QUOTE_INDENT = 16
LIST_INDENT = 26
MAX_DEPTH = 6
_HEADING_FACTORS = (1.0, 1.5, 1.3, 1.15, 1.05, 1.0, 1.0)
_ALIGNMENTS = {
    "left": Qt.AlignmentFlag.AlignLeft,
    "center": Qt.AlignmentFlag.AlignHCenter,
    "right": Qt.AlignmentFlag.AlignRight,
}
_BULLETS = (
    QTextListFormat.Style.ListDisc,
    QTextListFormat.Style.ListCircle,
    QTextListFormat.Style.ListSquare,
)


class DocumentWriter:
    """Keeps one document showing a list of elements; formulas as text without `maths`."""

    def __init__(self, document: QTextDocument, theme: Theme, maths: MathsDrawings | None = None) -> None:
        self._document = document
        self._theme = theme
        self._maths = maths
        if maths is not None:
            self._object = MathsObject(maths)
            document.documentLayout().registerHandler(MATHS_TYPE, self._object)
        # The first element with a formula that is not drawn yet.
        self._first_awaited: int | None = None
        self._shown: list[Element] = []
        self._starts: list[int] = []
        self._previous: Element | None = None
        self._is_quiet = False
        self._formats = _Formats(theme)
        document.setUndoRedoEnabled(False)
        document.setDocumentMargin(0)
        option = QTextOption()
        option.setWrapMode(QTextOption.WrapMode.WrapAtWordBoundaryOrAnywhere)
        document.setDefaultTextOption(option)
        self.restyle()

    def restyle(self) -> None:
        """Take fonts and colours of the theme anew; the next `show` writes everything."""
        self._formats = _Formats(self._theme, is_quiet=self._is_quiet)
        self._document.setDefaultFont(self._theme.font(READING))
        self._document.setIndentWidth(self._theme.px(LIST_INDENT))
        self.clear()

    def set_quiet(self, is_quiet: bool) -> None:
        """Write in the quieter colour of what is beside the matter, or in the usual one; call `show` next."""
        if is_quiet != self._is_quiet:
            self._is_quiet = is_quiet
            self.restyle()

    def show(self, elements: Sequence[Element], *, previous: Element | None = None) -> None:
        """Make the document show `elements`; `previous` stood just before them in another document."""
        if previous != self._previous:
            self.clear()
            self._previous = previous
        keep = 0
        for old, new in zip(self._shown, elements, strict=False):
            if old != new:
                break
            keep += 1
        if self._first_awaited is not None:
            # It may be drawn by now.
            keep = min(keep, self._first_awaited)
        if keep == len(self._shown) == len(elements):
            return
        self._first_awaited = None
        cursor = QTextCursor(self._document)
        cursor.beginEditBlock()
        is_fresh = self._cut_back(cursor, keep)
        for index in range(keep, len(elements)):
            before = elements[index - 1] if index else previous
            element = elements[index]
            if isinstance(element, Table):
                self._begin(cursor, self._formats.spacer, is_fresh=is_fresh)
                self._write_table(cursor, element, index)
                # The block that has to follow a table; it has no upper margin there, so the next element gets its own.
                cursor.setBlockFormat(self._formats.spacer)
                is_fresh = False
            else:
                self._begin(cursor, self._formats.block(element, before), is_fresh=is_fresh)
                self._write(cursor, element, index)
                is_fresh = False
        cursor.endEditBlock()
        self._shown = list(elements)

    def clear(self) -> None:
        """Empty the document."""
        self._document.clear()
        self._shown, self._starts = [], []
        self._first_awaited = None

    @property
    def awaits_maths(self) -> bool:
        """Whether a formula is shown as text until it is drawn; then `show` puts it in its place."""
        return self._first_awaited is not None

    def _cut_back(self, cursor: QTextCursor, keep: int) -> bool:
        """Remove all elements from `keep` on; say whether an empty block is left for the next one."""
        if keep < len(self._shown):
            cursor.setPosition(self._starts[keep])
            cursor.movePosition(QTextCursor.MoveOperation.End, QTextCursor.MoveMode.KeepAnchor)
            cursor.removeSelectedText()
            del self._starts[keep:]
            return True
        cursor.movePosition(QTextCursor.MoveOperation.End)
        return not self._shown

    def _begin(self, cursor: QTextCursor, block: QTextBlockFormat, *, is_fresh: bool) -> None:
        plain = self._formats.characters(Span(""))
        if is_fresh:
            cursor.setBlockFormat(block)
            cursor.setBlockCharFormat(plain)
        else:
            cursor.insertBlock(block, plain)
        self._starts.append(cursor.position())

    def _write(self, cursor: QTextCursor, paragraph: Paragraph, index: int) -> None:
        if paragraph.marker:
            cursor.createList(self._formats.list_item(paragraph))
        for span in paragraph.spans:
            look = self._formats.characters(span, paragraph.kind, paragraph.level)
            is_drawn = self._insert(cursor, span, look, index)
            if is_drawn and paragraph.kind == "maths":
                centred = QTextBlockFormat()
                centred.setAlignment(Qt.AlignmentFlag.AlignHCenter)
                cursor.mergeBlockFormat(centred)

    def _insert(self, cursor: QTextCursor, span: Span, look: QTextCharFormat, index: int) -> bool:
        """Insert a span; say whether it is a formula that is drawn."""
        is_display = span.maths == "display"
        if span.maths and self._maths is not None:
            drawing = self._maths.get(span.text, is_display=is_display)
            if drawing is not None:
                made = maths_format(look, look.font(), drawing, span.text, is_display=is_display)
                cursor.insertText(OBJECT, made)
                return True
            if self._first_awaited is None and self._maths.is_awaited(span.text, is_display=is_display):
                self._first_awaited = index
        cursor.insertText(span.text.replace("\n", "\u2028"), look)
        return False

    def _write_table(self, cursor: QTextCursor, table: Table, index: int) -> None:
        columns = len(table.alignments)
        grid = cursor.insertTable(len(table.rows), columns, self._formats.table(table))
        for row, cells in enumerate(table.rows):
            for column in range(columns):
                cell = grid.cellAt(row, column)
                inside = cell.firstCursorPosition()
                aligned = QTextBlockFormat()
                aligned.setAlignment(_ALIGNMENTS[table.alignments[column]])
                inside.setBlockFormat(aligned)
                if row == 0:
                    cell.setFormat(self._formats.header_cell())
                for span in cells[column] if column < len(cells) else ():
                    look = span._replace(bold=span.bold or row == 0)
                    self._insert(inside, look, self._formats.characters(look), index)
        cursor.movePosition(QTextCursor.MoveOperation.End)


class _Formats:
    """The formats of one look, made once each."""

    def __init__(self, theme: Theme, *, is_quiet: bool = False) -> None:
        self._theme = theme
        self._is_quiet = is_quiet
        self._body = theme.font(READING)
        self._code = theme.code_font()
        self.spacer = QTextBlockFormat()
        self.spacer.setLineHeight(1, QTextBlockFormat.LineHeightTypes.FixedHeight.value)
        self.spacer.setProperty(SPACER, True)
        self._characters = cache(self._make_characters)
        self._block = cache(self._make_block)

    def characters(self, span: Span, kind: str = "text", level: int = 0) -> QTextCharFormat:
        """The format of a span in a paragraph of a kind."""
        return self._characters(span._replace(text=""), kind, level)

    def block(self, paragraph: Paragraph, before: Element | None) -> QTextBlockFormat:
        """The format of a paragraph, whose upper distance depends on what stands before it."""
        key = paragraph._replace(spans=(), marker="")
        return self._block(key, self._gap(paragraph, before))

    def _make_block(self, paragraph: Paragraph, gap: int) -> QTextBlockFormat:
        px = self._theme.px
        block = QTextBlockFormat()
        block.setTopMargin(gap)
        quote, indent = min(paragraph.quote, MAX_DEPTH), min(paragraph.indent, MAX_DEPTH)
        left = quote * px(QUOTE_INDENT)
        height = 114
        if paragraph.kind == "code":
            block.setProperty(CODE, paragraph.edge or "middle")
            block.setProperty(LANGUAGE, paragraph.info)
            block.setLayoutDirection(Qt.LayoutDirection.LeftToRight)
            block.setRightMargin(px(CODE_PAD))
            left += px(CODE_PAD)
            height = 112
            if paragraph.edge in ("last", "only"):
                block.setBottomMargin(px(CODE_PAD))
        elif paragraph.kind == "rule":
            block.setProperty(RULE, True)
            height = 60
        elif paragraph.kind == "heading":
            block.setHeadingLevel(paragraph.level)
            height = 105
        if quote:
            block.setProperty(QUOTE, quote)
        block.setLeftMargin(left)
        block.setLineHeight(height, QTextBlockFormat.LineHeightTypes.ProportionalHeight.value)
        if indent:
            block.setIndent(indent)
        return block

    def _gap(self, element: Paragraph, before: Element | None) -> int:
        gap = 10
        if isinstance(before, Paragraph):
            if element.kind == before.kind == "line":
                gap = 0
            elif element.kind == "heading":
                gap = 22 if element.level < 3 else 16
            elif before.kind == "heading":
                gap = 6
            elif element.marker and before.indent and before.kind == "text":
                gap = 4
        elif isinstance(before, Table):
            gap = 14
        if element.kind == "code":
            if element.edge in ("first", "only"):
                gap = CODE_HEADER + (gap + 2 if before else 0)
            else:
                gap = 0
        elif before is None:
            gap = 0
        if isinstance(before, Paragraph) and before.kind == "code" and before.edge in ("last", "only"):
            gap += CODE_PAD + 4
        return self._theme.px(gap)

    def list_item(self, paragraph: Paragraph) -> QTextListFormat:
        """A list of one item, which keeps numbers as they were written."""
        item = QTextListFormat()
        # The block's own indent counts too.
        item.setIndent(0)
        if paragraph.marker == "•":
            item.setStyle(_BULLETS[(paragraph.indent - 1) % 3])
        else:
            item.setStyle(QTextListFormat.Style.ListDecimal)
            item.setStart(int(paragraph.marker[:-1]))
            item.setNumberSuffix(paragraph.marker[-1])
        return item

    def _make_characters(self, span: Span, kind: str, level: int) -> QTextCharFormat:
        colours = self._theme.colours
        characters = QTextCharFormat()
        font = QFont(self._code if span.code else self._body)
        colour = colours.muted if self._is_quiet else colours.text
        if kind == "heading":
            font.setPointSizeF(font.pointSizeF() * _HEADING_FACTORS[level])
            font.setWeight(QFont.Weight.DemiBold)
        if span.bold:
            font.setWeight(QFont.Weight.Bold)
        font.setItalic(span.italic)
        font.setStrikeOut(span.strike)
        if kind == "code":
            colour = colours.tokens.get(span.token, colour)
        elif span.code:
            characters.setBackground(QBrush(QColor(colours.inline_code)))
        if span.link:
            characters.setAnchor(True)
            characters.setAnchorHref(span.link)
            colour = colours.accent
            font.setUnderline(True)
        characters.setFont(font)
        characters.setForeground(QColor(colour))
        return characters

    def table(self, table: Table) -> QTextTableFormat:
        """The look of a table."""
        px, colours = self._theme.px, self._theme.colours
        grid = QTextTableFormat()
        grid.setBorder(1)
        grid.setBorderCollapse(True)
        grid.setBorderStyle(QTextFrameFormat.BorderStyle.BorderStyle_Solid)
        grid.setBorderBrush(QColor(colours.border))
        grid.setCellPadding(px(7))
        grid.setCellSpacing(0)
        grid.setTopMargin(px(12))
        grid.setBottomMargin(px(4))
        left = min(table.quote, MAX_DEPTH) * px(QUOTE_INDENT) + min(table.indent, MAX_DEPTH) * px(LIST_INDENT)
        grid.setLeftMargin(left)
        grid.setHeaderRowCount(1)
        return grid

    def header_cell(self) -> QTextCharFormat:
        """The ground of a table's first row."""
        cell = QTextCharFormat()
        cell.setBackground(QColor(self._theme.colours.code))
        return cell
