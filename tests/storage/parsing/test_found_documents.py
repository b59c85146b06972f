"""What a drop of files and folders comes to."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from inglenook.storage.parsing import found_documents
from inglenook.storage.parsing.found_documents import find_documents


def _tree(root: Path, *names: str) -> None:
    for name in names:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"%PDF-1.4" if "pdf" in name else b"text")


def test_a_folder_gives_its_documents_in_order_and_counts_the_rest(tmp_path: Path) -> None:
    _tree(
        tmp_path,
        "b.txt",
        "a.md",
        "sub/c.pdf",
        "program.py",
        ".hidden.txt",
        ".git/x.txt",
        "~$a.txt",
        "d.txt.part",
    )

    found = find_documents([tmp_path])

    assert [path.name for path in found.files] == ["a.md", "b.txt", "c.pdf"]
    assert found.skipped_counts == {"hidden": 2, "unsupported": 1, "temporary": 2}
    assert found.summary().startswith("Left out: ")


def test_a_pdf_is_found_under_any_name_and_an_empty_one_is_kept_to_be_reported(tmp_path: Path) -> None:
    _tree(tmp_path, "really a pdf.docx")
    (tmp_path / "empty.pdf").touch()
    (tmp_path / "empty.xlsx").touch()

    found = find_documents([tmp_path])

    assert [path.name for path in found.files] == ["empty.pdf", "really a pdf.docx"]


def test_links_in_a_folder_are_not_followed_and_loops_end(tmp_path: Path) -> None:
    _tree(tmp_path, "a/one.txt")
    (tmp_path / "a" / "loop").symlink_to(tmp_path)
    (tmp_path / "a" / "secret.txt").symlink_to("/etc/passwd")

    found = find_documents([tmp_path])

    assert [path.name for path in found.files] == ["one.txt"]
    assert found.skipped_counts == {"link": 2}


def test_a_link_that_the_user_named_is_followed(tmp_path: Path) -> None:
    _tree(tmp_path, "real.txt")
    (tmp_path / "link").symlink_to(tmp_path / "real.txt")

    assert find_documents([tmp_path / "link"]).files == (tmp_path / "real.txt",)


def test_a_file_that_the_user_named_is_taken_whatever_it_is(tmp_path: Path) -> None:
    _tree(tmp_path, "program.py", ".hidden")

    assert len(find_documents([tmp_path / "program.py", tmp_path / ".hidden"]).files) == 2


def test_the_same_file_named_twice_is_taken_once(tmp_path: Path) -> None:
    _tree(tmp_path, "a.txt")
    os.link(tmp_path / "a.txt", tmp_path / "b.txt")

    found = find_documents([tmp_path / "a.txt", tmp_path, tmp_path / "a.txt"])

    assert len(found.files) == 1
    assert found.skipped_counts == {"repeated": 3}


def test_pipes_and_missing_paths_are_named(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.txt")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")

    found = find_documents([tmp_path, tmp_path / "gone.txt", tmp_path / "loop"])

    assert not found.files
    assert {(s.path.name, s.reason) for s in found.skipped} == {
        ("pipe.txt", "special"),
        ("loop", "link"),
        ("gone.txt", "vanished"),
        ("loop", "unreadable"),
    }


def test_names_that_are_no_text_are_carried(tmp_path: Path) -> None:
    name = os.fsencode(tmp_path) + b"/caf\xe9.txt"
    with open(name, "wb") as file:
        file.write(b"x")

    assert [os.fsencode(path) for path in find_documents([tmp_path]).files] == [name]


def test_more_files_than_the_limit_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(found_documents, "MAX_FILES", 3)
    _tree(tmp_path, *(f"{i}.txt" for i in range(5)))

    found = find_documents([tmp_path])

    assert len(found.files) == 3
    assert found.skipped_counts == {"limit": 2}


def test_a_search_can_be_cancelled(tmp_path: Path) -> None:
    _tree(tmp_path, "a/one.txt", "b/two.txt")

    found = find_documents([tmp_path], cancelled=lambda: True)

    assert found.is_cancelled
    assert not found.files
