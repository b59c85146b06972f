"""The documents of the profile from the command line."""

from __future__ import annotations

import argparse
import getpass
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pypdf
import pytest
from small_pdf import write_pdf

from inglenook.app.commands import document_password, documents_add
from inglenook.app.commands.documents_command import add_documents
from inglenook.app.errors import AppError, UsageError
from inglenook.app.single_instance import SingleInstance

Run = Callable[..., tuple[int, Any]]


@pytest.fixture
def share(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "share"))
    return tmp_path / "share" / "inglenook"


@pytest.fixture
def papers(tmp_path: Path) -> Path:
    folder = tmp_path / "papers"
    folder.mkdir()
    (folder / "birds.md").write_text("# Birds\n\nThe grey heron stands on one leg.\n")
    (folder / "years.csv").write_text("name,year\nThistlewood,1873\nQuorvale,1901\n")
    (folder / "page.html").write_text("<title>Guide</title><p>Turn the key twice.")
    return folder


@pytest.fixture
def run(share: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    def run(*arguments: str) -> tuple[int, Any]:
        parser = argparse.ArgumentParser()
        add_documents(parser.add_subparsers())
        options = parser.parse_args(["documents", *arguments])
        status = options.run(options)
        out = capsys.readouterr().out
        return status, json.loads(out) if "--json" in arguments else out

    return run


def test_documents_are_added_once_listed_and_searched(run: Run, papers: Path) -> None:
    first, second = run("add", "--json", str(papers)), run("add", "--json", str(papers))

    assert (first[0], first[1]["ready"], second[1]["unchanged"]) == (0, 3, 3)
    assert [d["kind"] for d in run("list", "--json")[1]["documents"]] == ["markdown", "html", "csv"]
    hits = run("search", "--json", "When was Thistlewood?")[1]["hits"]
    assert hits[0]["file"] == str(papers / "years.csv")
    assert hits[0]["lines"] == [2, 3]
    assert run("search", "heron")[1] == (
        "[1] birds.md, lines 1–3 (Birds)\n    The grey heron stands on one leg.\n"
    )


def test_search_keeps_to_the_documents_named(run: Run, papers: Path) -> None:
    run("add", str(papers))

    assert run("search", "--json", "--in", "page.html", "heron")[1]["hits"] == []
    with pytest.raises(AppError, match=r"no document x\.pdf"):
        run("search", "--in", "x.pdf", "heron")


def test_a_changed_file_is_read_again(run: Run, papers: Path) -> None:
    run("add", str(papers))
    (papers / "birds.md").write_text("# Birds\n\nThe bittern booms.\n")

    assert run("add", "--json", str(papers))[1]["ready"] == 1
    assert run("search", "--json", "heron")[1]["hits"] == []
    assert len(run("search", "--json", "bittern")[1]["hits"]) == 1


@pytest.mark.parametrize(("changes", "ready"), [(1, 1), (9, 0)])
def test_a_file_that_changes_while_it_is_read_is_read_again_but_not_for_ever(
    run: Run, papers: Path, monkeypatch: pytest.MonkeyPatch, changes: int, ready: int
) -> None:
    path, noted = papers / "log.txt", documents_add._noted
    path.write_text("Line 0.\n")
    left = iter(range(1, changes + 1))

    def changed_afterwards(noted_path: Path) -> tuple[str, int, int]:
        result = noted(noted_path)
        if number := next(left, 0):
            path.write_text("A later line.\n" * number)
        return result

    monkeypatch.setattr(documents_add, "_noted", changed_afterwards)

    added = run("add", "--json", str(path))[1]

    assert added["ready"] == ready
    assert ready or "changed each time" in added["documents"][0]["error"]
    assert len(run("search", "--json", "later")[1]["hits"]) == ready


def test_what_cannot_be_read_is_told_and_the_rest_is_read(run: Run, papers: Path) -> None:
    (papers / "broken.pdf").write_bytes(b"%PDF-1.7 nothing")

    status, found = run("add", "--json", str(papers), str(papers / "gone.pdf"))

    assert status == 1
    assert (found["ready"], found["refused"]) == (3, 2)
    assert "damaged" in next(d["error"] for d in found["documents"] if d["path"].endswith("broken.pdf"))


def test_removed_documents_are_not_found_and_forgotten_ones_leave_a_receipt(
    run: Run, papers: Path, share: Path
) -> None:
    run("add", str(papers))

    run("remove", "birds.md")
    assert run("search", "--json", "heron")[1]["hits"] == []
    status, receipt = run("forget", "--json", "birds.md", str(papers / "years.csv"))

    assert status == 0
    assert receipt["is_clean"]
    assert receipt["num_chunks"] == 2
    assert b"Thistlewood" not in (share / "history.db").read_bytes()
    assert run("check", "--json")[1] == {"problems": [], "unfinished": [], "chunks": 1}


def test_the_receipt_and_the_check_are_readable(run: Run, papers: Path) -> None:
    run("add", str(papers))

    assert "bytes, none found" in run("forget", "page.html")[1]
    assert run("check")[1] == "2 passages; 0 problems; 0 documents still to be read.\n"


def test_a_receipt_says_that_another_document_holds_the_same_text(run: Run, papers: Path) -> None:
    text = (papers / "birds.md").read_text()
    (papers / "copy.md").write_text(f"{text}\n\nAnd a page of its own.")
    run("add", str(papers))

    receipt = run("forget", "birds.md")[1]

    assert "samples of its text are still here, in other documents or in chats" in receipt
    assert "none found" in run("forget", "copy.md")[1]


def test_an_encoding_can_be_chosen(run: Run, papers: Path) -> None:
    path = papers / "old.txt"
    path.write_bytes("Grüße aus Köln".encode("cp437"))
    assert "guessed" in run("add", str(path))[1]

    run("add", "--encoding", "cp437", str(path))

    assert run("search", "--json", "Köln")[1]["hits"][0]["text"] == "Grüße aus Köln"


def test_an_encoding_that_does_not_exist_costs_nothing_that_was_read(run: Run, papers: Path) -> None:
    run("add", str(papers / "birds.md"))

    status, result = run("add", "--encoding", "rot13", str(papers / "birds.md"))

    assert (status, "There is no text encoding" in result) == (1, True)
    assert run("search", "--json", "heron")[1]["hits"]
    assert "birds.md  (markdown, 1 passages" in run("list")[1]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--limit", "0", "heron"), "--limit must be from 1 to 1,000, got 0"),
        (("--limit", "9" * 23, "heron"), "--limit must be from 1 to 1,000, got 999"),
        ((" ",), "The text to search for is empty"),
    ],
)
def test_what_search_cannot_do_is_said(
    run: Run, papers: Path, arguments: tuple[str, ...], words: str
) -> None:
    run("add", str(papers))

    with pytest.raises(UsageError, match=words):
        run("search", *arguments)


