"""What is found out about the computer."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from inglenook.engine.doctor import cpu_features, cpu_name, examine_computer, examine_torch, reason_alone

CPUINFO = """processor	: 0
model name	: A Processor @ 2 GHz
flags		: fpu sse2 avx2 fma avx512f avx512_vnni amx_tile

processor	: 1
model name	: Another
flags		: none
"""


def test_name_and_features_are_the_first_processor_s(tmp_path: Path) -> None:
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc" / "cpuinfo").write_text(CPUINFO)

    assert cpu_name(tmp_path) == "A Processor @ 2 GHz"
    assert cpu_features(tmp_path) == ("avx2", "fma", "avx512", "vnni", "amx")


def test_a_system_without_cpuinfo_has_no_known_features(tmp_path: Path) -> None:
    assert cpu_features(tmp_path) == ()
    assert cpu_name(tmp_path)


@pytest.mark.parametrize(
    ("script", "words"),
    [
        (
            "import os, signal; os.kill(os.getpid(), signal.SIGILL)",
            "SIGILL. It may be built for another processor",
        ),
        ("import os; os.abort()", "SIGABRT"),
        ("raise OSError('libgomp is missing')", "cannot be used: OSError: libgomp is missing"),
        ("print('not what we expect')", "cannot be used: no reason was given"),
    ],
)
def test_a_torch_that_does_not_run_becomes_a_sentence(script: str, words: str) -> None:
    facts = examine_torch((sys.executable, "-c", script))

    assert words in facts.error
    assert facts.version.startswith("2.13")
    assert facts.backends == ()


def test_a_torch_that_hangs_is_given_up(tmp_path: Path) -> None:
    facts = examine_torch((sys.executable, "-c", "import time; time.sleep(60)"), timeout_s=0.2)

    assert "did not start within" in facts.error


def test_an_interpreter_that_cannot_start_is_a_sentence(tmp_path: Path) -> None:
    assert "could not be started" in examine_torch((str(tmp_path / "nothing"),)).error


def test_a_reason_does_not_say_again_that_a_back_end_was_asked_for() -> None:
    assert reason_alone("asked for by name: slow formulas") == "Slow formulas"
    assert reason_alone("compiled for avx2") == "Compiled for avx2"
    assert reason_alone("") == ""


@pytest.mark.slow
def test_this_computer_is_examined() -> None:
    facts = examine_computer()

    assert facts.torch.error == ""
    assert {"torch-cpu", "reference"} <= {backend.name for backend in facts.torch.backends}
    assert facts.torch.devices[0].startswith("cpu")
    assert 1 <= facts.threads <= facts.cores
