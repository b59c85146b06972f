"""What is written to a terminal."""

from __future__ import annotations

import io
import json

import pytest

from inglenook.app.commands.terminal import StatusLine, harmless, harmless_json, one_line


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain\ttext\n", "plain\ttext\n"),
        ("\x1b[2J", r"\x1b[2J"),
        ("\x9b31m", r"\x9b31m"),
        ("over\rwritten", r"over\rwritten"),
        ("\x07\x00\x7f", r"\x07\x00\x7f"),
        ("line\u2028separator", r"line\u2028separator"),
        ("Grüße, 你好 👩‍👩‍👧 مرحبا", "Grüße, 你好 👩‍👩‍👧 مرحبا"),
        ("half \ud83d", r"half \ud83d"),
    ],
)
def test_what_a_terminal_would_obey_is_shown_instead(text: str, shown: str) -> None:
    assert harmless(text) == shown


def test_json_stays_the_same_json_without_control_characters() -> None:
    value = {"text": 'a\x1b[2J\x9b\x7f\u2028\ud83d\n"你'}

    printed = harmless_json(json.dumps(value, ensure_ascii=False))

    assert json.loads(printed) == value
    assert printed.isprintable()
    assert "你" in printed


def test_text_of_one_line_stays_on_it() -> None:
    assert one_line("a\nb\tc\x1b") == r"a\nb\tc\x1b"


def test_a_step_without_a_size_shows_none() -> None:
    terminal = Terminal()

    StatusLine(terminal).bytes("Loading x:", 0, 1)

    assert terminal.getvalue() == "\r\x1b[KLoading x: ..."


def test_the_status_line_is_written_over_and_cleared() -> None:
    terminal = Terminal()

    with StatusLine(terminal) as status:
        status.bytes("Loading x:", 50, 200_000_000)
        status.bytes("Loading x:", 100_000_000, 200_000_000)
        status.notice("A notice.")

    assert terminal.getvalue() == (
        "\r\x1b[KLoading x: 0 % of 200 MB\r\x1b[KLoading x: 50 % of 200 MB\r\x1b[KA notice.\n"
    )


def test_nothing_is_shown_where_there_is_no_terminal() -> None:
    stream = io.StringIO()

    with StatusLine(stream) as status:
        status.bytes("Loading x:", 1, 2)
        status.notice("A notice.")

    assert stream.getvalue() == ""


def test_an_unknown_total_is_shown_as_going_on() -> None:
    terminal = Terminal()

    StatusLine(terminal).bytes("Fetching \x1bx", 0, 0)

    assert terminal.getvalue() == "\r\x1b[KFetching \\x1bx ..."


def test_nothing_turns_the_order_of_letters_around() -> None:
    assert harmless("gnp\u202eexe.\u202d") == r"gnp\u202eexe.\u202d"
    assert one_line("a\u2066b\u2069.txt") == r"a\u2066b\u2069.txt"
    # Texts in Arabic need the isolates.
    assert harmless("\u2067\u0633\u2069") == "\u2067\u0633\u2069"


def test_what_was_noticed_is_kept_once_for_those_who_read_no_terminal() -> None:
    with StatusLine(io.StringIO()) as status:
        status.notice("A notice.")
        status.notice("A notice.")

    assert status.notices == ["A notice."]
