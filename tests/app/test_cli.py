"""The program's arguments, and which command gets them."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from inglenook.app import cli
from inglenook.app.cli import run


@pytest.fixture(autouse=True)
def _signals_and_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "share"))
    before = [(number, signal.getsignal(number)) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)]
    yield
    for number, handler in before:
        signal.signal(number, handler)


def test_without_a_screen_the_window_is_refused_in_a_sentence(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in ("QT_QPA_PLATFORM", "DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)

    assert run([]) == 1
    assert "No screen was found" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_help_names_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        run(["--help"])

    assert ended.value.code == 0
    out = capsys.readouterr().out
    assert all(f"\n    {command}" in out for command in ("ask", "models", "doctor", "bench", "documents"))


def test_the_version_is_the_package_s(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        run(["--version"])

    assert capsys.readouterr().out == "inglenook 0.1.0\n"


@pytest.mark.parametrize(
    ("sentence", "named"),
    [
        ("max_tokens must be a number, got 'x'.", "--max-tokens must be a number, got 'x'."),
        ("context_length must be 1, got 0.", "--context must be 1, got 0."),
        ("a request must be good.", "a request must be good."),
        ("The end.", "The end."),
    ],
)
def test_an_error_names_the_option_that_sets_the_parameter(sentence: str, named: str) -> None:
    assert cli._with_option_name(sentence) == named


def test_a_reader_that_goes_away_is_no_error(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    os.close(reading)

    done = subprocess.run(
        [sys.executable, "-m", "inglenook.app", "models", "list"],
        stdout=writing,
        stderr=subprocess.PIPE,
        timeout=60,
    )
    os.close(writing)

    assert (done.returncode, done.stderr) == (141, b"")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk_under_stdout_is_a_sentence() -> None:
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            [sys.executable, "-m", "inglenook.app", "models", "list"],
            stdout=full,
            stderr=subprocess.PIPE,
            timeout=60,
        )

    assert done.returncode == 1
    assert done.stderr.startswith(b"inglenook: No space left on device")


def test_a_terminal_without_unicode_gets_escapes(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "inglenook.app", "models", "list"],
        env={**os.environ, "PYTHONIOENCODING": "ascii", "XDG_DATA_HOME": str(tmp_path / "Grüße")},
        capture_output=True,
        timeout=60,
    )

    assert done.returncode == 0
    assert b"Gr\\xfc\\xdfe" in done.stdout


@pytest.mark.parametrize(
    ("command", "status", "out", "err"),
    [
        ("models list >&-", 141, "", ""),
        ("models list --json >&- 2>&-", 141, "", ""),
        ("models remove nope 2>&-", 1, "", ""),
        ("models remove nope >&- 2>&- <&-", 1, "", ""),
        ("models remove nope >&-", 1, "", "inglenook: There is no model 'nope'"),
        ("models list <&-", 0, "In the library", ""),
        ("ask - <&-", 2, "", "inglenook: The question is empty."),
        ("--version >&-", 141, "", ""),
        ("ask --help >&-", 141, "", ""),
    ],
)
def test_a_standard_stream_that_is_closed_is_no_traceback(
    command: str, status: int, out: str, err: str, tmp_path: Path
) -> None:
    done = subprocess.run(
        ["/bin/sh", "-c", f'"$0" -m inglenook.app {command}', sys.executable],
        capture_output=True,
        text=True,
        timeout=60,
    )

    assert done.returncode == status, done.stderr
    for told, expected in ((done.stdout, out), (done.stderr, err)):
        assert told.startswith(expected)
        assert bool(told) == bool(expected)


def test_a_file_name_that_is_not_utf8_is_one_sentence(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    name = os.fsdecode(b"bad\xff.gguf")

    for arguments in (["models", "import", name], ["ask", "Q", "--model", f"./{name}"]):
        assert run(arguments) in (1, 2)
        err = capfd.readouterr().err
        assert err.count("\n") == 1
        assert r"bad\udcff.gguf" in err


def test_the_window_s_start_imports_no_command_and_a_command_no_other() -> None:
    """`sys.modules`, since -X importtime does not see what importlib is asked for."""
    script = (
        "import sys\n"
        "from inglenook.app import cli\n"
        "from inglenook.app.window import window_start\n"
        "cli.build_parser(cli._meant(sys.argv[1:]))\n"
        "print(*sys.modules)\n"
    )

    def imported(*arguments: str) -> set[str]:
        command = [sys.executable, "-c", script, *arguments]
        return set(
            subprocess.run(command, capture_output=True, check=True, timeout=60).stdout.decode().split()
        )

    window, models = imported(), imported("models", "list")

    commands = {module for module, _ in cli.COMMANDS.values()}
    assert "inglenook.app.cli" in window
    assert not window & (commands | {"numpy", "msgspec", "sqlcipher3", "inglenook.storage.database"})
    assert models & commands == {"inglenook.app.commands.models_command"}


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_terminal_that_is_closed_ends_a_command_as_orderly_as_sigterm(
    number: signal.Signals, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed = []

    def work(_arguments: object) -> None:
        try:
            os.kill(os.getpid(), number)
        finally:
            closed.append(True)

    monkeypatch.setattr(cli, "_parse", work)

    assert run(["models", "list"]) == 128 + number
    assert closed


def test_nohup_is_believed(monkeypatch: pytest.MonkeyPatch) -> None:
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    monkeypatch.setattr(
        cli, "_parse", lambda _: os.kill(os.getpid(), signal.SIGHUP) or pytest.fail("went on")
    )

    with pytest.raises(pytest.fail.Exception, match="went on"):
        run(["models", "list"])


def test_a_crash_of_any_command_leaves_no_core_file() -> None:
    script = (
        "import resource, sys\n"
        "from inglenook.app import cli\n"
        "cli._parse = lambda _: sys.exit(resource.getrlimit(resource.RLIMIT_CORE)[0] != 0)\n"
        "cli.run([])\n"
    )
    hard = resource.getrlimit(resource.RLIMIT_CORE)[1]
    if hard == 0:
        pytest.skip("this machine allows no core files at all")

    ended = subprocess.run(
        [sys.executable, "-c", script],
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CORE, (hard, hard)),
    )

    assert ended.returncode == 0


@pytest.mark.parametrize("command", [["documents", "add"], ["backup"], ["restore"], ["doctor"]])
def test_an_empty_path_is_wrong_usage_and_not_the_current_folder(
    command: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    try:
        status = run([*command, ""])
    except SystemExit as ended:
        status = ended.code  # type: ignore[assignment]  # argparse gives a number

    assert status == 2
    assert "empty" in capsys.readouterr().err
