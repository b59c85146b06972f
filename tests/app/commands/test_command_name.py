"""The name under which the program tells of itself."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

from inglenook.app.commands.command_name import command_name, with_command


@pytest.fixture
def command(tmp_path: Path) -> Path:
    path = tmp_path / "bin" / "inglenook"
    path.parent.mkdir()
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return path


def test_a_command_on_the_path_has_its_plain_name(command: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(command.parent))
    monkeypatch.setattr(sys, "argv", [str(command)])

    assert command_name() == "inglenook"


def test_another_program_of_that_name_on_the_path_is_not_meant(
    command: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started = tmp_path / "my programs" / "inglenook"
    started.parent.mkdir()
    shutil.copy(command, started)
    monkeypatch.setenv("PATH", str(command.parent))
    monkeypatch.setattr(sys, "argv", [str(started)])

    assert command_name() == f"'{started}'"


def test_a_module_started_by_python_is_named_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(sys, "argv", ["/x/inglenook/app/__main__.py"])
    monkeypatch.setattr(sys, "orig_argv", [".venv/bin/python", "-m", "inglenook.app"])

    assert with_command("Use 'inglenook ask'.") == "Use '.venv/bin/python -m inglenook.app ask'."


def test_the_installed_start_script_is_named_instead_of_the_module_behind_it(
    command: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(sys, "argv", ["/x/inglenook/app/__main__.py"])
    monkeypatch.setenv("INGLENOOK_COMMAND", str(command))

    assert command_name() == str(command)


def test_text_that_is_no_hint_stays() -> None:
    assert with_command("inglenook and 'inglenooks' stay") == "inglenook and 'inglenooks' stay"
