"""The documents of the profile from the command line."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from inglenook.app.commands.documents_command import add_documents
from inglenook.app.errors import AppError
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
    assert "[1] birds.md, lines 1–3\n" in run("search", "heron")[1]


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


def test_an_encoding_can_be_chosen(run: Run, papers: Path) -> None:
    path = papers / "old.txt"
    path.write_bytes("Grüße aus Köln".encode("cp437"))
    assert "guessed" in run("add", str(path))[1]

    run("add", "--encoding", "cp437", str(path))

    assert run("search", "--json", "Köln")[1]["hits"][0]["text"] == "Grüße aus Köln"


def test_an_open_window_keeps_the_profile(run: Run, share: Path) -> None:
    with SingleInstance(share), pytest.raises(AppError, match="Inglenook is running"):
        run("list")
