"""What `doctor` prints."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from inglenook.app.cli import run
from inglenook.app.commands import doctor_command
from inglenook.engine.doctor import BackendFacts, ComputerFacts, TorchFacts
from inglenook.engine.memory import MemoryState

TORCH = TorchFacts(
    version="2.13.0 (CPU build)",
    devices=("cpu (AVX2)",),
    backends=(
        BackendFacts("fast", False, "was not built"),
        BackendFacts("torch-cpu", True, "runs everywhere"),
        BackendFacts("reference", True, "slow"),
    ),
)


@pytest.fixture(autouse=True)
def _signals(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "share"))
    before = [(number, signal.getsignal(number)) for number in (signal.SIGINT, signal.SIGTERM)]
    yield
    for number, handler in before:
        signal.signal(number, handler)


def examine(monkeypatch: pytest.MonkeyPatch, torch: TorchFacts) -> None:
    facts = ComputerFacts(
        inglenook="0.1.0",
        python="3.11.2",
        system="Linux",
        cpu="A processor",
        features=("avx2", "fma"),
        cores=8,
        threads=7,
        memory=MemoryState(16_000_000_000, 9_100_000_000),
        torch=torch,
    )
    monkeypatch.setattr(doctor_command, "examine_computer", lambda: facts)


def test_the_doctor_says_which_back_end_would_be_used_and_why(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    examine(monkeypatch, TORCH)

    assert run(["doctor"]) == 0

    lines = capsys.readouterr().out.splitlines()
    assert "back end   fast: not usable. was not built" in lines
    assert "back end   torch-cpu: would be used. runs everywhere" in lines
    assert "back end   reference: can be asked for. slow" in lines
    assert "memory     9.1 GB free of 16.0 GB" in lines
    assert "threads    7 of 8 physical cores" in lines
    assert f"library    {tmp_path / 'share' / 'inglenook' / 'models'}" in lines


def test_the_doctor_as_json(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    examine(monkeypatch, TORCH)

    run(["doctor", "--json"])

    facts = json.loads(capsys.readouterr().out)
    assert facts["memory"] == {"total_bytes": 16_000_000_000, "free_bytes": 9_100_000_000}
    assert facts["torch"]["backends"][1] == {"name": "torch-cpu", "usable": True, "reason": "runs everywhere"}
    assert facts["models"] == []


def test_a_torch_that_does_not_run_is_told_and_the_rest_is_shown(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    examine(monkeypatch, TorchFacts(version="2.13.0", error="PyTorch was ended by SIGILL."))

    assert run(["doctor"]) == 1
    out = capsys.readouterr().out
    assert "torch      2.13.0 PyTorch was ended by SIGILL." in out
    assert "processor  A processor; avx2, fma" in out


def test_a_model_that_is_damaged_is_red_and_ends_with_an_error(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "cut.gguf").write_bytes(b"GGUF\x03")

    assert run(["doctor", str(tmp_path / "cut.gguf")]) == 1
    assert "red    file       cut.gguf is incomplete" in capsys.readouterr().out
    assert run(["doctor", str(tmp_path / "cut.gguf"), "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["light"] == "red"


def test_a_model_that_is_not_there_is_said_to_be_missing(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["doctor", "no-such-model"]) == 1
    assert "no-such-model" in capsys.readouterr().err
