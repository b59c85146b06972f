"""What a message says as HTML or plain text that stands alone: for the clipboard and for exported files.

It is written from the same elements that the window shows, so nothing gets out that did not come through
`markdown.py`: every text is escaped, there is no picture, no script and no address but the links that are shown.
"""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence
from itertools import groupby

from inglenook.app.text.markdown_blocks import StreamingMarkdown
from inglenook.app.text.rich_text import Element, Paragraph, Span, Table


def elements_of(text: str, *, is_plain: bool) -> list[Element]:
    """Read a whole message; the words of a user are plain."""
    blocks = StreamingMarkdown.of(text, is_plain=is_plain)
    return [element for part in range(blocks.num_parts) for element in blocks.elements(part)]


def html_of(elements: Iterable[Element]) -> str:
    """Return HTML without a head."""
    writer = _Writer()
    for is_code, group in groupby(elements, lambda e: isinstance(e, Paragraph) and e.kind == "code"):
        if is_code:
            writer.code([paragraph for paragraph in group if isinstance(paragraph, Paragraph)])
        else:
            for element in group:
                writer.take(element)
    return writer.end()


def text_of(elements: Iterable[Element]) -> str:
    """Return plain text: list marks and quote bars kept, cells parted by tabs, no other marks."""
    lines: list[str] = []
    before: Element | None = None
    for element in elements:
        is_together = (
            isinstance(element, Paragraph)
            and isinstance(before, Paragraph)
            and (
                (element.kind == before.kind == "code" and element.edge not in ("first", "only"))
                or element.kind == before.kind == "line"
                or (bool(element.marker) and bool(before.indent))
            )
        )
        if before is not None and not is_together:
            lines.append("")
        lead = "> " * element.quote
        if isinstance(element, Table):
            rows = ("\t".join(_words(cell) for cell in row) for row in element.rows)
            lines += [lead + row for row in rows]
        elif element.kind == "rule":
            lines.append(lead + "-" * 20)
        else:
            indent = "  " * max(0, element.indent - bool(element.marker))
            mark = f"{element.marker} " if element.marker else ""
            lines += [lead + indent + mark + line for line in _words(element.spans).split("\n")]
        before = element
    return "\n".join(lines)


class _Writer:
    def __init__(self) -> None:
        self._out: list[str] = []
        self._open: list[str] = []  # the lists and quotes around what comes next

    def take(self, element: Element) -> None:
        """Write a paragraph or table."""
        marker = element.marker if isinstance(element, Paragraph) else ""
        self._enclose(element.quote, element.indent, marker)
        if isinstance(element, Table):
            self._out.append(_table(element))
        elif element.kind == "rule":
            self._out.append("<hr>")
        elif element.kind == "heading":
            self._out.append(f"<h{element.level}>{_spans(element.spans)}</h{element.level}>")
        else:
            self._out.append(f"<p>{_spans(element.spans)}</p>")

    def code(self, lines: Sequence[Paragraph]) -> None:
        """Write code boxes; each begins where its edge says so."""
        for line in lines:
            if line.edge in ("first", "only"):
                self._enclose(line.quote, line.indent, "")
                self._out.append("<pre><code>")
            self._out.append(html.escape(_words(line.spans)))
            self._out.append("</code></pre>" if line.edge in ("last", "only") else "\n")

    def end(self) -> str:
        """Close what is open and return all."""
        self._close(0)
        return "".join(self._out)

    def _enclose(self, quote: int, indent: int, marker: str) -> None:
        kind = "ul" if marker == "•" else "ol"
        wanted = ["blockquote"] * quote
        lists = [name for name in self._open if name != "blockquote"]
        wanted += lists[: max(0, indent - bool(marker))] if marker else lists[:indent]
        if marker:
            deeper = lists[len(wanted) - quote : len(wanted) - quote + 1]
            wanted.append(kind if deeper != [kind] else deeper[0])
        same = 0
        while same < min(len(wanted), len(self._open)) and wanted[same] == self._open[same]:
            same += 1
        self._close(same)
        for name in wanted[same:]:
            self._out.append(f"<{name}>" + ("<li>" if name != "blockquote" and not marker else ""))
            self._open.append(name)
        if marker:
            is_new = same < len(wanted)
            start = "" if marker == "•" else f' value="{int(marker[:-1])}"'
            self._out.append(("" if is_new else "</li>") + f"<li{start}>")

    def _close(self, size: int) -> None:
        while len(self._open) > size:
            name = self._open.pop()
            self._out.append(("" if name == "blockquote" else "</li>") + f"</{name}>")


def _table(table: Table) -> str:
    rows = []
    for number, cells in enumerate(table.rows):
        tag = "td" if number else "th"
        shown = "".join(
            f'<{tag} style="text-align:{align}">{_spans(cell)}</{tag}>'
            for align, cell in zip(table.alignments, cells, strict=False)
        )
        rows.append(f"<tr>{shown}</tr>")
    return f"<table>{''.join(rows)}</table>"


def _spans(spans: Iterable[Span]) -> str:
    return "".join(_span(span) for span in spans)


def _span(span: Span) -> str:
    shown = html.escape(span.text).replace("\n", "<br>").replace("\u2028", "<br>")
    for is_set, tag in ((span.code, "code"), (span.bold, "strong"), (span.italic, "em"), (span.strike, "s")):
        if is_set:
            shown = f"<{tag}>{shown}</{tag}>"
    if span.link:
        shown = f'<a href="{html.escape(span.link)}" rel="noreferrer">{shown}</a>'
    return shown


def _words(spans: Iterable[Span]) -> str:
    return "".join(span.text for span in spans).replace("\u2028", "\n")
