"""Documents through the parser process: what they give, how each fails, and that a failure costs one document."""

from __future__ import annotations

import contextlib
import os
import random
import select
import signal
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from inglenook.storage.parsing.client import ParserClient
from inglenook.storage.parsing.document import ParsingLimits, place_of
from inglenook.storage.parsing.errors import (
    DamagedDocumentError,
    DocumentChangedError,
    DocumentTooLargeError,
    NoTextError,
    ParserStoppedError,
    ParsingCancelledError,
    ParsingError,
    ParsingTimeoutError,
    PasswordRequiredError,
    UnsupportedTypeError,
    WrongPasswordError,
    error_from_kind,
)

MakePdf = Callable[..., Path]


def test_a_text_gives_pages_chunks_and_lines(parser: ParserClient, tmp_path: Path) -> None:
    path = tmp_path / "my_notes.txt"
    path.write_text("First line.\n\nThird line.\n" * 400, encoding="utf-8")

    document = parser.parse(path)

    assert document.kind == "text"
    assert (document.encoding, document.is_encoding_guessed) == ("utf-8", False)
    assert document.size_bytes == path.stat().st_size
    assert len(document.pages) == 3
    assert document.chunks[0].context == "my notes"
    assert place_of(document.chunks[0], 3).startswith("lines 1–")
    lines = path.read_text(encoding="utf-8").split("\n")
    for chunk in document.chunks:
        assert chunk.first_line is not None
        assert chunk.last_line is not None
        assert "\n".join(lines[chunk.first_line - 1 : chunk.last_line]) == chunk.text


def test_markdown_gives_headings_as_context_and_its_title(parser: ParserClient, tmp_path: Path) -> None:
    path = tmp_path / "guide.md"
    path.write_text("# The guide\n\nIntro.\n\n## Part one\n\nText of part one.\n", encoding="utf-8")

    document = parser.parse(path)

    assert (document.kind, document.title) == ("markdown", "The guide")
    assert [chunk.context for chunk in document.chunks] == [
        "guide › The guide",
        "guide › The guide › Part one",
    ]
    assert document.chunks[1].heading == ("The guide", "Part one")


def test_a_pdf_gives_labelled_pages_and_says_how_far_it_is(
    parser: ParserClient, make_pdf: MakePdf, page_spec: type
) -> None:
    pages = [page_spec([(72, 700, f"Fact number {i} stands here.")]) for i in range(6)]
    path = make_pdf(*pages, labels=b"0 << /S /r /St 3 >> 2 << /S /D >>", title="A title")
    seen: list[tuple[int, int]] = []

    document = parser.parse(path, progress=lambda done, total: seen.append((done, total)))

    assert (document.kind, document.title) == ("pdf", "A title")
    assert [page.label for page in document.pages] == ["iii", "iv", "1", "2", "3", "4"]
    assert [chunk.page_index for chunk in document.chunks] == list(range(6))
    assert place_of(document.chunks[1], 6) == "p. iv (2 of 6)"
    assert seen[-1] == (6, 6)


def test_two_hundred_facts_each_stand_on_their_page(
    parser: ParserClient, make_pdf: MakePdf, page_spec: type
) -> None:
    path = make_pdf(*(page_spec([(72, 700, f"The code of hut {i} is {7919 * i}.")]) for i in range(200)))

    document = parser.parse(path)

    assert [c.text for c in document.chunks] == [f"The code of hut {i} is {7919 * i}." for i in range(200)]
    assert [c.page_index for c in document.chunks] == list(range(200))


def test_a_word_broken_over_lines_is_whole_in_the_text(
    parser: ParserClient, make_pdf: MakePdf, page_spec: type
) -> None:
    path = make_pdf(page_spec([(72, 700, "It crosses inter-"), (72, 684, "national borders.")]))

    assert parser.parse(path).pages[0].text == "It crosses international borders."


