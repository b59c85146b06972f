"""One profile, one program: the kernel's lock and the bell."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from inglenook.app.errors import AppError
from inglenook.app.single_instance import SingleInstance

_HOLD = (
    "import sys, pathlib\n"
    "from inglenook.app.single_instance import SingleInstance\n"
    "instance = SingleInstance(pathlib.Path(sys.argv[1]))\n"
    "print(instance.acquire(), flush=True)\n"
    "sys.stdin.read()\n"
)


def test_a_second_start_rings_the_first(tmp_path: Path) -> None:
    first, second = SingleInstance(tmp_path), SingleInstance(tmp_path)

    assert first.acquire()
    assert not second.acquire()
    assert second.ring()

    assert first.bell is not None
    assert select.select([first.bell], [], [], 5)[0]
    assert first.answer()
    assert not first.answer()
    first.close()
    second.close()


def test_the_profile_is_free_after_the_first_is_killed(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", _HOLD, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "True\n"
        ours = SingleInstance(tmp_path)
        assert not ours.acquire()

        holder.send_signal(signal.SIGKILL)
        holder.wait(10)

        assert ours.acquire()
        ours.close()


def test_the_lock_stays_with_a_folder_that_is_renamed(tmp_path: Path) -> None:
    (tmp_path / "old").mkdir()
    first = SingleInstance(tmp_path / "old")
    assert first.acquire()

    (tmp_path / "old").rename(tmp_path / "new")

    assert not SingleInstance(tmp_path / "new").acquire()
    first.close()


def test_ringing_where_nobody_listens_says_so(tmp_path: Path) -> None:
    assert not SingleInstance(tmp_path).ring()


def test_a_stale_bell_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "profile.bell").write_text("left over")

    with SingleInstance(tmp_path) as instance:
        assert SingleInstance(tmp_path).ring()
        assert instance.answer()


def test_a_command_that_needs_the_profile_says_that_it_is_in_use(tmp_path: Path) -> None:
    with (
        SingleInstance(tmp_path),
        pytest.raises(AppError, match="is running and uses this profile"),
        SingleInstance(tmp_path),
    ):
        pass


def test_nobody_else_may_open_lock_or_bell(tmp_path: Path) -> None:
    with SingleInstance(tmp_path):
        modes = [os.stat(tmp_path / name).st_mode & 0o777 for name in ("profile.lock", "profile.bell")]

    assert modes == [0o600, 0o600]


def test_a_folder_that_cannot_be_made_is_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    with pytest.raises(AppError, match="cannot be made"):
        SingleInstance(tmp_path / "file" / "profile").acquire()
