"""Files are opened without trusting their path."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from inglenook.storage.parsing.document import MIB, ParsingLimits
from inglenook.storage.parsing.errors import (
    DocumentTooLargeError,
    EmptyFileError,
    FileAccessError,
    FileVanishedError,
    NotARegularFileError,
    UnreadableFileError,
)
from inglenook.storage.parsing.opening import open_document

LIMITS = ParsingLimits()


def test_a_regular_file_is_opened_for_reading(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"content")

    descriptor = open_document(path, LIMITS)

    assert os.read(descriptor, 100) == b"content"
    os.close(descriptor)


def test_a_missing_file_is_said_to_be_gone(tmp_path: Path) -> None:
    with pytest.raises(FileVanishedError, match="no longer there"):
        open_document(tmp_path / "gone" / "a.pdf", LIMITS)


def test_an_empty_file_is_said_to_be_empty(tmp_path: Path) -> None:
    (tmp_path / "a").touch()

    with pytest.raises(EmptyFileError, match="0 bytes"):
        open_document(tmp_path / "a", LIMITS)


def test_a_gigabyte_is_refused_with_the_two_numbers(tmp_path: Path) -> None:
    with open(tmp_path / "a", "wb") as file:
        file.truncate(1024 * MIB)

    with pytest.raises(DocumentTooLargeError, match=r"1,024\.0 MiB; the limit is 200\.0 MiB"):
        open_document(tmp_path / "a", LIMITS)


def test_pipes_folders_links_sockets_and_devices_are_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("/etc/passwd")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(os.fspath(tmp_path / "socket"))
    for path in (tmp_path / "pipe", tmp_path, tmp_path / "link", tmp_path / "socket", Path("/dev/zero")):
        with pytest.raises(NotARegularFileError):
            open_document(path, LIMITS)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_of_someone_else_is_said_to_be_unreadable(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"x")
    (tmp_path / "a").chmod(0)

    with pytest.raises(FileAccessError, match="permissions"):
        open_document(tmp_path / "a", LIMITS)


def test_a_permission_error_has_its_own_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*arguments: object) -> int:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "open", refuse)

    with pytest.raises(FileAccessError, match="user account"):
        open_document(tmp_path, LIMITS)


@pytest.mark.parametrize("name", ["a\x00b", "x" * 5000])
def test_an_impossible_name_is_unreadable(tmp_path: Path, name: str) -> None:
    with pytest.raises(UnreadableFileError):
        open_document(tmp_path / name, LIMITS)


def test_no_descriptor_is_left_open_by_a_refusal(tmp_path: Path) -> None:
    before = set(os.listdir("/proc/self/fd"))
    with pytest.raises(NotARegularFileError):
        open_document(tmp_path, LIMITS)

    assert set(os.listdir("/proc/self/fd")) == before
