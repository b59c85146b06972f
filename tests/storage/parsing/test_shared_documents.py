"""The awkward documents of the shared test material: what each gives, and that none does harm."""

from __future__ import annotations

import json
import random
import re
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from inglenook.storage.parsing.client import ParserClient
from inglenook.storage.parsing.errors import (
    DamagedDocumentError,
    EmptyFileError,
    NoTextError,
    ParsingError,
    PasswordRequiredError,
    UnsupportedTypeError,
    WrongPasswordError,
)
from inglenook.storage.parsing.quotes import find_quote


@pytest.fixture
def documents(shared: Path) -> Path:
    return shared / "documents"


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("pdfjs__bomb_giant.pdf", "GIANT JBIG2 BOMB"),
        ("pdfjs__copy_paste_ligatures.pdf", "fffiflffiffl"),
        ("pdfjs__encrypted-attachment.pdf", "Example"),
        ("pdfminer__pagelabels.pdf", "First section"),
        ("pdfminer__zen_of_python_corrupted.pdf", "Beautiful is better than ugly."),
        ("plumber__nics-background-checks-2015-11-rotated.pdf", "West Virginia 2,217 6,953"),
        ("pypdf__indirect-rotation.pdf", "International Council of Containe"),
        ("sample__habibi-rotated.pdf", "habibi"),
        ("sample__multicolumn.pdf", "consectetuer adipiscing elit"),
        ("tika__russian.cp866.txt", "был сильный мороз"),
        ("tika__footnotes.docx", "snoskoy snoska"),
        ("tika__testArabicMisleadingCharset.html", "كان"),
        ("tika__testODTnotaZipFile.odt", "This is not a zip file!"),
    ],
)
def test_these_are_read(parser: ParserClient, documents: Path, name: str, words: str) -> None:
    document = parser.parse(documents / name)

    text = "\n".join(page.text for page in document.pages)
    assert find_quote(text, words)
    assert document.chunks


@pytest.mark.parametrize(
    ("name", "kind", "words"),
    [
        ("pdfjs__poppler-395-0-fuzzed.pdf", DamagedDocumentError, "damaged"),
        ("plumber__empty.pdf", EmptyFileError, "0 bytes"),
        ("plumber__password-example.pdf", PasswordRequiredError, "password"),
        ("pypdf__r6-user-password.pdf", PasswordRequiredError, "password"),
        ("tika__testOCR.pdf", NoTextError, "No text on 1 of 1 pages"),
        ("tika__protectedFile.xlsx", UnsupportedTypeError, "encrypted Office"),
        ("tika__testMSG_chinese.msg", UnsupportedTypeError, "Outlook"),
        ("tika__testPPT_comment.pptx", UnsupportedTypeError, "PowerPoint"),
        ("tika__testXXE.xml", UnsupportedTypeError, "XML"),
    ],
)
def test_these_are_refused_each_with_its_reason(
    parser: ParserClient, documents: Path, name: str, kind: type[ParsingError], words: str
) -> None:
    with pytest.raises(kind, match=words):
        parser.parse(documents / name)


def test_page_labels_are_kept(parser: ParserClient, documents: Path) -> None:
    pages = parser.parse(documents / "pdfminer__pagelabels.pdf").pages

    assert [page.label for page in pages] == ["iii", "iv", "1", "2", "1"]


def test_a_form_that_is_only_a_shell_is_noted(parser: ParserClient, documents: Path) -> None:
    assert "XFA" in parser.parse(documents / "pdfjs__xfa_issue14315.pdf").notes[0]


def test_an_encrypted_attachment_is_noted(parser: ParserClient, documents: Path) -> None:
    assert "attached" in parser.parse(documents / "pdfjs__encrypted-attachment.pdf").notes[0]


def test_a_font_that_hides_its_letters_is_noted(parser: ParserClient, documents: Path) -> None:
    assert "garbled" in parser.parse(documents / "pdfminer__issue-791-non-unicode-cmap.pdf").notes[0]


def test_no_word_is_left_broken_over_columns(parser: ParserClient, documents: Path) -> None:
    text = parser.parse(documents / "sample__multicolumn.pdf").pages[0].text

    assert "\x02" not in text
    assert "\ufffe" not in text
    assert "Pellentesque" in text


def test_strong_encryption_opens_with_its_password_only(parser: ParserClient, documents: Path) -> None:
    path = documents / "pypdf__r6-user-password.pdf"

    with pytest.raises(WrongPasswordError):
        parser.parse(path, password="")
    assert parser.parse(path, password="asdfzxcv").chunks


@pytest.mark.parametrize("highlight", [None, (0, 5)])
def test_drawing_any_of_them_ends_soon(
    parser: ParserClient, documents: Path, highlight: tuple[int, int] | None
) -> None:
    for path in sorted(documents.glob("*.pdf")):
        started_s = time.monotonic()
        try:
            picture = parser.render_page(path, 0, scale=1, highlight=highlight)
        except ParsingError:
            pass
        else:
            assert all(0 <= rect.left < rect.right <= picture.width for rect in picture.rects)
            assert all(0 <= rect.top < rect.bottom <= picture.height for rect in picture.rects)
        assert time.monotonic() - started_s < 20


def _questions(shared: Path) -> Iterator[dict[str, object]]:
    with open(shared / "data" / "financebench" / "questions.jsonl", encoding="utf-8") as file:
        yield from map(json.loads, file)


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text.casefold())


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_evidence_of_filings_stands_on_the_page_it_is_said_to(shared: Path, minilm: Path) -> None:
    folder = shared / "data" / "financebench" / "pdfs"
    found: list[bool] = []
    with ParserClient(tokenizer=minilm / "tokenizer.json") as client:
        pages = {
            path.stem: [set(_words(page.text)) for page in client.parse(path).pages]
            for path in sorted(folder.glob("*.pdf"))
        }
    for question in _questions(shared):
        for evidence in question["evidence"]:  # type: ignore[attr-defined]
            wanted = set(_words(evidence["evidence_text"]))
            shares = [len(wanted & words) / len(wanted) for words in pages[str(question["doc_name"])]]
            page = evidence["evidence_page_num"]
            found.append(shares[page] > 0.95 and shares[page] == max(shares))

    assert len(found) >= 23
    assert all(found)


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_every_document_with_flipped_bytes_ends_in_time_and_in_bounds(
    documents: Path, tmp_path: Path
) -> None:
    rng = random.Random(8)
    paths = [path for path in sorted(documents.iterdir()) if 0 < path.stat().st_size < 2_000_000]
    slowest_s = 0.0
    outcomes: Counter[str] = Counter()
    with ParserClient() as client:
        for number in range(200):
            source = paths[number % len(paths)]
            data = bytearray(source.read_bytes())
            for _ in range(1 + len(data) // 2000):
                data[rng.randrange(len(data))] = rng.randrange(256)
            mutant = tmp_path / f"mutant{source.suffix}"
            mutant.write_bytes(data)
            started_s = time.monotonic()
            try:
                client.parse(mutant)
                outcomes["read"] += 1
            except ParsingError as error:
                outcomes[type(error).__name__] += 1
            slowest_s = max(slowest_s, time.monotonic() - started_s)
            if client.process_id is not None:
                status = Path(f"/proc/{client.process_id}/status").read_text()
                assert int(re.search(r"VmHWM:\s+(\d+)", status).group(1)) < 1 << 20  # type: ignore[union-attr]

    assert sum(outcomes.values()) == 200
    assert slowest_s < 20
    print(outcomes, f"slowest {slowest_s:.1f} s")