def test_a_newline_in_a_name_begins_no_row(run: Run, papers: Path) -> None:
    (papers / "a\n   7  forged.md").write_text("# Owls\n\nThe owl.")
    run("add", str(papers))

    assert len(run("list")[1].splitlines()) == 4


def test_an_open_window_keeps_the_profile(run: Run, share: Path) -> None:
    with SingleInstance(share), pytest.raises(AppError, match="Inglenook is running"):
        run("list")


def test_search_and_list_keep_to_collection_name_and_year(run: Run, papers: Path) -> None:
    (papers / "report 2021.txt").write_text("The heron of 2021.")
    run("add", str(papers / "birds.md"), str(papers / "page.html"), "--collection", "Nature")
    run("add", str(papers), "--collection", "everything")

    def files(*scope: str) -> list[str]:
        return [
            Path(hit["file"]).name for hit in run("search", "--json", "heron key Quorvale", *scope)[1]["hits"]
        ]

    assert sorted(files()) == ["birds.md", "page.html", "report 2021.txt", "years.csv"]
    assert sorted(files("--collection", "nature")) == ["birds.md", "page.html"]
    assert files("--collection", "Nature", "--name", "*.HTML") == ["page.html"]
    assert files("--year", "2021") == ["report 2021.txt"]
    assert sorted(files("--name", "birds", "--name", "years")) == ["birds.md", "years.csv"]
    listed = run("list", "--json", "--collection", "Nature")[1]["documents"]
    assert [document["collections"] for document in listed] == [["everything", "Nature"]] * 2
    assert "birds.md  (markdown, 1 passages, utf-8)  [everything, Nature]" in run("list")[1]
    with pytest.raises(AppError, match=r"no collection Letters\. There are: everything, Nature"):
        run("search", "--collection", "Letters", "heron")
    with pytest.raises(AppError, match="None of the 4 documents is in that scope"):
        run("search", "--year", "1999", "heron")


@pytest.mark.parametrize("text", ['"', "*", "a OR b", "NEAR(", "name:x", "' OR 1=1 --", "%", "\x00", "()"])
@pytest.mark.slow
def test_nothing_that_is_typed_becomes_syntax(run: Run, papers: Path, text: str) -> None:
    run("add", str(papers), "--collection", "All of it")

    assert run("search", "--json", text)[0] == 0
    for option in ("--collection", "--name", "--in"):
        with pytest.raises(AppError):
            run("search", "--json", option, text + "zz", "heron")


