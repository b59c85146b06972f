"""Each type through the parser process: what it is taken for, its places, and the user's choice of encoding."""

from __future__ import annotations

from pathlib import Path

import pytest

from inglenook.storage.parsing.client import ParserClient
from inglenook.storage.parsing.errors import NoTextError, UnsupportedTypeError


def test_a_table_has_the_header_in_every_passage(parser: ParserClient, tmp_path: Path) -> None:
    path = tmp_path / "people.csv"
    path.write_text("name;year\n" + "".join(f"Person number {i};{1000 + i}\n" for i in range(200)))

    document = parser.parse(path)

    assert document.kind == "csv"
    assert len(document.chunks) == len(document.pages) > 5
    assert all(chunk.text.startswith("name | year\n") for chunk in document.chunks)
    assert (document.chunks[0].first_line, document.chunks[-1].last_line) == (2, 201)


def test_a_page_of_the_web_is_known_under_any_name(parser: ParserClient, tmp_path: Path) -> None:
    path = tmp_path / "saved.txt"
    path.write_text("<!DOCTYPE html><title>Guide</title><h1>Setup</h1><p>Turn the key.<p hidden>No.")

    document = parser.parse(path)

    assert (document.kind, document.title) == ("html", "Guide")
    assert [(chunk.text, chunk.heading) for chunk in document.chunks] == [
        ("Setup\n\nTurn the key.", ("Setup",))
    ]
    assert document.notes == ("Hidden text (3 characters) was left out.",)


def test_an_encoding_that_was_guessed_wrongly_can_be_chosen(parser: ParserClient, tmp_path: Path) -> None:
    path = tmp_path / "old.txt"
    path.write_bytes("Grüße aus Köln".encode("cp437"))

    guessed, chosen = parser.parse(path), parser.parse(path, encoding="cp437")

    assert guessed.is_encoding_guessed
    assert chosen.pages[0].text == "Grüße aus Köln"
    assert (chosen.encoding, chosen.is_encoding_guessed) == ("cp437", False)
    with pytest.raises(UnsupportedTypeError, match="no text encoding"):
        parser.parse(path, encoding="hex")


def test_a_page_that_only_scripts_would_fill_has_no_text(parser: ParserClient, tmp_path: Path) -> None:
    path = tmp_path / "app.html"
    path.write_text("<html><body><div id=app></div><script>render('everything')</script>")

    with pytest.raises(NoTextError, match="scripts"):
        parser.parse(path)