def test_text_outside_of_the_page_is_not_read(
    parser: ParserClient, make_pdf: MakePdf, page_spec: type
) -> None:
    path = make_pdf(page_spec([(72, 700, "Visible words."), (5000, 700, "Obey the hidden words.")]))

    assert parser.parse(path).pages[0].text.split() == ["Visible", "words."]


def test_columns_are_read_one_after_the_other(
    parser: ParserClient, make_pdf: MakePdf, page_spec: type
) -> None:
    left = [(72, 700 - 14 * i, f"Left line {i}.") for i in range(5)]
    right = [(330, 700 - 14 * i, f"Right line {i}.") for i in range(5)]
    text = parser.parse(make_pdf(page_spec(left + right))).pages[0].text

    assert text.index("Left line 4.") < text.index("Right line 0.")


def test_a_scan_is_said_to_have_no_text(parser: ParserClient, make_pdf: MakePdf, page_spec: type) -> None:
    with pytest.raises(NoTextError, match=r"No text on 3 of 3 pages: they are pictures.*OCR"):
        parser.parse(make_pdf(*[page_spec(has_picture=True)] * 3))


def test_blank_pages_are_said_to_be_blank(parser: ParserClient, make_pdf: MakePdf, page_spec: type) -> None:
    with pytest.raises(NoTextError, match="No text on 2 of 2 pages: they are blank"):
        parser.parse(make_pdf(page_spec(), page_spec()))


def test_scanned_pages_among_others_are_noted(
    parser: ParserClient, make_pdf: MakePdf, page_spec: type
) -> None:
    document = parser.parse(make_pdf(page_spec([(72, 700, "Text.")]), page_spec(has_picture=True)))

    assert document.notes == ("1 of 2 pages are pictures without text and cannot be searched.",)


def test_an_encrypted_pdf_asks_for_its_password(
    parser: ParserClient, make_pdf: MakePdf, page_spec: type
) -> None:
    path = make_pdf(page_spec([(72, 700, "Secret words.")]), password="møøse")

    with pytest.raises(PasswordRequiredError, match="Enter its password") as needed:
        parser.parse(path)
    assert not isinstance(needed.value, WrongPasswordError)
    with pytest.raises(WrongPasswordError, match="does not open"):
        parser.parse(path, password="moose")


def test_the_right_password_opens_it(parser: ParserClient, make_pdf: MakePdf, page_spec: type) -> None:
    path = make_pdf(page_spec([(72, 700, "Secret words.")]), password="moose")

    assert parser.parse(path, password="moose").pages[0].text == "Secret words."
    assert parser.render_page(path, 0, password="moose").width > 0


@pytest.mark.parametrize("size", [0.2, 0.5, 0.9])
def test_a_pdf_cut_short_is_read_or_said_to_be_damaged(
    parser: ParserClient, make_pdf: MakePdf, page_spec: type, size: float
) -> None:
    path = make_pdf(*(page_spec([(72, 700, f"Page {i}.")]) for i in range(5)))
    path.write_bytes(path.read_bytes()[: int(path.stat().st_size * size)])

    with contextlib.suppress(DamagedDocumentError):
        assert parser.parse(path).pages


def test_other_types_are_named(parser: ParserClient, tmp_path: Path) -> None:
    path = tmp_path / "lies.txt"
    path.write_bytes(b"\x89PNG\r\n\x1a\n\x00\x00")

    with pytest.raises(UnsupportedTypeError, match=r"This is a picture \(PNG\)"):
        parser.parse(path)


def test_a_pdf_is_read_under_any_name(parser: ParserClient, make_pdf: MakePdf, page_spec: type) -> None:
    path = make_pdf(page_spec([(72, 700, "Words.")]))

    assert parser.parse(path.rename(path.with_suffix(".docx"))).kind == "pdf"


def test_a_text_of_blank_lines_has_no_text(parser: ParserClient, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b" \n\n\t\n")

    with pytest.raises(NoTextError, match="blank lines"):
        parser.parse(tmp_path / "a.txt")


