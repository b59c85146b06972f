"""What the command line writes: text made harmless for a terminal, and a progress line that only a terminal sees.

Text of models, files and errors may hold escape sequences that move the cursor, change colours or worse; control
characters are therefore shown as `\\x1b` and the like, and so are those that turn the order of letters around: a name
must not read as another. Newlines and tabs stay, but for text that belongs on one line.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
import textwrap
from types import TracebackType
from typing import Self, TextIO

from inglenook.engine.memory import format_bytes

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202d\u202e]")
# Texts in Arabic and Hebrew need these; a name or a sentence of an error does not.
_ORDER = re.compile(r"[\u202a-\u202c\u2066-\u2069]")
_CLEAR_LINE = "\r\x1b[K"


def harmless(text: str) -> str:
    """Replace what a terminal would obey by what it can show; lone surrogates too."""
    shown = _CONTROL.sub(lambda match: match.group().encode("unicode_escape").decode(), text)
    return shown.encode(errors="backslashreplace").decode()


def one_line(text: str) -> str:
    """The same for what belongs on one line: a file's name with a newline in it must not look like two lines."""
    shown = harmless(text).replace("\n", r"\n").replace("\t", r"\t")
    return _ORDER.sub(lambda match: f"\\u{ord(match.group()):04x}", shown)


def wrapped(line: str, indent: str) -> str:
    """Break a harmless line at the terminal's width, later lines indented; whole where no terminal shows it."""
    if not (sys.stdout.isatty() or os.environ.get("COLUMNS")):
        return line
    width = max(20 + len(indent), shutil.get_terminal_size().columns)
    return textwrap.fill(
        line,
        width,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
        drop_whitespace=True,
        replace_whitespace=False,
    )


def harmless_json(text: str) -> str:
    """The same for JSON text, in JSON's own notation, so that it still says what it said."""
    shown = _CONTROL.sub(
        lambda match: "\n" if match.group() == "\n" else f"\\u{ord(match.group()):04x}", text
    )
    return re.sub(r"[\ud800-\udfff]", lambda match: f"\\u{ord(match.group()):04x}", shown)


class StatusLine:
    """One line on stderr that is written over while something long goes on; nothing where stderr is no terminal."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = sys.stderr if stream is None else stream
        self._is_terminal = self._stream.isatty()
        self._shown = ""
        self.notices: list[str] = []
        """What was noticed so far, each once, for those who read no terminal."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.clear()

    def bytes(self, what: str, done: int, total: int) -> None:
        """Show how far `what` is; with a total that is no size (0, or 1 of a step that has none), that it goes on."""
        part = f" {100 * done // total} % of {format_bytes(total)}" if total > 1 else " ..."
        self._show(f"{what}{part}")

    def count(self, what: str, done: int, total: int) -> None:
        """Show how many of how many are done."""
        self._show(f"{what} {done:,} of {total:,}")

    def notice(self, sentence: str) -> None:
        """Leave a sentence on a line of its own."""
        if sentence not in self.notices:
            self.notices.append(sentence)
        self.clear()
        if self._is_terminal:
            print(one_line(sentence), file=self._stream, flush=True)

    def clear(self) -> None:
        """Take the line away."""
        if self._shown:
            self._stream.write(_CLEAR_LINE)
            self._stream.flush()
            self._shown = ""

    def _show(self, line: str) -> None:
        line = one_line(line)
        if self._is_terminal and line != self._shown:
            self._stream.write(_CLEAR_LINE + line)
            self._stream.flush()
            self._shown = line
