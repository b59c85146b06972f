"""Bytes of a database's pages that belong to no cell: where they lie, and overwriting them with zeros.

`secure_delete` zeroes what is deleted, but not the copies that stay behind when cells move to a neighbouring page. They
lie between a page's list of cells and its first cell, where SQLite neither reads nor expects anything, so zeros there
change nothing, whatever is cut short. Which pages hold cells is told by the pointer map of an auto-vacuum file.

Layout: https://www.sqlite.org/fileformat2.html, sections 1.3, 1.6 and 1.8. For a process of its own (`file_process.py`).
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

_MAGIC = b"SQLite format 3\x00"
_FILE_HEADER = 100
_LOCK_BYTE = 1 << 30  # the page with this byte holds nothing
_INTERIOR, _LEAVES = (2, 5), (10, 13)
_ROOT, _OTHER_CELLS = 1, 5  # kinds of the pointer map


class SlackError(ValueError):
    """The file is not as SQLite writes it; nothing more was overwritten."""


def zero_slack(path: Path) -> int:
    """Overwrite the slack of all pages; return how many bytes of it were not zero.

    No other process may write meanwhile, and the write-ahead file must be empty.

    Raises:
        SlackError: no auto-vacuum database, or a page that does not fit together.
        OSError: the file cannot be read or written.
    """
    num_zeroed = 0
    with open(path, "r+b", buffering=0) as file:
        header = file.read(_FILE_HEADER)
        if len(header) < _FILE_HEADER or header[:16] != _MAGIC:
            raise SlackError("the file does not begin as a database")
        page_size = int.from_bytes(header[16:18], "big")
        page_size = 65536 if page_size == 1 else page_size
        usable = page_size - header[20]
        if page_size < 512 or page_size & (page_size - 1) or usable < 480 or not any(header[52:56]):
            raise SlackError("the file has no pointer map")
        descriptor = file.fileno()
        for number, page in _pages_with_cells(descriptor, page_size, usable):
            start, end = _slack(page, _FILE_HEADER if number == 1 else 0, usable)
            filled = len(page[start:end].replace(b"\0", b""))
            if filled:
                num_zeroed += filled
                _write(descriptor, bytes(end - start), (number - 1) * page_size + start)
        os.fsync(descriptor)
    return num_zeroed


def _pages_with_cells(descriptor: int, page_size: int, usable: int) -> Iterator[tuple[int, bytes]]:
    """Yield the pages of b-trees with their numbers, from 1."""
    num_pages = os.fstat(descriptor).st_size // page_size
    yield 1, os.pread(descriptor, page_size, 0)
    entries = usable // 5
    lock_page = _LOCK_BYTE // page_size + 1
    for group in range(2, num_pages + 1, entries + 1):
        map_page = group + 1 if group == lock_page else group
        pages = os.pread(descriptor, (entries + 2) * page_size, (map_page - 1) * page_size)
        count = min(entries - (map_page - group), len(pages) // page_size - 1)
        for i in range(count):
            number = map_page + 1 + i
            if pages[5 * i] in (_ROOT, _OTHER_CELLS) and number != lock_page:
                yield number, pages[(i + 1) * page_size : (i + 2) * page_size]


def _slack(page: bytes, header: int, usable: int) -> tuple[int, int]:
    """Return where the slack of a page begins and ends."""
    kind = page[header]
    if kind not in _INTERIOR + _LEAVES:
        raise SlackError(f"a page of cells has the kind {kind}")
    num_cells = int.from_bytes(page[header + 3 : header + 5], "big")
    end = int.from_bytes(page[header + 5 : header + 7], "big") or 65536
    start = header + (12 if kind in _INTERIOR else 8) + 2 * num_cells
    if not start <= end <= usable:
        raise SlackError(f"a page has {num_cells} cells and the first at {end}")
    return start, end


def _write(descriptor: int, data: bytes, offset: int) -> None:
    while data:
        written = os.pwrite(descriptor, data, offset)
        data, offset = data[written:], offset + written
