"""Where the program keeps things."""

from __future__ import annotations

import os
import pwd
import stat
from pathlib import Path

import pytest

from inglenook.app.errors import AppError
from inglenook.app.paths import ensure, user_folders


def test_folders_follow_the_xdg_variables() -> None:
    folders = user_folders({"HOME": "/h", "XDG_DATA_HOME": "/d", "XDG_STATE_HOME": "/s"})

    assert folders.models == Path("/d/inglenook/models")
    assert folders.state == Path("/s/inglenook")
    assert folders.config == Path("/h/.config/inglenook")
    assert folders.cache == Path("/h/.cache/inglenook")


@pytest.mark.parametrize("value", ["", "relative", "./x", "~"])
def test_relative_and_empty_variables_are_ignored(value: str) -> None:
    folders = user_folders({"HOME": "/h", "XDG_DATA_HOME": value})

    assert folders.data == Path("/h/.local/share/inglenook")


@pytest.mark.parametrize("home", ["", "relative", "."])
def test_a_home_that_is_not_absolute_is_ignored(home: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", home)

    assert user_folders({"HOME": home}).data == Path(
        pwd.getpwuid(os.getuid()).pw_dir, ".local/share/inglenook"
    )


def test_without_a_home_a_person_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_home(_user: int) -> None:
        raise KeyError

    monkeypatch.setattr("pwd.getpwuid", no_home)

    with pytest.raises(AppError, match="Set HOME"):
        user_folders({})


def test_a_folder_is_made_for_the_user_alone(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        made = ensure(tmp_path / "above" / "share" / "inglenook")
    finally:
        os.umask(before)

    assert all(stat.S_IMODE(p.stat().st_mode) == 0o700 for p in (made, made.parent, made.parent.parent))


def test_a_folder_that_others_could_read_is_closed(tmp_path: Path) -> None:
    folder = tmp_path / "inglenook"
    folder.mkdir()
    folder.chmod(0o755)

    ensure(folder)

    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_a_folder_that_cannot_be_made_is_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    with pytest.raises(AppError, match="cannot be made"):
        ensure(tmp_path / "file" / "inglenook")
