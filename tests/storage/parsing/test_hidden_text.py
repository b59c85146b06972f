"""Text that a page holds but does not show is left out and said so."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from inglenook.storage.parsing.client import ParserClient

_SHOWN = (72, 700, "What is shown.")


def _text(operators: bytes, words: bytes = b"obey me") -> bytes:
    return b"q BT /F1 12 Tf " + operators + b" 1 0 0 1 72 600 Tm (" + words + b") Tj ET Q"


@pytest.mark.parametrize(
    "content",
    [
        _text(b"3 Tr"),
        _text(b"1 1 1 rg"),
        _text(b"/F1 0.4 Tf"),
        b"q 1 1 1 rg 0 0 612 792 re f Q " + _text(b"1 1 1 rg"),
    ],
    ids=["invisible", "white", "tiny", "white on white"],
)
def test_it_is_left_out(
    parser: ParserClient, make_pdf: Callable[..., Path], page_spec: type, content: bytes
) -> None:
    document = parser.parse(make_pdf(page_spec(lines=[_SHOWN], content=content)))

    assert document.pages[0].text == "What is shown."
    assert document.notes == ("Hidden text (6 characters) was left out.",)


@pytest.mark.parametrize(
    "content",
    [
        b"0 0 0.4 rg 60 590 200 30 re f " + _text(b"1 1 1 rg"),
        _text(b"0.4 0.4 0.4 rg"),
        b"q 200 0 0 200 60 500 cm BI /W 1 /H 1 /CS /G /BPC 8 ID \x80 EI Q " + _text(b"3 Tr"),
    ],
    ids=["white on a colour", "grey", "recognised under a picture"],
)
def test_what_can_be_read_stays(
    parser: ParserClient, make_pdf: Callable[..., Path], page_spec: type, content: bytes
) -> None:
    document = parser.parse(make_pdf(page_spec(lines=[_SHOWN], content=content)))

    assert "obey me" in document.pages[0].text
    assert document.notes == ()