def test_collections_are_filled_and_emptied(run: Run, papers: Path) -> None:
    run("add", str(papers))

    assert run("collect", "Nature", "birds.md", "page.html")[1] == "Nature: 2 documents\n"
    assert run("collect", "nature", "1", "--out", "--json")[1] == {
        "collections": [{"name": "Nature", "document_ids": [2]}]
    }
    with pytest.raises(UsageError, match="1 to 100 characters"):
        run("collect", " ", "1")


def test_a_chosen_encoding_is_kept_for_the_next_version(run: Run, papers: Path) -> None:
    path = papers / "old.txt"
    path.write_bytes("Grüße aus Köln".encode("cp437"))
    run("add", "--encoding", "cp437", str(path))
    path.write_bytes("Grüße aus Lübeck".encode("cp437"))

    run("add", str(path))

    assert run("search", "--json", "Lübeck")[1]["hits"][0]["text"] == "Grüße aus Lübeck"
    document = next(d for d in run("list", "--json")[1]["documents"] if d["name"] == "old.txt")
    assert (document["chosen_encoding"], document["encoding"]) == ("cp437", "cp437")


@pytest.fixture
def secret(papers: Path) -> Path:
    writer = pypdf.PdfWriter(clone_from=write_pdf(papers / "plain.pdf", ["The code word is gooseberry."]))
    writer.encrypt("schlüssel", algorithm="RC4-128")
    writer.write(papers / "secret.pdf")
    return papers / "secret.pdf"


def code_word(run: Run) -> str:
    hits = run("search", "--json", "code word", "--in", "secret.pdf")[1]["hits"]
    return str(hits[0]["text"]) if hits else ""


def test_a_locked_file_waits_and_is_read_with_its_password_from_a_file(
    run: Run, secret: Path, tmp_path: Path
) -> None:
    (tmp_path / "word").write_text("schlüssel\n")

    status, said = run("add", str(secret))
    assert (status, "give --password-file FILE" in said) == (1, True)
    assert "secret.pdf  (file, locked: This PDF is encrypted" in run("list")[1]
    run("add", str(secret), "--password-file", str(tmp_path / "word"))

    assert "gooseberry" in code_word(run)


@pytest.fixture
def typed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What a person types at a terminal, one for each prompt."""
    words: list[str] = []
    monkeypatch.setattr(document_password, "can_ask", lambda: True)
    monkeypatch.setattr(getpass, "getpass", lambda _prompt: words.pop(0))
    return words


def test_a_terminal_is_asked_for_the_password_again_after_a_wrong_one(
    run: Run, secret: Path, typed: list[str]
) -> None:
    typed += ["wrong", "schlüssel"]

    assert run("add", "--json", str(secret))[1]["ready"] == 1

    assert typed == []
    assert "gooseberry" in code_word(run)


@pytest.mark.parametrize("words", [[""], ["wrong"] * 3])
def test_no_or_only_wrong_passwords_leave_the_file_locked(
    run: Run, secret: Path, typed: list[str], words: list[str]
) -> None:
    typed += words

    status, found = run("add", "--json", str(secret))

    assert (status, found["refused"], typed) == (1, 1, [])
    assert "locked" in run("list")[1]


def test_a_password_is_no_argument(run: Run, secret: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        run("add", str(secret), "--password", "schlüssel")

    assert "unrecognized arguments" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("content", "sentence"), [(None, "cannot be read"), (b"\n", "is empty"), (b"\xff\n", "not UTF-8")]
)
def test_a_bad_password_file_is_a_sentence(
    run: Run, secret: Path, tmp_path: Path, content: bytes | None, sentence: str
) -> None:
    if content is not None:
        (tmp_path / "word").write_bytes(content)

    with pytest.raises(UsageError, match=sentence):
        run("add", str(secret), "--password-file", str(tmp_path / "word"))


def test_a_copy_under_another_name_is_named_with_the_one_that_is_here(run: Run, papers: Path) -> None:
    run("add", str(papers / "birds.md"))
    (papers / "vögel.md").write_bytes((papers / "birds.md").read_bytes())

    said = run("add", str(papers / "vögel.md"))[1]

    assert f"{papers}/vögel.md has the same content as {papers}/birds.md, which is here already." in said
    found = run("add", "--json", str(papers / "vögel.md"))[1]
    assert found["documents"][0]["same_as"] == str(papers / "birds.md")


def test_every_key_of_a_hit_is_explained(run: Run, papers: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run("add", str(papers))
    found = run("search", "--json", "heron")[1]
    with pytest.raises(SystemExit):
        run("search", "--help")

    explained = set(re.findall(r"\w+", capsys.readouterr().out.split("--json prints")[1]))
    assert {*found, *found["hits"][0]} <= explained