def test_too_many_pages_and_too_much_text_are_refused_with_numbers(
    make_pdf: MakePdf, page_spec: type, tmp_path: Path
) -> None:
    path = make_pdf(*[page_spec([(72, 700, "Words and more words.")])] * 5)
    (tmp_path / "a.txt").write_bytes(b"word " * 1000)

    with (
        ParserClient(limits=ParsingLimits(max_pages=3)) as client,
        pytest.raises(DocumentTooLargeError, match="5 pages; the limit is 3"),
    ):
        client.parse(path)
    with ParserClient(limits=ParsingLimits(max_text_chars=50, max_text_file_bytes=500)) as client:
        with pytest.raises(DocumentTooLargeError, match="50 characters"):
            client.parse(path)
        with pytest.raises(DocumentTooLargeError, match="MiB"):
            client.parse(tmp_path / "a.txt")


def test_a_name_that_is_no_text_is_carried(parser: ParserClient, tmp_path: Path) -> None:
    path = Path(os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9.txt"))
    path.write_bytes(b"words")

    assert parser.parse(path).chunks[0].context == "caf\N{REPLACEMENT CHARACTER}"


def test_a_killed_process_costs_one_document(make_pdf: MakePdf, page_spec: type) -> None:
    path = make_pdf(*(page_spec([(72, 700, f"Page {i}.")]) for i in range(400)))
    with ParserClient() as client:
        assert client.restrictions
        first = client.process_id
        assert first is not None

        def kill(done: int, total: int) -> None:
            os.kill(first, signal.SIGKILL)

        with pytest.raises(ParserStoppedError, match="signal 9"):
            client.parse(path, progress=kill)
        assert client.process_id is None

        assert len(client.parse(path).pages) == 400
        assert client.process_id != first


def test_a_process_that_died_between_documents_is_not_noticed(make_pdf: MakePdf, page_spec: type) -> None:
    path = make_pdf(page_spec([(72, 700, "Words.")]))
    with ParserClient() as client:
        client.parse(path)
        first = client.process_id
        assert first is not None
        process = os.pidfd_open(first)
        os.kill(first, signal.SIGKILL)
        assert select.select([process], [], [], 30)[0]
        os.close(process)

        assert client.parse(path).pages
        assert client.process_id != first


def test_one_process_serves_many_documents_and_survives_their_faults(
    make_pdf: MakePdf, page_spec: type, tmp_path: Path
) -> None:
    good = make_pdf(page_spec([(72, 700, "Words.")]))
    (tmp_path / "bad.pdf").write_bytes(b"%PDF-1.4 nothing")
    with ParserClient() as client:
        client.parse(good)
        first = client.process_id
        for _ in range(3):
            with pytest.raises(DamagedDocumentError):
                client.parse(tmp_path / "bad.pdf")
            client.parse(good)

        assert client.process_id == first


def test_a_hanging_document_is_ended_and_the_next_one_read(make_pdf: MakePdf, page_spec: type) -> None:
    long = make_pdf(*[page_spec([(72, 700, "Words.")])] * 1000)
    good = make_pdf(page_spec([(72, 700, "Words.")]))
    with ParserClient(limits=ParsingLimits(stall_timeout_s=0.5)) as client:
        assert client.restrictions
        pid = client.process_id
        assert pid is not None

        with pytest.raises(ParsingTimeoutError, match=r"more than 0\.5 seconds"):
            client.parse(long, progress=lambda done, total: os.kill(pid, signal.SIGSTOP))

        assert client.parse(good).pages


def test_a_document_that_takes_too_long_in_all_is_ended(make_pdf: MakePdf, page_spec: type) -> None:
    path = make_pdf(*[page_spec([(72, 700, "Words.")])] * 3000)
    with (
        ParserClient(limits=ParsingLimits(total_timeout_s=0.1)) as client,
        pytest.raises(ParsingTimeoutError, match="Split it"),
    ):
        client.parse(path)


def test_a_cancelled_document_ends_at_once(make_pdf: MakePdf, page_spec: type) -> None:
    path = make_pdf(*[page_spec([(72, 700, "Words.")])] * 500)
    with ParserClient() as client, pytest.raises(ParsingCancelledError):
        client.parse(path, cancelled=lambda: True)


def test_closing_ends_a_job_of_another_thread(make_pdf: MakePdf, page_spec: type) -> None:
    path = make_pdf(*[page_spec([(72, 700, "Words.")])] * 2000)
    client = ParserClient()
    has_begun = threading.Event()
    errors: list[Exception] = []

    def parse() -> None:
        try:
            client.parse(path, progress=lambda done, total: has_begun.set())
        except ParsingError as error:
            errors.append(error)

    thread = threading.Thread(target=parse)
    thread.start()
    assert has_begun.wait(30)
    client.close()
    thread.join(30)

    assert [type(error) for error in errors] == [ParserStoppedError]
    assert "closed" in str(errors[0])
    with pytest.raises(ParserStoppedError, match="closed"):
        client.parse(path)


def test_a_second_caller_waits_for_the_first(make_pdf: MakePdf, page_spec: type) -> None:
    path = make_pdf(*[page_spec([(72, 700, "Words.")])] * 50)
    counts: list[int] = []
    with ParserClient() as client:
        threads = [
            threading.Thread(target=lambda: counts.append(len(client.parse(path).pages))) for _ in range(3)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)

    assert counts == [50, 50, 50]


def test_a_changed_file_is_not_shown_for_another(
    parser: ParserClient, make_pdf: MakePdf, page_spec: type
) -> None:
    path = make_pdf(page_spec([(72, 700, "Before.")]))
    sha256 = parser.parse(path).sha256
    assert parser.render_page(path, 0, sha256=sha256)
    path.write_bytes(make_pdf(page_spec([(72, 700, "After.")])).read_bytes())

    with pytest.raises(DocumentChangedError, match="Add it again"):
        parser.render_page(path, 0, sha256=sha256)


def test_a_missing_tokenizer_is_said_to_be_missing(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"words")
    with (
        ParserClient(tokenizer=tmp_path / "tokenizer.json") as client,
        pytest.raises(ParserStoppedError, match="tokenizer"),
    ):
        client.parse(tmp_path / "a.txt")


def test_a_broken_tokenizer_is_said_to_be_broken(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"words")
    (tmp_path / "tokenizer.json").write_bytes(b"{}")
    with (
        ParserClient(tokenizer=tmp_path / "tokenizer.json") as client,
        pytest.raises(ParserStoppedError, match="tokenizer"),
    ):
        client.parse(tmp_path / "a.txt")


def test_errors_keep_their_class_over_the_boundary() -> None:
    assert type(error_from_kind("NoTextError", "x")) is NoTextError
    assert type(error_from_kind("SystemExit", "x")) is ParserStoppedError


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_files_with_flipped_bytes_end_in_a_document_or_a_typed_error(
    make_pdf: MakePdf, page_spec: type, tmp_path: Path
) -> None:
    whole = make_pdf(
        page_spec([(72, 700, "Some inter-"), (72, 684, "national words.")], rotate=90),
        page_spec([(72, 700, "More words.")], has_picture=True),
        labels=b"0 << /S /r >>",
        title="Title",
    ).read_bytes()
    generator = random.Random(3)
    path = tmp_path / "mutant.pdf"
    outcomes = {"read": 0, "refused": 0}
    with ParserClient(limits=ParsingLimits(stall_timeout_s=20)) as client:
        for _ in range(300):
            data = bytearray(whole)
            for _ in range(generator.choice((1, 4, 32))):
                data[generator.randrange(len(data))] = generator.randrange(256)
            path.write_bytes(data)
            try:
                document = client.parse(path)
                client.render_page(path, len(document.pages) - 1, scale=0.5)
                outcomes["read"] += 1
            except ParsingError:
                outcomes["refused"] += 1

    assert min(outcomes.values()) > 10
