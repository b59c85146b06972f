"""Tables as text (CSV, TSV): groups of rows, each with the table's header above it.

A group is a page of its own and as large as one passage may be, so every passage says what its columns mean. Places
are the lines of the file. The separator is the one that gives the rows the same number of cells; a text in which none
does is no table.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator
from itertools import chain
from typing import TYPE_CHECKING

from inglenook.storage.parsing.document import ParsedPage
from inglenook.storage.parsing.flow_text import CELL_SEPARATOR

if TYPE_CHECKING:
    import _csv

SEPARATORS = ",;\t|"

_MAX_CELL_CHARS = 1 << 30
_SAMPLE_CHARS = 64_000
_SAMPLE_ROWS = 100
# A name that says it is a table is believed sooner than a text that merely looks like one.
_MIN_ROWS, _MIN_ROWS_UNNAMED = 1, 5
_MIN_CELLS, _MIN_CELLS_UNNAMED = 2, 3
_MIN_EQUAL, _MIN_EQUAL_UNNAMED = 0.7, 1.0


def find_separator(text: str, *, is_named: bool) -> str | None:
    """Return what parts the cells of a table, None where the text is no table; `is_named`: its file is called .csv."""
    sample = text[:_SAMPLE_CHARS]
    if len(text) > len(sample):
        sample = sample[: sample.rfind("\n") + 1] or sample
    best, best_score = None, 0.0
    for separator in SEPARATORS:
        counts = [
            len(row) for _, row in zip(range(_SAMPLE_ROWS), _rows(sample, separator), strict=False) if row
        ]
        if not counts:
            continue
        usual = max(set(counts), key=counts.count)
        equal = counts.count(usual) / len(counts)
        if is_named:
            is_table = len(counts) >= _MIN_ROWS and usual >= _MIN_CELLS and equal >= _MIN_EQUAL
        else:
            is_table = (
                len(counts) >= _MIN_ROWS_UNNAMED
                and usual >= _MIN_CELLS_UNNAMED
                and equal >= _MIN_EQUAL_UNNAMED
            )
        score = equal * min(usual, 20)
        if is_table and score > best_score:
            best, best_score = separator, score
    return best


def row_groups(
    text: str, separator: str, *, count_tokens: Callable[[str], int], max_tokens: int, max_chars: int
) -> Iterator[ParsedPage]:
    """Yield the groups as pages with the lines of the file they stand on. The first row is the header where its cells are words and not numbers."""
    rows = ((line, _as_line(row)) for line, row in _numbered_rows(text, separator))
    first = next(rows, None)
    if first is None:
        return
    header = first[1] if _is_header(next(_rows(text, separator), [])) else ""
    header_tokens = count_tokens(header)
    if header_tokens > max_tokens // 2 or len(header) > max_chars // 2:
        header, header_tokens = "", 0
    lines: list[str] = []
    size, chars, index = header_tokens, len(header), 0
    start, end = first[0]
    for place, line in rows if header else chain([first], rows):
        tokens = count_tokens(line) + 1
        if lines and (size + tokens > max_tokens or chars + len(line) > max_chars):
            yield _group(index, header, lines, start, end)
            index, lines, size, chars = index + 1, [], header_tokens, len(header)
        if not lines:
            start = place[0]
        lines.append(line)
        size += tokens
        chars += len(line) + 1
        end = place[1]
    if lines or header:
        yield _group(index, header, lines, start, end)


def _group(index: int, header: str, lines: list[str], first_line: int, last_line: int) -> ParsedPage:
    text = "\n".join([header, *lines] if header else lines)
    return ParsedPage(index=index, text=text, first_line=first_line, last_line=last_line)


def _numbered_rows(text: str, separator: str) -> Iterator[tuple[tuple[int, int], list[str]]]:
    """Yield each row that is not blank, with the first and last line it stands on."""
    reader = _reader(text, separator)
    before = 0
    for row in reader:
        if any(cell.strip() for cell in row):
            yield (before + 1, reader.line_num), row
        before = reader.line_num


def _rows(text: str, separator: str) -> Iterator[list[str]]:
    try:
        yield from _reader(text, separator)
    except csv.Error:
        return


def _reader(text: str, separator: str) -> _csv.Reader:
    # A quote that is never closed makes the rest of the file one cell, which is then cut as any long text.
    csv.field_size_limit(_MAX_CELL_CHARS)
    return csv.reader(io.StringIO(text, newline="\n"), delimiter=separator)


def _as_line(row: list[str]) -> str:
    return CELL_SEPARATOR.join(" ".join(cell.split()) for cell in row)


def _is_header(row: list[str]) -> bool:
    filled = [cell.strip() for cell in row if cell.strip()]
    return bool(filled) and all(any(c.isalpha() for c in cell) for cell in filled)
